"""Finds the row of a table for each record of a dataset by a key, and encodes its values.

Both sides are joined by 64-bit hashes of their keys: those of the table are sorted, and each match
is verified with the keys. An int64 key is its own hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import ArrowStream, ClassNames, Dataset, class_names_of, records_of
from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    ColumnEncoder,
    FeatureSchema,
    FeatureSpec,
    Kind,
    RaggedArray,
    valid_rows,
)
from recordsmith.format.example.keys import is_class_key
from recordsmith.format.example.payload import encode_key
from recordsmith.format.example.spans import select_features
from recordsmith.format.wire import FRAME_BYTES, HEADER_BYTES
from recordsmith.sources import CsvRows, TableRows, check_class_names, encode_table, open_rows
from recordsmith.stores import PlaceLike, ScratchFile, as_location, release_pages
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.words import count as counted
from recordsmith.support.words import first_of, suggest_names
from recordsmith.support.work import Progress

POSITION = "position"
"""The key that counts the records of a dataset from 0."""

_ROWS_AT_ONCE = 1 << 13
_PIECE_BYTES = 4 << 20
_SHOWN = 5
_SHOWN_NAMES = 20
_WHOLE_FLOATS = 1 << 24  # larger ones may have been rounded to float32

Mask = npt.NDArray[np.bool_]


class TableValues(msgspec.Struct, frozen=True):
    """Values of a table for features of records, and how rows find their records.

    table: one file (CSV, TSV, JSON Lines, Parquet, Feather, Arrow), or a table in memory.
    features: the column of each feature; None for all columns but the key, by their own names.
    on: "FEATURE" or "FEATURE=COLUMN"; "position" or "position=COLUMN" for the positions of records.
    on_name: whether to compare only the last parts of paths, on both sides.
    allow_missing: whether records may lack a row or a value, and rows a record. Such records keep
        what they have.
    """

    table: PlaceLike | ArrowStream
    features: Mapping[str, str] | None
    on: str
    on_name: bool = False
    allow_missing: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The feature and the column of the key."""
        feature, _, column = self.on.partition("=")
        return feature, column or feature


class JoinedRows:
    """The values of a table in the order of the records. Thread-safe. Made by `join_table`.

    features: what the values are of, sorted; also the texts of classes that follow their labels.
    class_names: of the dataset with the values.
    identity: a hash of the values, of the options, and of which record has which row.
    notices: what the user should know.
    missing_count: how many records lack a row or a value.
    """

    def __init__(
        self,
        dataset: Dataset,
        rows: _ValueRows,
        row_of_record: Int64Array,
        lacks: Mask,
        old: Iterable[str],
        identity: str,
        notices: Sequence[str],
    ) -> None:
        """
        Args:
            row_of_record: int64, (records,): -1 for none.
            lacks: whether each record keeps some old values.
            old: the features that records may have already.
        """
        self.features = tuple(sorted(rows.features))
        self.class_names = rows.class_names
        self.identity = identity
        self.notices = tuple(notices)
        self.missing_count = int(np.count_nonzero(lacks))
        self._records = records_of(dataset)
        self._rows, self._row_of_record, self._lacks = rows, row_of_record, lacks
        self._old = frozenset(old)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[BytesLike, Int64Array]]:
        """Yield an Example with the values of each of the records start:stop, in pieces.

        A record without a row, or with an empty cell in it, has its old values of all features
        first. Without any, its Example is empty.

        Yields:
            (data, offsets) of the next Examples: data[offsets[i]:offsets[i + 1]].

        Raises:
            DataError: a record with old values is damaged.
        """
        lacks = self._lacks[start:stop] & bool(self._old)
        olds = self._old_values(start + np.flatnonzero(lacks))
        for numbers in self._rows.pieces(self._row_of_record[start:stop]):
            some = self._row_of_record[start + numbers[0] : start + numbers[-1] + 1]
            data, offsets = self._rows.encode(some)
            if not lacks[numbers].any():
                yield data, offsets
                continue
            examples, size = [], 0
            for row, lacks_some in enumerate(lacks[numbers].tolist()):
                old = next(olds) if lacks_some else b""
                examples.append(old + data[offsets[row] : offsets[row + 1]].tobytes())
                size += len(examples[-1])
                if size >= _PIECE_BYTES or row == len(numbers) - 1:
                    yield b"".join(examples), offsets_from_lengths([*map(len, examples)])
                    examples, size = [], 0

    def _old_values(self, positions: Int64Array) -> Iterator[bytes]:
        if len(positions):
            for _, _, payload in self._records.pick(positions).payloads():
                yield select_features(payload, self._old.__contains__, (1,))


