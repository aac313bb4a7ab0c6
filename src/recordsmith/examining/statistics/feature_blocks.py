"""The features of some neighbouring records -> values of one kind each, as arrays.

Examples go through the compiled column decoder, without copying bytes. What that cannot do is
decoded record by record, which takes twenty times as long: SequenceExamples, and features that have
one kind in some of these records and another in others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    Kind,
    RaggedArray,
    decode_example,
    decode_sequence_example,
)
from recordsmith.example.kernel.survey import FeatureSurvey
from recordsmith.example.payload import KIND_NAMES

Values = npt.NDArray[Any] | BytesArray


@dataclass
class FeatureBlock:
    """One feature in some records.

    present: how many of them have it; records: of each kind, how many. In a feature list steps of
        different kinds make a record count for each.
    lengths: int64: how many values each list has: of each record that has the feature, of a feature
        list of each step.
    steps: int64, (present,), of a feature list: how many steps each record has; else None.
    values: all of them, by kind.
    rows: int64, for the values of each kind: in which of these records they are.
    contents: how many bytes values are raw, text, pictures.
    value_bytes: how many bytes the values take.
    """

    key: str
    present: int
    records: dict[str, int]
    contents: list[int]
    value_bytes: int
    lengths: Int64Array
    steps: Int64Array | None = None
    values: dict[Kind, Values] = field(default_factory=dict)
    rows: dict[Kind, Int64Array] = field(default_factory=dict)


CELLS_AT_A_TIME = 1 << 20
"""Columns have a cell in each record for each feature, whether it is there or not."""


def example_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> dict[str, FeatureBlock] | None:
    """The features of the Examples at buffer[starts[i]:starts[i] + lengths[i]], by key.

    Their bytes are views of the buffer. None if columns of so many features and records would take
    too much memory, with more than CELLS_AT_A_TIME cells: ask for fewer records.

    Raises:
        CorruptDataError: a payload does not hold together; its position counts these payloads.
    """
    blocks, kinds_of, spans = {}, {}, {}
    for block, span in _survey(buffer, starts, lengths, 1, has_steps=False):
        blocks[block.key], spans[block.key] = block, span
        kinds_of[block.key] = [kind for kind in block.records if kind != "none"]
    single: dict[str, FeatureSpec | None] = {
        key: FeatureSpec(kinds[0], "ragged")  # type: ignore[arg-type]
        for key, kinds in kinds_of.items()
        if len(kinds) == 1
    }
    if len(single) * len(starts) > CELLS_AT_A_TIME and len(starts) > 1:
        return None
    if single:
        decoder = ColumnDecoder(single, borrowed=single)
        decoder.append(buffer, starts, lengths)
        for key, column in decoder.finish().items():
            assert isinstance(column, RaggedArray)
            _take_column(blocks[key], column, spans[key])
    mixed = {key for key, kinds in kinds_of.items() if len(kinds) > 1}
    if mixed:
        _take_rows(
            blocks,
            (
                {key: [value] for key, value in decode_example(payload).items() if key in mixed}
                for payload in _payloads(buffer, starts, lengths)
            ),
            has_steps=False,
        )
    return blocks


def sequence_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> tuple[dict[str, FeatureBlock], dict[str, FeatureBlock]]:
    """(context, feature_lists) of the SequenceExamples there.

    Raises:
        CorruptDataError: as in `example_blocks`.
    """
    context = {
        block.key: block for block, _ in _survey(buffer, starts, lengths, 1, has_steps=False)
    }
    lists = {block.key: block for block, _ in _survey(buffer, starts, lengths, 2, has_steps=True)}
    decoded = [decode_sequence_example(payload) for payload in _payloads(buffer, starts, lengths)]
    _take_rows(
        context,
        ({key: [value] for key, value in example.context.items()} for example in decoded),
        has_steps=False,
    )
    _take_rows(lists, (example.feature_lists for example in decoded), has_steps=True)
    return context, lists


def _survey(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, message: int, *, has_steps: bool
) -> Iterator[tuple[FeatureBlock, tuple[int, int]]]:
    """Each feature without its values, and the least and the largest length of its lists."""
    survey = FeatureSurvey()
    done = survey.update(buffer, starts, lengths, message, has_steps)
    if done < len(starts):
        raise CorruptDataError(
            Defect.MALFORMED_EXAMPLE, "the payload is not well-formed", position=done
        )
    for key, kinds, contents, present, span, _, value_bytes in survey.finish():
        records = {name: count for name, count in zip(KIND_NAMES, kinds, strict=True) if count}
        block = FeatureBlock(
            key.decode("utf-8", "surrogateescape"),
            present,
            records,
            contents,
            value_bytes,
            np.zeros(present, np.int64),
        )
        yield block, span


def _take_column(block: FeatureBlock, column: RaggedArray, span: tuple[int, int]) -> None:
    kind: Any = next(kind for kind in block.records if kind != "none")
    lengths = column.lengths
    rows = np.arange(len(lengths))
    block.values[kind] = column.values
    if span == (1, 1) and block.present == len(lengths):
        block.lengths, block.rows[kind] = lengths, rows
        return
    block.rows[kind] = np.repeat(rows, lengths)
    lengths = np.sort(lengths)  # records without the feature have no values either
    block.lengths = lengths[len(lengths) - block.present :]


def _take_rows(
    blocks: Mapping[str, FeatureBlock],
    rows: Iterable[Mapping[str, Sequence[Any]]],
    *,
    has_steps: bool,
) -> None:
    """Add values that were decoded record by record: of each feature a list of steps."""
    steps: defaultdict[str, list[int]] = defaultdict(list)
    lengths: defaultdict[str, list[int]] = defaultdict(list)
    pieces: defaultdict[tuple[str, Kind], list[Any]] = defaultdict(list)
    places: defaultdict[tuple[str, Kind], list[int]] = defaultdict(list)
    for row, features in enumerate(rows):
        for key, lists in features.items():
            steps[key].append(len(lists))
            for values in lists:
                lengths[key].append(len(values))
                if len(values):
                    kind = _kind_of(values)
                    pieces[key, kind].append(values)
                    places[key, kind] += [row] * len(values)
    for key in steps:
        blocks[key].lengths = np.array(lengths[key], np.int64)
        if has_steps:
            blocks[key].steps = np.array(steps[key], np.int64)
    for (key, kind), lists in pieces.items():
        if kind == "bytes":
            joined: Values = BytesArray.from_values([value for values in lists for value in values])
        else:
            joined = np.concatenate(lists)
        blocks[key].values[kind] = joined
        blocks[key].rows[kind] = np.array(places[key, kind], np.int64)


def _kind_of(values: Any) -> Kind:
    if isinstance(values, np.ndarray):
        return "int64" if values.dtype == np.int64 else "float"
    return "bytes"


def _payloads(buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> Iterator[memoryview]:
    view = as_view(buffer)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        yield view[start : start + length]
