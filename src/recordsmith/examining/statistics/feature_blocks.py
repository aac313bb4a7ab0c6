"""The features of some neighbouring Examples -> values of one kind each, as arrays.

They go through the compiled column decoder, without copying bytes. What that cannot do is decoded
record by record, which takes twenty times as long: features that have one kind in some of these
records and another in others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    Kind,
    RaggedArray,
    decode_example,
)
from recordsmith.example.kernel.survey import FeatureSurvey
from recordsmith.example.payload import KIND_NAMES, decode_key
from recordsmith.example.schema import UNBOUNDED
from recordsmith.example.spans import payloads_of

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


Takes: TypeAlias = Callable[[str], bool]
"""Says of the name of a feature whether it is wanted; asked in the order in which they come."""

CELLS_AT_A_TIME = 1 << 20
"""Columns have a cell in each record for each feature, whether it is there or not."""

FEATURES_AT_A_TIME = 1 << 14
"""So many different ones are counted at once, wanted or not: each takes a kilobyte meanwhile."""

LISTS_FIELD = 2
"""Of a SequenceExample: where its feature lists are."""


def example_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, takes: Takes
) -> dict[str, FeatureBlock] | None:
    """The features of the Examples at buffer[starts[i]:starts[i] + lengths[i]], by key.

    Their bytes are views of the buffer. None if so many features, or columns of so many features
    and records, would take too much memory: ask for fewer records, and `narrowed` ones.

    Raises:
        CorruptDataError: a payload does not hold together; its position counts these payloads.
    """
    blocks, kinds_of, spans = {}, {}, {}
    surveyed = survey_blocks(buffer, starts, lengths, 1, takes)
    if surveyed is None:
        return None
    for block, span in surveyed:
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
        take_rows(
            blocks,
            (
                {key: [value] for key, value in decode_example(payload).items() if key in mixed}
                for payload in payloads_of(buffer, starts, lengths)
            ),
            has_steps=False,
        )
    return blocks


def survey_blocks(
    buffer: BytesLike,
    starts: Int64Array,
    lengths: Int64Array,
    field: int,
    takes: Takes,
) -> list[tuple[FeatureBlock, tuple[int, int]]] | None:
    """Each feature that is wanted without its values, and the least and the largest length of its
    lists. None if there are too many features.
    """
    survey = FeatureSurvey(FEATURES_AT_A_TIME, UNBOUNDED)
    done = survey.update(buffer, starts, lengths, field, field == LISTS_FIELD)
    if done < len(starts):
        raise CorruptDataError(
            Defect.MALFORMED_EXAMPLE, "the payload is not well-formed", position=done
        )
    if not survey.settle():
        return None
    blocks = []
    for key, kinds, contents, present, span, _, value_bytes in survey.finish():
        name = decode_key(key)
        if takes(name):
            records = {kind: count for kind, count in zip(KIND_NAMES, kinds, strict=True) if count}
            no_lengths = np.zeros(present, np.int64)
            block = FeatureBlock(name, present, records, contents, value_bytes, no_lengths)
            blocks.append((block, span))
    return blocks


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


def take_rows(
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