def join_table(
    dataset: Dataset, values: TableValues, progress: Progress | None = None
) -> JoinedRows:
    """Find the row of each record, and check everything that can be wrong with the values.

    Reads the table and the key of all records once. Memory: about 70 bytes a row and 9 a record.

    Args:
        progress: called as progress(done, total), in records.

    Raises:
        OptionError: a feature or a column does not exist or has an unsuitable kind; a key occurs
            twice; without `allow_missing`, a record has no row or value, or a row no record.
        SourceError: the table is invalid, or a row that is used.
        CorruptDataError: a record is damaged.
        FileAccessError: the table cannot be read, or no temporary file written.
    """
    schema = dataset.schema
    dataset.view.check_keys(())  # the payloads have features
    in_steps = schema.sections.get("feature_lists", {})
    known = {**schema.features, **schema.sections.get("context", {})}
    feature, _ = values.key
    if feature == POSITION and POSITION in schema.columns:
        raise OptionError(
            f"the records have a feature {POSITION!r}, so it is not clear what it means",
            option="on",
            value=values.on,
            remedy="Rename the feature first.",
        )
    if feature != POSITION:
        _check_key(feature, known, in_steps, values)
    rows = _ValueRows(values, known, dataset.class_names)
    for name in rows.features:
        if name in in_steps:
            raise OptionError(
                f"{name!r} is a feature list of SequenceExamples; values of a table are features "
                "of whole records",
                option="set",
                value=name,
            )
    keys = _Keys(rows, values, "int64" if feature == POSITION else known[feature].kind)
    if feature == POSITION:
        match = keys.match_positions(len(dataset))
    else:
        match = keys.match_records(dataset, feature, progress)
    is_empty, digest = rows.survey(np.flatnonzero(match.is_used))
    has_row = match.row_of_record >= 0
    lacks = ~has_row
    lacks[has_row] = is_empty[match.row_of_record[has_row]]
    problems = [*match.problems(keys), *rows.empty_cells]
    if problems and not values.allow_missing:
        raise OptionError(
            "; ".join(problems),
            option="allow_missing",
            remedy=f"Complete the table, or pass {option('allow_missing', True)}: then records "
            "without a value keep what they have.",
        )
    digest.update(match.row_of_record.tobytes())
    digest.update(repr((values.key, values.on_name, rows.describe())).encode())
    notices = [*rows.notices(), *problems]
    old = [name for name in rows.features if name in known]
    identity = digest.hexdigest()
    return JoinedRows(dataset, rows, match.row_of_record, lacks, old, identity, notices)


def _check_key(
    feature: str,
    known: Mapping[str, FeatureSchema],
    in_steps: Mapping[str, FeatureSchema],
    values: TableValues,
) -> None:
    problem = ""
    if feature in in_steps:
        problem = f"the key {feature!r} is a feature list"
    elif feature not in known:
        hint = suggest_names(feature, [*known, POSITION], "the records have no features")
        problem = f"no record has a feature {feature!r}; {hint}"
    elif known[feature].kind not in ("int64", "bytes"):
        problem = f"the key {feature!r} has the kind {known[feature].kind}"
        if known[feature].kind == "float":
            problem += ", and rounded numbers may be equal or differ by chance"
    if problem:
        expected = "" if "; " in problem else "integers or text, one value in each record"
        raise OptionError(problem, option="on", value=values.on, expected=expected)
    if values.on_name and known[feature].kind != "bytes":
        raise OptionError(
            f"{option('on_name', True)} is for paths, but {feature!r} has integers",
            option="on_name",
            value=True,
        )


