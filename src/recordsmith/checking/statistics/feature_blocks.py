"""Decodes the features of neighboring Examples, or feature lists, to arrays of values, by kind.

Uses the compiled column decoder; without copying the bytes of Examples. Features with several kinds
in these records, and lists that occur twice in a record, are decoded record by record, which is
twenty times slower. Very long lists of a single record are decoded in pieces, so that memory does
not grow with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    InnerSpans,
    Kind,
    RaggedArray,
    decode_example,
    decode_sequence_example,
    delimited,
    field_spans,
)
from recordsmith.format.example.kernel.survey import FeatureSurvey
from recordsmith.format.example.payload import KIND_NAMES, KIND_NUMBERS, decode_key
from recordsmith.format.example.schema import UNBOUNDED
from recordsmith.format.example.spans import join_payloads, map_entries, payload_views, whole
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import CorruptDataError, Defect

Values = npt.NDArray[Any] | BytesArray


@dataclass
class FeatureBlock:
    """One feature in some records.

    present: number of records that have it.
    records: number of records by kind; a feature list with steps of several kinds counts for each.
    lengths: int64: number of values per record that has the feature, or per step of a feature list.
    steps: int64, (present,): number of steps per record of a feature list; otherwise None.
    values: all values, by kind.
    rows: int64: for the values of each kind, the records they are in.
    contents: number of bytes values that are raw, text and images.
    value_bytes: total size of the values in bytes.
    long_list: yields the values of a very long list of a single record, which `values` and `rows`
        lack.
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
    long_list: Callable[[], Iterator[tuple[Kind, Values]]] | None = None

    def pieces(self) -> Iterator[Piece]:
        """Yield all values, in pieces of bounded size where that is possible."""
        if self.long_list is None:
            yield from (
                Piece(kind, values, self.rows[kind]) for kind, values in self.values.items()
            )
            return
        first = 0
        for kind, values in self.long_list():
            yield Piece(kind, values, np.zeros(len(values), np.int64), first)
            first += len(values)

    def numbers(self, kind: Kind) -> tuple[npt.NDArray[Any], Int64Array] | None:
        """Return all values of a kind of numbers, and their rows; None without any."""
        found = [(piece.values, piece.rows) for piece in self.pieces() if piece.kind == kind]
        if not found:
            return None
        values, rows = map(np.concatenate, zip(*found, strict=True))
        return values, rows


class Piece(NamedTuple):
    """Some values of a feature.

    rows: the record of each.
    first: the number of the first value in its record.
    """

    kind: Kind
    values: Values
    rows: Int64Array
    first: int = 0


Takes: TypeAlias = Callable[[str], bool]
"""Returns whether a feature is wanted; called in the order of first occurrence."""

CELLS_AT_A_TIME = 1 << 20
"""Columns have one cell per record and feature, present or not."""

FEATURES_AT_A_TIME = 1 << 14
"""How many different features are counted at once, wanted or not: about a kilobyte each."""

MANY_VALUES = 1 << 18
"""Of a list in one record: longer ones are decoded in pieces."""

_PIECE_BYTES = 1 << 20
_DELIMITED_1 = 0x0A  # the tag of bytes, or packed numbers, in field 1

LISTS_FIELD = 2
"""The field number of the feature lists in a SequenceExample."""


def example_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, takes: Takes
) -> dict[str, FeatureBlock] | None:
    """Decode the features of the Examples at buffer[starts[i]:starts[i] + lengths[i]], by key.

    Bytes values are views of the buffer. Returns None if there are too many features, or too many
    features times records, for the memory limit: pass fewer or `narrowed` records.
    """
    blocks, spans = {}, {}
    kinds_of: dict[str, list[Any]] = {}
    surveyed = survey_blocks(buffer, starts, lengths, 1, takes)
    if surveyed is None:
        return None
    for block, span in surveyed:
        blocks[block.key], spans[block.key] = block, span
        kinds_of[block.key] = [kind for kind in block.records if kind != "none"]
    for key in [key for key, span in spans.items() if len(starts) == 1 and span[1] > MANY_VALUES]:
        content = _list_of(buffer, starts, lengths, key, kinds_of[key])
        if content is not None:
            (kind,) = kinds_of.pop(key)
            blocks[key].lengths = np.full(1, spans[key][1], np.int64)
            blocks[key].long_list = partial(_decoded_pieces, content, kind)
    single: dict[str, FeatureSpec | None] = {
        key: FeatureSpec(kinds[0], "ragged") for key, kinds in kinds_of.items() if len(kinds) == 1
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
                for payload in payload_views(buffer, starts, lengths)
            ),
            has_steps=False,
        )
    return blocks


