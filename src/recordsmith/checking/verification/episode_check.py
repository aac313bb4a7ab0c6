"""Checks the structure of episodes: values for each step, and flags of the first and last step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import find_count_key, is_inner_lengths, row_lengths_key, step_prefix
from recordsmith.format.example import (
    ColumnDecoder,
    FeatureSpec,
    Kind,
    RaggedArray,
    decode_sequence_example,
)
from recordsmith.format.example.spans import payload_views
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect
from recordsmith.support.words import count as format_count

_FIRST, _LAST, _TERMINAL = "is_first", "is_last", "is_terminal"
_FLAGS = {
    _FIRST: "set at step 0, and only there",
    _LAST: "set at the last step, and only there",
    _TERMINAL: "set only at the last step",
}
_CELLS_AT_A_TIME = 1 << 20  # columns have one for each record and feature

Counts: TypeAlias = dict[str, Int64Array]
"""How many values, or steps of a feature list, each record has, by feature."""
Numbers: TypeAlias = Mapping[str, RaggedArray]
"""The values of some features of integers."""


def episode_errors(
    kinds: Mapping[str, Kind],
    buffer: BytesLike,
    starts: Int64Array,
    lengths: Int64Array,
    *,
    is_sequence: bool,
) -> Iterator[DataError]:
    """Yield the defects of episodes, with their rows; of other records none.

    Args:
        kinds: of the features, or of the feature lists of SequenceExamples.
        buffer, starts, lengths: where the payloads are.
    """
    prefix = step_prefix(kinds, is_sequence=is_sequence)
    if prefix is None:
        return
    kinds = {key: kind for key, kind in kinds.items() if key.startswith(prefix)}
    at_a_time = max(1, _CELLS_AT_A_TIME // len(kinds))
    for start in range(0, len(starts), at_a_time):
        rows = slice(start, start + at_a_time)
        read = _lists if is_sequence else _columns
        counts, numbers = read(kinds, buffer, starts[rows], lengths[rows])
        for error in _errors(counts, numbers, prefix, is_sequence=is_sequence):
            error.record = start + (error.record or 0)
            yield error


def _columns(
    kinds: Mapping[str, Kind], buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> tuple[Counts, Numbers]:
    specs = {key: FeatureSpec(kind, "ragged") for key, kind in kinds.items()}
    decoder = ColumnDecoder(specs, borrowed=[key for key in kinds if kinds[key] == "bytes"])
    decoder.append(buffer, starts, lengths)
    columns: Any = decoder.finish()
    numbers = {key: column for key, column in columns.items() if kinds[key] == "int64"}
    return {key: column.lengths for key, column in columns.items()}, numbers


def _lists(
    kinds: Mapping[str, Kind], buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> tuple[Counts, Numbers]:
    counts = {key: np.zeros(len(starts), np.int64) for key in kinds}
    flags: dict[str, list[Any]] = {name: [] for name in _FLAGS if kinds.get(name) == "int64"}
    for row, payload in enumerate(payload_views(buffer, starts, lengths)):
        lists = decode_sequence_example(payload).feature_lists
        for key, steps in lists.items():
            if key in counts:
                counts[key][row] = len(steps)
        for key, rows in flags.items():
            filled = (step for step in lists.get(key, ()) if len(step))
            rows.append([step[0] for step in filled if getattr(step, "dtype", None) == np.int64])
    return counts, {key: _ragged(rows) for key, rows in flags.items()}


def _ragged(rows: Sequence[Sequence[int]]) -> RaggedArray:
    values = np.array([value for row in rows for value in row], np.int64)
    return RaggedArray(values, np.cumsum([0, *map(len, rows)], dtype=np.int64))


def _errors(
    counts: Counts, numbers: Numbers, prefix: str, *, is_sequence: bool
) -> Iterator[DataError]:
    totals = {key: int(count.max(initial=0)) for key, count in counts.items()}
    count_key = find_count_key(totals, prefix)
    if count_key not in counts:
        return
    steps = counts[count_key]
    most = np.max([*counts.values()], axis=0)
    for row in np.flatnonzero(most == 0).tolist():
        yield _error(Defect.EMPTY_EPISODE, "the episode has no steps", row)
    for row in np.flatnonzero((steps == 0) & (most > 0)).tolist():
        yield _shape_error(count_key, 0, "a value for each step", row)
    for key, count in counts.items():
        wrong = _is_uneven(key, counts, numbers, steps, is_sequence=is_sequence)
        for row in np.flatnonzero(wrong & (steps > 0)).tolist():
            expected = f"values for {format_count(int(steps[row]), 'step')}"
            yield _shape_error(key, int(count[row]), expected, row)
    yield from _flag_errors({name: numbers.get(prefix + name) for name in _FLAGS}, steps, prefix)


def _is_uneven(
    key: str, counts: Counts, numbers: Numbers, steps: Int64Array, *, is_sequence: bool
) -> npt.NDArray[np.bool_]:
    """Return the episodes in which a feature does not have values for each step."""
    count: Any = counts[key]
    uneven: npt.NDArray[np.bool_]
    if is_sequence:
        uneven = (count != steps) & (count > 0)  # a list may be missing
        return uneven
    if is_inner_lengths(key):
        return np.zeros(len(count), np.bool_)
    lengths_key = row_lengths_key(key)
    if lengths_key is None:
        uneven = count % np.maximum(steps, 1) != 0
        return uneven
    lengths = numbers.get(lengths_key)
    if lengths is None:
        uneven = count > 0
        return uneven
    rows = np.repeat(np.arange(len(count)), lengths.lengths)
    items = np.bincount(rows, np.maximum(lengths.values, 0), len(count))
    is_negative = np.bincount(rows, np.asarray(lengths.values) < 0, len(count)) > 0
    uneven = (items == 0) & (count > 0) | (items > count)
    if lengths_key[:-1] + "1" not in counts:  # with inner lengths, other values are counted
        uneven |= count % np.maximum(items, 1) != 0
    uneven |= is_negative | (lengths.lengths != steps)
    return uneven


def _flag_errors(
    flags: Mapping[str, RaggedArray | None], steps: Int64Array, prefix: str
) -> Iterator[DataError]:
    """Yield an error for each flag of each episode that is not where it belongs."""
    starts = np.cumsum(steps) - steps
    of_step = np.arange(steps.sum()) - np.repeat(starts, steps)
    is_last = of_step == np.repeat(steps, steps) - 1
    for name, expected in _FLAGS.items():
        flag = flags[name]
        if flag is None:
            continue
        even = np.repeat(flag.lengths == steps, steps)  # others are reported already
        is_set = np.zeros(len(of_step), np.bool_)
        is_set[even] = np.asarray(flag.values)[np.repeat(flag.lengths == steps, flag.lengths)] != 0
        wrong = (
            is_set & ~is_last
            if name == _TERMINAL
            else is_set != (is_last if name == _LAST else of_step == 0)
        )
        wrong &= even
        rows = np.repeat(np.arange(len(steps)), steps)[wrong]
        wrong_steps, was_set = of_step[wrong], is_set[wrong]
        for row, first, count in zip(
            *map(np.ndarray.tolist, np.unique(rows, return_index=True, return_counts=True)),
            strict=True,
        ):
            more = f" and {format_count(count - 1, 'more step')}" if count > 1 else ""
            yield _error(
                Defect.EPISODE_FLAGS,
                f"feature {prefix + name!r} is wrong at step {wrong_steps[first]}{more}",
                row,
                found="set" if was_set[first] else "not set",
                expected=expected,
                feature=prefix + name,
            )


def _shape_error(key: str, count: int, expected: str, row: int) -> DataError:
    problem = f"feature {key!r} does not have values for each step"
    found = format_count(count, "value")
    return _error(Defect.FEATURE_SHAPE, problem, row, found=found, expected=expected, feature=key)


def _error(defect: Defect, problem: str, row: int, **about: Any) -> DataError:
    return CorruptDataError(defect, problem, record=row, **about)