# -- keys ------------------------------------------------------------------------------------------


class _Match(msgspec.Struct):
    """Which record has which row.

    row_of_record: int64, (records,): -1 for none.
    is_used: bool, (rows,).
    unmatched: the first keys of records without a row.
    """

    row_of_record: Int64Array
    is_used: Mask
    unmatched: list[str]

    def problems(self, keys: _Keys) -> Iterator[str]:
        """Yield what has no partner; raise OptionError if nothing has one."""
        unused = np.flatnonzero(~self.is_used)
        shown = [keys.text(row) for row in unused[:_SHOWN].tolist()]
        missing_count = int(np.count_nonzero(self.row_of_record < 0))
        where = f"in {keys.rows.location}"
        if not self.is_used.any():
            raise OptionError(
                f"no record has a row {where}: records have keys such as "
                f"{first_of(self.unmatched[:2], 2)}; rows {first_of(shown[:2], 2)}",
                option="on",
                remedy=f"If only the folders differ, pass {option('on_name', True)}.",
            )
        if missing_count:
            verb = "has" if missing_count == 1 else "have"
            what = f"{counted(missing_count, 'record')} {verb} no row {where}"
            yield f"{what}: {_listed(self.unmatched, missing_count)}"
        if len(unused):
            verb = "has" if len(unused) == 1 else "have"
            yield f"{counted(len(unused), 'row')} {verb} no record: {_listed(shown, len(unused))}"