def _list_of(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, key: str, kinds: Sequence[Kind]
) -> memoryview | None:
    """Return the encoded list of a feature in one Example; None if it is in several parts."""
    if len(kinds) != 1:
        return None
    entries = map_entries(buffer, starts, lengths, 1)
    keys = field_spans(buffer, entries.starts, entries.lengths, 1)
    if not np.array_equal(keys.owners, np.arange(len(entries.owners))):
        return None
    names = payload_views(buffer, keys.starts, keys.lengths)
    numbers = [number for number, name in enumerate(names) if decode_key(bytes(name)) == key]
    spans = entries.starts[numbers], entries.lengths[numbers]
    for field_number in (2, KIND_NUMBERS[kinds[0]]):
        found = field_spans(buffer, *spans, field_number)
        spans = found.starts, found.lengths
    return next(payload_views(buffer, *spans)) if len(numbers) == len(spans[0]) == 1 else None


def _decoded_pieces(content: memoryview, kind: Kind) -> Iterator[tuple[Kind, Values]]:
    """Decode a list in pieces, each as an Example."""
    cut = _cut_bytes if kind == "bytes" else partial(_cut_numbers, width=4 * (kind == "float"))
    for piece in cut(content):
        feature = delimited(1, b"x"), delimited(2, delimited(KIND_NUMBERS[kind], piece))
        payload = delimited(1, delimited(1, *feature))
        decoder = ColumnDecoder({"x": FeatureSpec(kind, "ragged")}, borrowed=["x"])
        decoder.append(payload, *whole(memoryview(payload)))
        column: Any = decoder.finish()["x"]
        yield kind, column.values


def _cut_bytes(content: memoryview) -> Iterator[memoryview]:
    """Cut an encoded list of byte strings between values."""
    size = _PIECE_BYTES
    while content:
        window = content[:size]
        found = field_spans(window, *whole(window), 1)
        if len(found.starts):
            stop = int(found.starts[-1] + found.lengths[-1])
            yield content[:stop]
            content, size = content[stop:], _PIECE_BYTES
        elif size >= len(content):
            return
        else:
            size *= 2


def _cut_numbers(content: memoryview, width: int) -> Iterator[BytesLike]:
    """Cut an encoded list of packed numbers between values; `width` is 0 for variable lengths."""
    while content and content[0] == _DELIMITED_1:
        head, size = 1, 0
        while True:
            byte = content[head]
            size |= (byte & 127) << 7 * (head - 1)
            head += 1
            if byte < 128:
                break
        packed, content = content[head : head + size], content[head + size :]
        while packed:
            stop = min(_PIECE_BYTES, len(packed))
            if not width:
                stop = 1 + int(np.flatnonzero(np.frombuffer(packed[:stop], np.uint8) < 128)[-1])
            yield delimited(1, packed[:stop])
            packed = packed[stop:]
    if content:
        yield content  # numbers that are not packed


def list_blocks(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, takes: Takes
) -> dict[str, FeatureBlock] | None:
    """Decode the feature lists of the SequenceExamples at buffer[starts[i]:starts[i] + lengths[i]],
    by name; returns None and raises as `example_blocks` does.
    """
    surveyed = survey_blocks(buffer, starts, lengths, LISTS_FIELD, takes)
    if surveyed is None:
        return None
    blocks = {block.key: block for block, _ in surveyed}
    lists = _lists_by_name(buffer, starts, lengths)
    odd = {
        key
        for key, block in blocks.items()
        if key not in lists or not _take_steps(block, buffer, lists[key])
    }
    if odd:
        decoded = map(decode_sequence_example, payload_views(buffer, starts, lengths))
        rows = (
            {key: steps for key, steps in example.feature_lists.items() if key in odd}
            for example in decoded
        )
        take_rows(blocks, rows, has_steps=True)
    return blocks


