"""Finds the row of a table for each record of a dataset by a key.

Both sides are joined by 64-bit hashes of their keys: those of the table are sorted, and each match
is verified with the keys. An int64 key is its own hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, records_of
from recordsmith.format.example import (
    BytesArray,
    FeatureSchema,
    FeatureSpec,
    RaggedArray,
    context_as_example,
)
from recordsmith.format.example.keys import object_count_key
from recordsmith.format.example.payload import encode_key
from recordsmith.stores import ScratchFile, release_pages
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_option
from recordsmith.support.words import count as counted
from recordsmith.support.words import first_of, suggest_names
from recordsmith.support.work import Progress
from recordsmith.writing.layers.merging import select_in_block
from recordsmith.writing.layers.table_features import (
    PIECE_BYTES,
    ROWS_AT_ONCE,
    SHOWN,
    TableFeatures,
    TableValues,
    listed,
    value_text,
)

__all__ = ["POSITION", "JoinedRows", "TableValues", "join_table"]

POSITION = "position"
"""The key that counts the records of a dataset from 0."""

_COMPARED = 10_000  # rows without a record whose keys are compared in other ways
_EMPTY = b"\n\0"  # an Example whose map of features is empty


class JoinedRows:
    """The values of a table in the order of the records. Thread-safe. Made by `join_table`.

    features: what the values are of, sorted; also the texts of classes that follow their labels.
    class_names: of the dataset with the values.
    identity: a hash of the values, of the options, and of which record has which row.
    notices: what the user should know.
    missing_count: how many records lack a row or a value.
    """

    def __init__(self, join: _Join, identity: str, notices: list[str], lacks: Any) -> None:
        """`lacks`: whether each record lacks a value: bool, (records,)."""
        self.features = tuple(join.rows.features)
        self.class_names = join.rows.class_names
        self.identity = identity
        self.notices = tuple(notices)
        self.missing_count = int(np.count_nonzero(lacks))
        self._records, self._rows = records_of(join.dataset), join.rows
        self._row_of_record, self._lacks = join.row_of_record, lacks
        self._has_lists = "feature_lists" in join.dataset.schema.sections

    def blocks(self, start: int, stop: int) -> Iterator[tuple[BytesLike, Int64Array]]:
        """Yield an Example with the values of each of the records start:stop, in pieces.

        That of a record without a row, or with an empty cell in it, begins with the old values of
        all features, and is empty if there are none.

        Yields:
            (data, offsets) of the next Examples: data[offsets[i]:offsets[i + 1]].

        Raises:
            DataError: a record with old values is damaged.
        """
        rows = self._row_of_record[start:stop]
        lacks = self._lacks[start:stop] & bool(self._rows.known_features)
        olds = self._old_values(start + np.flatnonzero(lacks))
        for places in self._rows.pieces(rows):
            data, offsets = self._rows.encode(rows[places])
            if not lacks[places].any():
                yield data, offsets
                continue
            examples, size = [], 0
            for row, is_lacking in enumerate(lacks[places].tolist()):
                new = data[offsets[row] : offsets[row + 1]].tobytes()
                examples.append(next(olds) + new if is_lacking else new)
                size += len(examples[-1])
                if size >= PIECE_BYTES or row == len(places) - 1:
                    yield b"".join(examples), offsets_from_lengths([*map(len, examples)])
                    examples, size = [], 0

    def _old_values(self, positions: Int64Array) -> Iterator[bytes]:
        """Yield the features of some records that may change, without decoding them."""
        kept = {*map(encode_key, self._rows.known_features)}
        for located in self._records.pick(positions).blocks() if len(positions) else ():
            with located.located():
                for data in select_in_block(located.block, kept.__contains__):
                    old = context_as_example(data) if self._has_lists else bytes(data)
                    yield b"" if old == _EMPTY else old


def join_table(
    dataset: Dataset, values: TableValues, progress: Progress | None = None
) -> JoinedRows:
    """Find the row of each record, and check everything that can be wrong with the values.

    Reads the table, and the key of all records once.

    Args:
        progress: called as progress(done, total), in records.

    Raises:
        OptionError: a feature or a column does not exist or has an unsuitable kind; a key occurs
            twice; without `allow_missing`, a record has no row or value, or a row no record.
        SourceError: the table, or a value in a row that is used, is invalid.
        DataError: a record is damaged, or not an Example or SequenceExample.
        FileAccessError: the table cannot be read, or no temporary file written.
    """
    dataset.view.check_keys(())  # that the payloads have features
    known = dataset.schema.columns
    kind = _key_kind(known, values)
    is_mapping = isinstance(values.features, Mapping | None)
    check_option(is_mapping, "set", values.features, "columns by feature")
    rows = TableFeatures(values, known, dataset.class_names)
    join = _Join(rows, values, dataset, kind)
    join.match(progress)
    is_empty, digest = rows.survey(np.flatnonzero(join.is_used))
    join.check_objects()
    lacks = join.row_of_record < 0
    lacks |= is_empty[join.row_of_record]
    problems = [*join.problems(), *rows.empty_cells]
    if problems and not values.allow_missing:
        raise OptionError(
            "; ".join(problems),
            option="allow_missing",
            remedy=f"Complete the table, or pass {option('allow_missing', True)}: then records "
            "without a value keep what they have.",
        )
    digest.update(join.row_of_record.tobytes())
    digest.update(repr((values.on, values.on_name, rows.describe())).encode())
    return JoinedRows(join, digest.hexdigest(), [*rows.notices(), *problems], lacks)


def _key_kind(known: Mapping[str, FeatureSchema], values: TableValues) -> Any:
    """Return the kind of the key: int64 or bytes."""
    check_option(isinstance(values.on, str), "on", values.on, "FEATURE or FEATURE=COLUMN")
    feature, _ = values.key
    schema = known.get(feature)
    kind = "int64" if schema is None else schema.kind
    if schema is None and feature != POSITION:
        hint = suggest_names(feature, [*known, POSITION], "the records have no features")
        problem = f"no record has a feature {feature!r}; {hint}"
    elif schema is not None and feature == POSITION:
        problem = f"{POSITION!r} is ambiguous: the records have a feature of this name"
    elif schema is not None and schema.min_steps is not None:
        problem = f"the key {feature!r} is a feature list"
    elif kind not in ("int64", "bytes"):
        problem = f"the key {feature!r} has the kind {kind}"
    elif values.on_name and kind == "int64":
        problem = f"{option('on_name', True)} is for paths, and the key has integers"
    else:
        return kind
    expected = "a feature with one integer or text in each record"
    raise OptionError(problem, option="on", value=values.on, expected=expected)


class _Join:
    """The keys of a table, sorted by hash, and which record has which row.

    row_of_record: int64, (records,): -1 for none.
    is_used: bool, (rows,).
    """

    def __init__(
        self, rows: TableFeatures, values: TableValues, dataset: Dataset, kind: Any
    ) -> None:
        self.rows, self.dataset = rows, dataset
        self.row_of_record = np.full(len(dataset), -1, np.int64)
        self.is_used = np.zeros(len(rows), np.bool_)
        self._feature, self._column = values.key
        self._on_name, self._kind = values.on_name, kind
        self._unmatched: list[str] = []  # keys of the first records without a row
        self._unmatched_keys: list[Any] = []
        if rows.kinds[self._column] != self._kind:
            raise rows.kind_error("on", self._column, self._feature, self._kind)
        self._sort()

    def _sort(self) -> None:
        hashes, has_key = np.zeros(len(self.rows), np.uint64), np.zeros(len(self.rows), np.bool_)
        lengths, self._file = np.zeros(len(self.rows), np.int64), ScratchFile()
        for numbers in self.rows.pieces(np.arange(len(self.rows))):
            column, is_given = self.rows.decode(numbers, {self._column: self._kind})[self._column]
            for row in numbers[column.lengths > 1][:1].tolist():
                raise self.rows.error(row, f"key column {self._column!r} has several values")
            with_value, keys = numbers[column.lengths == 1], self._compared(column.values)
            if isinstance(keys, BytesArray):
                keys = keys.packed()
                self._file.append(memoryview(keys.buffer))  # type: ignore[arg-type]
                lengths[with_value] = keys.lengths
            hashes[with_value] = _hashes(keys)
            has_key[numbers] = is_given & (column.lengths == 1)
        self._has_key = has_key
        self._map = self._file.map() if lengths.any() else None
        self._offsets = offsets_from_lengths(lengths)
        del lengths
        self._numbers = np.flatnonzero(has_key)
        self._numbers = self._numbers[np.argsort(hashes[self._numbers], kind="stable")]
        self._hashes = hashes[self._numbers]
        if len(same := np.flatnonzero(self._hashes[1:] == self._hashes[:-1])):
            pair = same[np.argmin(self._numbers[same + 1])]
            twins = self._numbers[pair : pair + 2].tolist()
            keys, places = [*map(self._key_text, twins)], [*map(self.rows.place, twins)]
            self._refuse_twins(keys, places)

    def _refuse_twins(self, keys: list[str], places: list[str]) -> NoReturn:
        problem = f"key {keys[0]} occurs twice: in {places[0]} and in {places[1]}"
        if keys[0] != keys[1]:
            problem = f"the keys {keys[0]} in {places[0]} and {keys[1]} in {places[1]} hash alike"
        remedy = "Remove one of them, or join by another key."
        raise OptionError(problem, option="on", remedy=remedy)

    def _compared(self, keys: Any) -> Any:
        return _last_parts(keys) if self._on_name else keys

    def _key_text(self, row: int) -> str:
        """Return the key of a row for messages."""
        column, _ = self.rows.decode(np.array([row]), {self._column: self._kind})[self._column]
        keys = self._compared(column.values)
        return value_text(keys[0]) if len(keys) else f"no key ({self.rows.place(row)})"

    def match(self, progress: Progress | None) -> None:
        """Find the row of each record; OptionError for two records with one row."""
        start = 0
        for column in self._columns():
            lengths = column.lengths
            for position in np.flatnonzero(lengths > 1)[:1] + start:
                problem = f"{self._place(position)} has several values of the key {self._feature!r}"
                raise OptionError(problem, option="on", expected="one")
            positions, keys = start + np.flatnonzero(lengths == 1), self._compared(column.values)
            rows = self._find(keys)
            self._assign(positions[rows >= 0], rows[rows >= 0], keys[rows >= 0])
            if len(self._unmatched) < SHOWN:
                without = np.flatnonzero(self.row_of_record[start : start + len(column)] < 0)
                for row in without[: SHOWN - len(self._unmatched)].tolist():
                    key = self._compared(column[row : row + 1].values)
                    no_key = f"no key ({self._place(start + row)})"
                    self._unmatched.append(value_text(key[0]) if len(key) else no_key)
                    self._unmatched_keys += [key[0]] if len(key) else []
            start += len(column)
            if progress is not None:
                progress(start, len(self.dataset))
        beyond = self._numbers[~self.is_used[self._numbers]]
        if self._feature == POSITION and len(beyond):
            row, expected = int(beyond.min()), f"positions below {len(self.dataset):,}"
            raise self.rows.error(row, f"found {self._key_text(row)}; expected {expected}")
        del self._numbers, self._hashes, self._offsets  # much memory

    def check_objects(self) -> None:
        """Check that features of objects have a value for each; SourceError for other numbers."""
        columns, known = self.rows.columns_of_objects, self.dataset.schema.columns
        count_key = object_count_key(known.keys() - columns.keys())
        if not columns or count_key is None:
            return
        kinds = {name: self.rows.kinds[name] for name in columns.values()}
        specs = {count_key: FeatureSpec(shape="ragged")}
        start = 0
        for batch in self.dataset.batches(ROWS_AT_ONCE, specs):
            column: Any = batch[count_key]
            counts = column.lengths
            numbers = self.row_of_record[start : start + len(counts)]
            places = np.flatnonzero(numbers >= 0)
            for part in self.rows.pieces(numbers[places]):
                found = places[part]
                decoded = self.rows.decode(numbers[found], kinds)
                for feature, name in columns.items():
                    values, is_given = decoded[name]
                    for wrong in np.flatnonzero(is_given & (values.lengths != counts[found]))[:1]:
                        at = int(found[wrong])
                        raise self.rows.error(
                            int(numbers[at]),
                            f"column {name!r} has {counted(int(values.lengths[wrong]), 'value')} "
                            f"for {feature!r}, but {self._place(start + at)} has "
                            f"{counted(int(counts[at]), 'object')}: expected one value for each, "
                            "as a list in JSON Lines or Parquet",
                        )
            start += len(counts)

    def _columns(self) -> Iterator[Any]:
        """Yield the keys of the records as RaggedArrays."""
        if self._feature == POSITION:
            for start in range(0, len(self.dataset), ROWS_AT_ONCE):
                positions = np.arange(start, min(start + ROWS_AT_ONCE, len(self.dataset)))
                yield RaggedArray(positions, np.arange(len(positions) + 1))
            return
        specs = {self._feature: FeatureSpec(self._kind, "ragged")}
        for columns in self.dataset.batches(ROWS_AT_ONCE, specs):
            yield columns[self._feature]

    def _find(self, keys: Any) -> Int64Array:
        """Return the row of each key, -1 for none."""
        hashes = _hashes(keys)
        if not len(self._hashes):
            return np.full(len(hashes), -1)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        rows = np.where(self._hashes[places] == hashes, self._numbers[places], -1)
        if isinstance(keys, BytesArray):
            alike = np.flatnonzero(rows >= 0)
            content = np.frombuffer(self._map or b"", np.uint8)
            differ = BytesArray(content, self._offsets, rows[alike]) != keys[alike]
            rows[alike[differ]] = -1
            if self._map is not None:
                release_pages(self._map)
        return rows

    def _assign(self, positions: Int64Array, rows: Int64Array, keys: Any) -> None:
        is_again = np.ones(len(rows), np.bool_)
        is_again[np.unique(rows, return_index=True)[1]] = False
        again = np.flatnonzero(is_again | self.is_used[rows])
        self.row_of_record[positions] = rows
        self.is_used[rows] = True
        if len(again):
            twins = np.flatnonzero(self.row_of_record == rows[again[0]])[:2]
            self._refuse_twins([value_text(keys[int(again[0])])] * 2, [*map(self._place, twins)])

    def _place(self, position: Any) -> str:
        shard, number, _ = next(records_of(self.dataset).pick([int(position)]).payloads())
        return f"record {number:,} of {shard.location}"

    def problems(self) -> Iterator[str]:
        """Yield what has no partner; raise OptionError if nothing has one."""
        unused = np.flatnonzero(~self.is_used)
        keyless = unused[~self._has_key[unused]]
        for places in self.rows.pieces(keyless):  # such as those that Excel leaves at the end
            self.is_used[keyless[places]] = self.rows.are_blank(keyless[places])
        unused = unused[~self.is_used[unused]]
        shown = [self._key_text(row) for row in unused[:SHOWN].tolist()]
        where = f"in {self.rows.location}"
        if (self.row_of_record < 0).all():
            raise OptionError(
                f"no record has a row {where}: records have keys such as "
                f"{first_of(self._unmatched[:2], 2)}; rows {first_of(shown[:2], 2)}",
                option="on",
                remedy=self._almost_equal(unused)
                or f"If only the folders differ, pass {option('on_name', True)}.",
            )
        if missing_count := int(np.count_nonzero(self.row_of_record < 0)):
            what = f"{counted(missing_count, 'record')} without a row {where}"
            yield f"{what}: {listed(self._unmatched, missing_count)}"
        if len(unused):
            what = f"{counted(len(unused), 'row')} without a record"
            yield f"{what}: {listed(shown, len(unused))}"
        if note := self._almost_equal(unused):
            yield note

    def _almost_equal(self, unused: Int64Array) -> str:
        """Return a sentence if first records without a row have one but for how it is written."""
        if self._kind != "bytes" or not self._unmatched_keys:
            return ""
        some = unused[:_COMPARED]
        column, _ = self.rows.decode(some, {self._column: self._kind})[self._column]
        spelt = {_plain(key): key for key in self._compared(column.values).tolist()}
        for key in self._unmatched_keys:
            if (other := spelt.get(_plain(key))) is not None:
                return (
                    f"{value_text(key)} and {value_text(other)} differ only in case, blanks or the "
                    "form of Unicode: write the keys of the table as the records have them"
                )
        return ""


def _plain(key: bytes) -> str:
    return normalize("NFC", key.decode("utf-8", "surrogateescape")).casefold().strip()


def _hashes(keys: Any) -> npt.NDArray[np.uint64]:
    if isinstance(keys, BytesArray):
        return keys.hashes()
    return np.ascontiguousarray(keys).view(np.uint64)


def _last_parts(paths: BytesArray) -> BytesArray:
    """Return what follows the last slash or backslash of each path."""
    starts, stops = paths.spans()
    after = np.flatnonzero((paths.buffer == ord("/")) | (paths.buffer == ord("\\"))) + 1
    last = np.append(0, after)[np.searchsorted(after, stops, "right")]
    spans = np.stack((np.maximum(starts, last), stops), axis=1).reshape(-1)
    return BytesArray(paths.buffer, spans, np.arange(0, len(spans), 2))