class _Keys:
    """The keys of a table, sorted by hash."""

    def __init__(self, rows: _ValueRows, values: TableValues, kind: str) -> None:
        self.rows = rows
        self._feature, self._column = values.key
        self._kind, self._on_name = kind, values.on_name
        if rows.kinds[self._column] != kind:
            raise self._other_kind()
        hashes, has_key = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.bool_)
        lengths, self._file = np.zeros(len(rows), np.int64), ScratchFile()
        for numbers in rows.pieces(np.arange(len(rows))):
            column, is_given = rows.decode(numbers, {self._column: rows.kinds[self._column]})[
                self._column
            ]
            if len(several := np.flatnonzero(column.lengths > 1)):
                raise rows.error(int(numbers[several[0]]), f"key column {self._column!r} has lists")
            keys = self._compared(column.values)
            with_value = numbers[column.lengths == 1]
            if isinstance(keys, BytesArray):
                keys = keys.packed()
                self._file.append(memoryview(keys.buffer))  # type: ignore[arg-type]
                lengths[with_value] = keys.lengths
            hashes[with_value] = _hashes(keys)
            has_key[numbers] = is_given & (column.lengths == 1)
        self._map = self._file.map() if lengths.any() else None
        self._offsets = offsets_from_lengths(lengths)
        rows_with_key = np.flatnonzero(has_key)
        order = np.argsort(hashes[rows_with_key], kind="stable")
        self._numbers = rows_with_key[order]
        self._hashes = hashes[self._numbers]
        if len(same := np.flatnonzero(self._hashes[1:] == self._hashes[:-1])):
            pair = same[np.argmin(self._numbers[same + 1])]
            self._refuse_twins(*self._numbers[pair : pair + 2].tolist())

    def _refuse_twins(self, first: int, second: int) -> NoReturn:
        keys, places = [*map(self.text, (first, second))], [*map(self.rows.place, (first, second))]
        if keys[0] == keys[1] or not isinstance(self._stored(np.array([first])), BytesArray):
            raise OptionError(
                f"key {keys[0]} occurs twice: in {places[0]} and in {places[1]}",
                option="on",
                remedy="Remove one of the rows, or join by a key that differs.",
            )
        raise OptionError(
            f"keys {keys[0]} in {places[0]} and {keys[1]} in {places[1]} have the same hash",
            option="on",
            remedy="Join by another key.",
        )

    def _compared(self, keys: Any) -> Any:
        return _last_parts(keys) if self._on_name else keys

    def _stored(self, numbers: Int64Array) -> Any:
        """Return the keys of some rows, as they are compared; of integers nothing."""
        if self._kind != "bytes":
            return None
        buffer = np.frombuffer(self._map or b"", np.uint8)
        return BytesArray(buffer, self._offsets, numbers)

    def text(self, row: int) -> str:
        """Return the key of a row for messages."""
        keys = self.rows.decode(np.array([row]), {self._column: self.rows.kinds[self._column]})
        values = self._compared(keys[self._column][0].values)
        return _shown_key(values[0]) if len(values) else f"no key ({self.rows.place(row)})"

    def match_positions(self, record_count: int) -> _Match:
        positions = self._hashes.view(np.int64)
        if len(beyond := np.flatnonzero((positions < 0) | (positions >= record_count))):
            place = beyond[np.argmin(self._numbers[beyond])]
            problem = f"position {positions[place]:,} does not exist"
            expected = f"0 to {record_count - 1:,}" if record_count else "no rows, as no records"
            raise self.rows.error(int(self._numbers[place]), f"{problem}; expected {expected}")
        row_of_record = np.full(record_count, -1, np.int64)
        row_of_record[positions] = self._numbers
        is_used = np.zeros(len(self.rows), np.bool_)
        is_used[self._numbers] = True
        unmatched = np.flatnonzero(row_of_record < 0)[:_SHOWN].tolist()
        return _Match(row_of_record, is_used, [f"position {number:,}" for number in unmatched])

    def match_records(
        self, dataset: Dataset, feature: str, progress: Progress | None = None
    ) -> _Match:
        """Find the row of each record; OptionError for two records with one row."""
        match = _Match(np.full(len(dataset), -1, np.int64), np.zeros(len(self.rows), np.bool_), [])
        start = 0
        specs = {feature: FeatureSpec(self._kind, "ragged")}  # type: ignore[arg-type]
        for columns in dataset.batches(_ROWS_AT_ONCE, specs):
            column: Any = columns[feature]
            if len(several := np.flatnonzero(column.lengths > 1)):
                problem = f"{_place(dataset, start + several[0])} has {column.lengths[several[0]]}"
                raise OptionError(
                    f"{problem} values of the key {feature!r}", option="on", expected="one"
                )
            positions = start + np.flatnonzero(column.lengths == 1)
            keys = self._compared(column.values)
            numbers = self._find(keys)
            has_row = numbers >= 0
            self._add(match, dataset, positions[has_row], numbers[has_row], keys[has_row])
            for row in np.flatnonzero(match.row_of_record[start : start + len(column)] < 0):
                if len(match.unmatched) == _SHOWN:
                    break
                value = self._compared(column[row])
                no_key = f"no key ({_place(dataset, start + row)})"
                match.unmatched.append(_shown_key(value[0]) if len(value) else no_key)
            start += len(column)
            if progress is not None:
                progress(start, len(dataset))
        return match

    def _find(self, keys: Any) -> Int64Array:
        """Return the row of each key, -1 for none."""
        hashes = _hashes(keys)
        if not len(self._hashes):
            return np.full(len(hashes), -1)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        numbers = np.where(self._hashes[places] == hashes, self._numbers[places], -1)
        if isinstance(keys, BytesArray):
            alike = np.flatnonzero(numbers >= 0)
            differ = self._stored(numbers[alike]) != keys[alike]
            numbers[alike[differ]] = -1
            if self._map is not None:
                release_pages(self._map)
        return numbers

    def _add(
        self, match: _Match, dataset: Dataset, positions: Int64Array, rows: Int64Array, keys: Any
    ) -> None:
        is_again = np.ones(len(rows), np.bool_)
        is_again[np.unique(rows, return_index=True)[1]] = False
        again = np.flatnonzero(is_again | match.is_used[rows])
        match.row_of_record[positions] = rows
        match.is_used[rows] = True
        if len(again):
            twins = np.flatnonzero(match.row_of_record == rows[again[0]])[:2]
            places = [_place(dataset, position) for position in twins]
            raise OptionError(
                f"key {_shown_key(keys[int(again[0])])} occurs twice in the dataset: in "
                f"{places[0]} and in {places[1]}",
                option="on",
                remedy="Join by a key that differs, or by position.",
            )

    def _other_kind(self) -> OptionError:
        """Return the error for keys of rows that cannot be those of records."""
        kind = self.rows.kinds[self._column]
        example = self.rows.first_value(self._column)
        whose = "a position" if self._feature == POSITION else f"the feature {self._feature!r}"
        return OptionError(
            f"column {self._column!r} of {self.rows.location} has the kind {kind}, such as "
            f"{example}, but {whose} has the kind {self._kind}",
            option="on",
            remedy="Convert the column, or join by another key.",
        )