def _lists_by_name(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> dict[str, InnerSpans]:
    """Find each list: one span for each record that has it. Skips lists that occur twice in a
    record or are encoded unusually.
    """
    entries = map_entries(buffer, starts, lengths, LISTS_FIELD)
    keys, lists = (field_spans(buffer, entries.starts, entries.lengths, n) for n in (1, 2))
    numbers = np.arange(len(entries.owners))
    if not (np.array_equal(keys.owners, numbers) and np.array_equal(lists.owners, numbers)):
        return {}
    by_name: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, key in enumerate(payload_views(buffer, keys.starts, keys.lengths)):
        by_name[bytes(key)].append(number)
    found = {}
    for name, places in by_name.items():
        owners = entries.owners[places]
        if (owners[1:] > owners[:-1]).all():
            spans = lists.starts[places], lists.lengths[places]
            found[decode_key(name)] = InnerSpans(owners, *spans)
    return found


def _take_steps(block: FeatureBlock, buffer: BytesLike, lists: InnerSpans) -> bool:
    """Decode the values of a feature list, each step as an Example; False for several kinds."""
    kinds: list[Any] = [kind for kind in block.records if kind != "none"]
    steps = field_spans(buffer, lists.starts, lists.lengths, 1)
    if len(kinds) > 1:
        return False
    block.lengths = np.zeros(len(steps.owners), np.int64)
    block.steps = np.bincount(steps.owners, minlength=len(lists.owners))
    if not kinds or not len(steps.owners):
        return True
    (kind,) = kinds
    if len(lists.owners) == 1 and steps.lengths.sum() > _PIECE_BYTES:
        columns = _step_columns(buffer, steps, kind)
        block.lengths = np.concatenate([column.lengths for column in columns])
        block.long_list = lambda: (
            (kind, column.values[start : start + MANY_VALUES])
            for column in _step_columns(buffer, steps, kind)
            for start in range(0, len(column.values), MANY_VALUES)
        )
        return True
    column = _step_column(buffer, steps.starts, steps.lengths, kind)
    block.lengths = column.lengths
    if len(column.values):
        block.values[kind] = column.values
        block.rows[kind] = np.repeat(lists.owners[steps.owners], block.lengths)
    return True


def _step_columns(buffer: BytesLike, steps: InnerSpans, kind: Kind) -> Iterator[RaggedArray]:
    """Decode the steps of one feature list, some at a time."""
    numbers = np.cumsum(steps.lengths) // _PIECE_BYTES
    bounds = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)).tolist()
    for start, stop in pairwise(bounds):
        some = slice(start, stop)
        yield _step_column(buffer, steps.starts[some], steps.lengths[some], kind)


def _step_column(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, kind: Kind
) -> RaggedArray:
    """Decode steps, each as an Example."""
    name = delimited(1, b"step")
    examples = [
        delimited(1, delimited(1, name, delimited(2, step)))
        for step in payload_views(buffer, starts, lengths)
    ]
    decoder = ColumnDecoder({"step": FeatureSpec(kind, "ragged")})
    decoder.append(*join_payloads(examples))
    column: Any = decoder.finish()["step"]
    return column  # type: ignore[no-any-return]


def survey_blocks(
    buffer: BytesLike,
    starts: Int64Array,
    lengths: Int64Array,
    field: int,
    takes: Takes,
) -> list[tuple[FeatureBlock, tuple[int, int]]] | None:
    """Return each wanted feature without its values, and the shortest and longest length of its
    lists. None if there are too many features.
    """
    survey = FeatureSurvey(FEATURES_AT_A_TIME, UNBOUNDED)
    done = survey.update(buffer, starts, lengths, field, field == LISTS_FIELD)
    if done < len(starts):
        raise CorruptDataError(
            Defect.MALFORMED_EXAMPLE, "the payload is not well-formed", record=done
        )
    if not survey.settle():
        return None
    blocks = []
    for key, kinds, contents, present, span, _, value_bytes, _ in survey.finish():
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
    lengths = np.sort(lengths)  # records without the feature have no values
    block.lengths = lengths[len(lengths) - block.present :]


def take_rows(
    blocks: Mapping[str, FeatureBlock],
    rows: Iterable[Mapping[str, Sequence[Any]]],
    *,
    has_steps: bool,
) -> None:
    """Add values that were decoded record by record, as a list of steps for each feature."""
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