def _hashes(keys: Any) -> npt.NDArray[np.uint64]:
    if isinstance(keys, BytesArray):
        return keys.hashes()
    return np.ascontiguousarray(keys).view(np.uint64)


def _last_parts(paths: BytesArray) -> BytesArray:
    """Return what follows the last slash or backslash of each path."""
    starts, stops = paths.spans()
    separators = np.flatnonzero((paths.buffer == ord("/")) | (paths.buffer == ord("\\"))) + 1
    if len(separators):
        last = separators[np.maximum(np.searchsorted(separators, stops, "right") - 1, 0)]
        starts = np.where((last > starts) & (last <= stops), last, starts)
    spans = np.stack((starts, stops), axis=1).reshape(-1)
    return BytesArray(paths.buffer, spans, np.arange(0, len(spans), 2))


def _shown_key(key: Any) -> str:
    if isinstance(key, bytes):
        return f"{key[: _SHOWN_NAMES * 4].decode('utf-8', 'surrogateescape')!r}"
    return f"{key}"


def _listed(shown: Sequence[str], total: int) -> str:
    more = total - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _place(dataset: Dataset, position: Any) -> str:
    for shard, number, _ in records_of(dataset).pick([int(position)]).payloads():
        return f"record {number:,} of {shard.location}"
    return f"record {position:,}"


# -- values ----------------------------------------------------------------------------------------


class _Value(msgspec.Struct, frozen=True):
    """How a column becomes a feature.

    kind: of the column.
    stored: of the feature.
    is_label: whether the values are classes of the dataset.
    own_names: the class names that numbers of the column stand for.
    """

    column: str
    kind: Kind
    stored: Kind
    is_label: bool = False
    own_names: tuple[str, ...] | None = None


class _ValueRows:
    """The rows of a table, and the features that their columns become.

    features: how each is made; those without a value are texts of classes.
    kinds: of all columns.
    class_names: of the dataset with the values, after `survey`.
    empty_cells: what is empty, after `survey`.
    """

    def __init__(
        self,
        values: TableValues,
        known: Mapping[str, FeatureSchema],
        class_names: ClassNames | None,
    ) -> None:
        self.class_names = class_names
        self.empty_cells: list[str] = []
        self._known = known
        table = values.table
        is_stream = isinstance(table, ArrowStream)
        self.location = as_location(type(table).__name__ if is_stream else table)
        table_rows = self._open(values)
        encoded = encode_table(table_rows, (), with_lines=table_rows.unit == "line")
        if faults := encoded.rows.faults:
            raise faults[min(faults)].error()
        self._rows, self._lines, self._unit = encoded.rows, encoded.lines, table_rows.unit
        self._is_csv = isinstance(table_rows, CsvRows)
        self._loss = encoded.loss
        self.kinds = dict(table_rows.kinds)
        self._own_names = {**table_rows.of_lists, **table_rows.class_names}
        _, key_column = values.key
        for column, option_name in self._required.items():
            if column not in self.kinds:
                problem = f"column {column!r} of {self.location} has no values"
                raise OptionError(problem, option=option_name, value=column)
        columns = values.features
        if columns is None:
            columns = {name: name for name in self.kinds if name != key_column}
        if not columns:
            problem = f"{self.location} has no column but the key {key_column!r}"
            raise OptionError(problem, option="set")
        self._labels = {name: label for label, name in enumerate(class_names or ()) if name}
        self._new_names: set[str] = set()
        self._columns_of_classes: set[str] = set()
        self.features: dict[str, _Value | None] = {
            feature: self._value(feature, column) for feature, column in columns.items()
        }
        bases = [value for value in self.features.values() if value is not None]
        self._columns = {value.column: value.kind for value in bases}
        self._columns_of_classes = {
            value.column for value in bases if value.is_label and value.kind == "bytes"
        }
        self._has_names = class_names is not None or any(
            value.column in self._columns_of_classes or value.own_names for value in bases
        )
        self._text_of = {
            text: label
            for label, value in self.features.items()
            if value is not None and value.is_label and self._has_names
            for text in (_text_key(label),)
            if text not in self.features and text in known and known[text].kind == "bytes"
        }
        self.features |= dict.fromkeys(self._text_of)

    def _open(self, values: TableValues) -> TableRows:
        """Open the table, with columns of CSV in the kinds of their features."""
        features, (key_feature, key_column) = values.features, values.key
        for feature, column in (features or {}).items():
            encode_key(feature)
            if [*features.values()].count(column) > 1:  # type: ignore[union-attr]
                raise OptionError(
                    f"column {column!r} is the value of several features",
                    option="set",
                    value=feature,
                )
        required = self._required = {
            **dict.fromkeys((features or {}).values(), "set"),
            key_column: "on",
        }
        table = values.table
        stream = table if isinstance(table, ArrowStream) else None

        def opened(kinds: Mapping[str, Kind]) -> TableRows:
            paths = [self.location]
            return open_rows(paths, required, kinds=kinds, image_column="", stream=stream)

        rows = opened({})
        if not isinstance(rows, CsvRows):
            return rows
        of_features = {name: name for name in rows.columns} if features is None else features
        kinds: dict[str, Kind] = {}
        for feature, column in (*of_features.items(), (key_feature, key_column)):
            kind = self._known[feature].kind if feature in self._known else None
            if kind == "bytes" or (kind == "float" and column != key_column):
                kinds[column] = kind
        return opened(kinds) if kinds else rows

    def _value(self, feature: str, column: str) -> _Value:
        encode_key(feature)
        kind = self.kinds[column]
        stored: Any = self._known[feature].kind if feature in self._known else None
        if stored in ("none", "mixed"):
            stored = None
        is_label = is_class_key(feature) and (stored or kind) != "float" and stored != "bytes"
        if is_label and kind == "bytes":
            if stored is not None and self.class_names is None:
                raise OptionError(
                    f"column {column!r} has texts such as {self.first_value(column)}, but the "
                    f"dataset has no class names for {feature!r}",
                    option="set",
                    value=feature,
                    expected="the numbers of classes",
                )
            return _Value(column, kind, "int64", is_label=True)
        if "bytes" in (kind, stored or kind) and stored not in (None, kind):
            raise OptionError(
                f"column {column!r} of {self.location} has the kind {kind}, such as "
                f"{self.first_value(column)}, but feature {feature!r} has the kind {stored}",
                option="set",
                value=feature,
                remedy="Convert the column, or change the feature before with "
                f"{option('cast') if stored == 'bytes' else option('drop')}.",
            )
        own = self._own_names.get(column) if is_label and kind == "int64" else None
        by_name = own and (stored is None or self.class_names is not None)
        return _Value(column, kind, stored or kind, is_label, tuple(own) if by_name else None)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._rows)

    # -- places --------------------------------------------------------------------------------

    def place(self, row: int) -> str:
        return f"{self.location}, {self._unit} {self._number(row)}"

    def error(self, row: int, problem: str) -> SourceError:
        if self._unit == "line":
            return SourceError(problem, path=self.location, line=self._number(row))
        return SourceError(problem, sample=self.place(row))

    def _number(self, row: int) -> int:
        return self._lines[row] if self._unit == "line" else row

    def first_value(self, column: str) -> str:
        """Return the first value of a column for messages, with its place."""
        for rows in self.pieces(np.arange(len(self))):
            values, is_given = self.decode(rows, {column: self.kinds[column]})[column]
            for row in np.flatnonzero(is_given & (values.lengths > 0))[:1].tolist():
                return f"{_shown_key(values[row][0])} ({self.place(int(rows[row]))})"
        return "none"

    # -- reading -------------------------------------------------------------------------------

    def pieces(self, rows: Int64Array) -> Iterator[Int64Array]:
        """Yield the places of some rows in pieces of limited size; -1 stands for no row."""
        sizes = np.where(rows >= 0, self._rows.sizes[rows], 0) if len(self) else rows * 0
        ends, start = np.cumsum(sizes), 0
        while start < len(rows):
            most = (ends[start - 1] if start else 0) + _PIECE_BYTES
            stop = min(start + _ROWS_AT_ONCE, int(np.searchsorted(ends, most, "right")))
            yield np.arange(start, max(stop, start + 1))
            start = max(stop, start + 1)

    def decode(
        self, rows: Int64Array, kinds: Mapping[str, Kind], digest: Any = None
    ) -> dict[str, tuple[RaggedArray, Mask]]:
        """Return columns of some rows, and which cells have a value; update a digest of them."""
        data, sizes = self._rows.read_frames(rows)
        if digest is not None:
            digest.update(data)
        specs = {column: FeatureSpec(kind, "ragged") for column, kind in kinds.items()}
        borrowed = [column for column, kind in kinds.items() if kind == "bytes"]
        decoder = ColumnDecoder(specs, borrowed=borrowed, with_validity=True)
        decoder.append(data, offsets_from_lengths(sizes + FRAME_BYTES)[:-1] + HEADER_BYTES, sizes)
        columns, validity = decoder.finish_with_validity()
        decoded: dict[str, Any] = {}
        column: Any
        for name, column in columns.items():
            is_given = valid_rows(validity, name, len(rows))
            if kinds[name] == "bytes" and (self._is_csv or name in self._columns_of_classes):
                is_blank = column.lengths == 1
                firsts = column.row_splits[:-1][is_blank]
                is_blank[is_blank] = column.values[firsts].lengths == 0
                is_given = is_given & ~is_blank
            decoded[name] = column, is_given
        return decoded

    def encode(self, rows: Int64Array) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        """Return an Example with the values of each row, end to end, and offsets; -1: an empty one.

        Only for rows that `survey` has checked.
        """
        places = np.flatnonzero(rows >= 0)
        lengths = np.zeros(len(rows), np.int64)
        if not len(places):
            return np.empty(0, np.uint8), offsets_from_lengths(lengths)
        used = rows[places]
        decoded = self.decode(used, self._columns)
        columns: dict[str, Any] = {}
        validity = {}
        for feature, value in self.features.items():
            if value is not None:
                column, validity[feature] = decoded[value.column]
                new = self._converted(value, column, validity[feature], used)
                columns[feature] = RaggedArray(new, column.row_splits)
        for text, label in self._text_of.items():
            names = BytesArray.from_values([name or "" for name in self.class_names or ()] or [""])
            validity[text] = validity[label]
            columns[text] = RaggedArray(names[columns[label].values], columns[label].row_splits)
        data, offsets = ColumnEncoder(columns, validity).encode(0, len(used))
        lengths[places] = np.diff(offsets)
        return data, offsets_from_lengths(lengths)

    def _converted(self, value: _Value, column: Any, is_given: Mask, rows: Int64Array) -> Any:
        """Return the values of a feature; SourceError for one that it cannot have."""
        given, values = np.repeat(is_given, column.lengths), column.values

        def check(is_right: Mask, expected: str) -> None:
            for place in np.flatnonzero(given & ~is_right)[:1]:
                row = rows[np.searchsorted(column.row_splits, place, "right") - 1]
                problem = f"column {value.column!r} has {_shown_key(values[place])}"
                raise self.error(int(row), f"{problem}; expected {expected}")

        if value.is_label and value.kind == "bytes":
            names = [name.decode("utf-8", "surrogateescape").strip() for name in values.tolist()]
            check(np.fromiter(map(bool, names), np.bool_, len(names)), "the name of a class")
            return self._labels_of(names, given)
        if value.own_names is not None:
            own = value.own_names
            check((values >= 0) & (values < len(own)), f"0 to {len(own) - 1}, as it has classes")
            return self._labels_of(
                [
                    own[number] if ok else ""
                    for number, ok in zip(values.tolist(), given.tolist(), strict=True)
                ],
                given,
            )
        if value.kind != value.stored:
            with np.errstate(invalid="ignore"):
                cast = values.astype(np.int64 if value.stored == "int64" else np.float32)
                is_same = cast.astype(values.dtype) == values
            if value.stored == "int64":
                is_same &= np.abs(values) <= _WHOLE_FLOATS
            check(is_same, f"a number that {value.stored} holds exactly")
            values = cast
        if value.is_label and self.class_names is not None and value.stored == "int64":
            is_named = np.array([*(name is not None for name in self.class_names), False])
            labels = np.clip(values, -1, len(is_named) - 1)
            check(
                is_named[labels], f"a class of the dataset: 0 to {len(is_named) - 2}, with a name"
            )
            values = np.where(given, values, 0)
        return values

    def _labels_of(self, names: Sequence[str], given: Mask) -> Int64Array:
        """Return the labels of class names; collect new names."""
        labels = np.fromiter((self._labels.get(name, -1) for name in names), np.int64, len(names))
        for place in np.flatnonzero((labels < 0) & given):
            self._new_names.add(names[int(place)])
        return np.maximum(labels, 0)

    # -- all used rows -------------------------------------------------------------------------

    def survey(self, rows: Int64Array) -> tuple[Mask, Any]:
        """Check the values of some rows, and number new classes.

        Returns:
            Whether each row of the table has an empty cell, and a digest of the rows.
        """
        is_empty, digest = np.zeros(len(self), np.bool_), hashlib.blake2b(digest_size=16)
        counts = dict.fromkeys(self._columns, 0)
        first: dict[str, list[int]] = {name: [] for name in self._columns}
        for places in self.pieces(rows):
            some = rows[places]
            decoded = self.decode(some, self._columns, digest)
            for value in filter(None, self.features.values()):
                column, is_given = decoded[value.column]
                self._converted(value, column, is_given, some)
                empty = some[~is_given]
                is_empty[empty] = True
                counts[value.column] += len(empty)
                first[value.column] += empty[: _SHOWN - len(first[value.column])].tolist()
        self.empty_cells = [
            f"{counted(number, 'empty cell')} in column {name!r}: "
            f"{_listed([*map(self.place, first[name])], number)}"
            for name, number in counts.items()
            if number
        ]
        news = sorted(self._new_names)
        check_class_names(news)
        numbered = {label: name for label, name in enumerate(self.class_names or ()) if name}
        numbered |= dict(enumerate(news, len(self.class_names or ())))
        if news:
            self.class_names = class_names_of(numbered)
        self._labels |= {name: label for label, name in numbered.items() if name in self._new_names}
        return is_empty, digest

    def notices(self) -> Iterator[str]:
        news = [f"{name} ({self._labels[name]})" for name in sorted(self._new_names)]
        if news:
            number = counted(len(news), "new class", "new classes")
            yield f"{number}: {first_of(news, _SHOWN_NAMES)}"
        for text, label in self._text_of.items():
            yield f"{text!r} has the names of the new labels in {label!r}"
        for feature in self.features:
            folder, _, last = feature.rpartition("/")
            other = f"{folder}/{'text' if last == 'label' else 'label'}"
            is_pair = folder and last in ("text", "label") and other in self._known
            if is_pair and other not in self.features:
                yield f"{feature!r} is set but {other!r} is not, so they may name other classes"
        for column, notice in zip(self._loss.columns(), self._loss.notices(), strict=True):
            if column in self._columns:
                yield notice

    def describe(self) -> Any:
        """Return how columns become features, and the class names."""
        made = {
            name: value and msgspec.structs.astuple(value) for name, value in self.features.items()
        }
        return sorted(made.items()), self.class_names


def _text_key(label: str) -> str:
    """Return the key of the texts of classes: `a/text` for `a/label`."""
    folder, _, last = label.rpartition("/")
    return f"{folder}/text" if folder and last == "label" else ""
