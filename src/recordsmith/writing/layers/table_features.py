"""Columns of a table as features of records: their kinds, their classes, and their values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import ArrowStream, ClassNames, class_names_of
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
from recordsmith.format.example.keys import has_value_per_object, is_class_key
from recordsmith.format.example.payload import encode_key
from recordsmith.format.example.schema import MAX_FEATURES
from recordsmith.format.wire import FRAME_BYTES, HEADER_BYTES
from recordsmith.sources import (
    CsvRows,
    TableRows,
    check_class_names,
    encode_table,
    numbered_classes_notice,
    open_rows,
)
from recordsmith.stores import Location, PlaceLike, as_location
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.words import count as counted
from recordsmith.support.words import first_of, similar_name

PIECE_BYTES = 4 << 20
ROWS_AT_ONCE = 1 << 13
SHOWN = 5
_NAMES_SHOWN = 20
_BYTES_SHOWN = 80
_LIKE_NUMBERS = re.compile(r"'(?:-?[0-9]+,[0-9]+'|\[ *-?[0-9.]+ *,)")
_PANDAS_INDEX = re.compile(r"__index_level_[0-9]+__")
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
    encoding: of a table that is text.
    """

    table: PlaceLike | ArrowStream
    features: Mapping[str, str] | None
    on: str
    on_name: bool = False
    allow_missing: bool = False
    encoding: str = "utf-8"

    @property
    def location(self) -> Location:
        """Where the table is; of one in memory, its type."""
        is_stream = isinstance(self.table, ArrowStream)
        return as_location(type(self.table).__name__ if is_stream else self.table)

    @property
    def key(self) -> tuple[str, str]:
        """The feature and the column of the key."""
        feature, _, column = self.on.partition("=")
        return feature, column or feature


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


class TableFeatures:
    """The rows of a table, and the features that their columns become.

    features: their names, sorted; also those of the texts of classes that follow labels.
    kinds: of all columns.
    class_names: of the dataset with the values, after `survey`.
    known_features: those that records may have already.
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
        self.location = values.location
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
            known_columns = (name for name in self.kinds if name != key_column)
            columns = {name: name for name in known_columns if not _PANDAS_INDEX.fullmatch(name)}
        if not 0 < len(columns) <= MAX_FEATURES:
            problem = f"found {counted(len(columns), 'column')} for features in {self.location}"
            raise OptionError(problem, option="set", expected=f"1 to {MAX_FEATURES:,}")
        named = [*enumerate(class_names or ())][::-1]  # of equal names the first one counts
        self._labels = {name.strip(): label for label, name in named if name is not None}
        self._new_names: set[str] = set()
        self._columns_of_classes: set[str] = set()
        self._without_nan: set[str] = set()
        self._values = {name: self._value(name, column) for name, column in columns.items()}
        self._columns = {value.column: value.kind for value in self._values.values()}
        self._without_nan = {
            value.column
            for value in self._values.values()
            if (value.kind, value.stored) == ("float", "int64")
        }
        labels = {name: value for name, value in self._values.items() if value.is_label}
        texts = [value.column for value in labels.values() if value.kind == "bytes"]
        self._columns_of_classes = {*texts}
        has_names = texts or any(value.own_names for value in labels.values())
        self._text_of = {}  # labels, by the texts that follow them
        for label in labels if has_names or class_names is not None else ():
            text = label.removesuffix("/label") + "/text"
            is_text = text in known and known[text].kind == "bytes"
            if label.endswith("/label") and is_text and text not in self._values:
                self._text_of[text] = label
        self.features = sorted({*self._values, *self._text_of})
        self.known_features = known.keys() & {*self.features}

    def _open(self, values: TableValues) -> TableRows:
        """Open the table, with columns of CSV in the kinds of their features."""
        features, (key_feature, key_column) = values.features, values.key
        columns = [*(features or {}).values()]
        if len({*columns}) < len(columns):
            raise OptionError(option="set", value=features, expected="one feature for each column")
        required = self._required = {**dict.fromkeys(columns, "set"), key_column: "on"}
        table = values.table
        stream = table if isinstance(table, ArrowStream) else None

        def opened(kinds: Mapping[str, Kind]) -> TableRows:
            paths = [self.location]
            return open_rows(
                paths,
                required,
                kinds=kinds,
                encoding=values.encoding,
                image_column="",
                stream=stream,
            )

        rows = opened({})
        if not isinstance(rows, CsvRows):
            return rows
        others = {name: name for name in rows.columns if name != key_column}
        of_features = others if features is None else features
        kinds: dict[str, Kind] = {}
        for feature, column in (*of_features.items(), (key_feature, key_column)):
            kind = self._known[feature].kind if feature in self._known else None
            if kind == "bytes" or (kind == "float" and column != key_column):
                kinds[column] = kind
            elif is_class_key(feature) and any(numbered_classes_notice(self.class_names)):
                kinds[column] = "bytes"  # as a cell has no kind: the names of classes
        return opened(kinds) if kinds else rows

    def _value(self, feature: str, column: str) -> _Value:
        if not feature:
            raise OptionError("a feature without a name", option="set", value=feature)
        encode_key(feature)
        kind = self.kinds[column]
        known = self._known.get(feature)
        if known is not None and known.min_steps is not None:
            problem = f"{feature!r} is a feature list, whose steps a table does not have"
            raise OptionError(problem, option="set", value=feature)
        stored: Any = None if known is None else known.kind
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
        if stored not in (None, kind) and "bytes" in (kind, stored):
            raise self.kind_error("set", column, feature, stored)
        own = self._own_names.get(column) if is_label and kind == "int64" else None
        by_name = own and (stored is None or self.class_names is not None)
        return _Value(column, kind, stored or kind, is_label, tuple(own) if by_name else None)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._rows)

    def kind_error(self, option_name: str, column: str, feature: str, kind: str) -> OptionError:
        """Return the error for a column of another kind than the feature."""
        problem = f"column {column!r} of {self.location} has the kind {self.kinds[column]}, such as"
        return OptionError(
            f"{problem} {self.first_value(column)}, but {feature!r} has the kind {kind}",
            option=option_name,
            value=column,
            remedy="Convert the column."
            if option_name == "on"
            else "Convert the column, or edit the feature before with "
            f"{option('cast') if kind == 'bytes' else option('drop')}.",
        )

    @property
    def columns_of_objects(self) -> dict[str, str]:
        """The columns of features with one value for each object."""
        return {
            feature: value.column
            for feature, value in self._values.items()
            if has_value_per_object(feature)
        }

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
                return f"{value_text(values[row][0])} ({self.place(int(rows[row]))})"
        return "none"

    # -- reading -------------------------------------------------------------------------------

    def pieces(self, rows: Int64Array) -> Iterator[Int64Array]:
        """Yield the places of some rows in pieces of limited size; -1 stands for no row."""
        start = 0
        while start < len(rows):
            some = rows[start : start + ROWS_AT_ONCE]
            sizes = np.where(some >= 0, self._rows.sizes[some], 0)
            count = int(np.searchsorted(np.cumsum(sizes), PIECE_BYTES, "right"))
            yield np.arange(start, start + max(count, 1))
            start += max(count, 1)

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
            elif name in self._without_nan:
                is_nan = np.zeros(len(column.values) + 1, np.bool_)
                is_nan[:-1] = np.isnan(column.values)
                is_given = is_given & ~(is_nan[column.row_splits[:-1]] & (column.lengths == 1))
            decoded[name] = column, is_given
        return decoded

    def are_blank(self, rows: Int64Array) -> Mask:
        """Whether no cell of a row has a value."""
        are_blank = np.ones(len(rows), np.bool_)
        for _, is_given in self.decode(rows, self.kinds).values():
            are_blank &= ~is_given
        return are_blank

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
        for feature, value in self._values.items():
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
            for place in np.flatnonzero(given & ~is_right)[:1].tolist():
                row = rows[np.searchsorted(column.row_splits, place, "right") - 1]
                problem = f"column {value.column!r} has {value_text(values[place])}"
                raise self.error(int(row), f"{problem}; expected {expected}")

        if value.is_label and value.kind == "bytes":
            names = [name.decode("utf-8", "surrogateescape").strip() for name in values.tolist()]
            are_names = [bool(name) and not name.startswith(("{", '["', "['")) for name in names]
            check(np.array(are_names, np.bool_), "the name of a class")
            return self._labels_of(names, given)
        if value.own_names is not None:
            own = value.own_names
            check((values >= 0) & (values < len(own)), f"0 to {len(own) - 1}, as it has classes")
            return self._labels_of([own[number] for number in values.tolist()], given)
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
            is_class = is_named[np.clip(values, -1, len(is_named) - 1)]
            check(is_class, f"a class of the dataset, 0 to {len(is_named) - 2}, with a name")
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
            for value in self._values.values():
                column, is_given = decoded[value.column]
                self._converted(value, column, is_given, some)
                empty = some[~is_given]
                is_empty[empty] = True
                counts[value.column] += len(empty)
                first[value.column] += empty[: SHOWN - len(first[value.column])].tolist()
        self.empty_cells = [
            f"{counted(number, 'empty cell')} in column {name!r}: "
            f"{listed([*map(self.place, first[name])], number)}"
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
        olds = [name for name in self._labels if name not in self._new_names]
        news = [
            f"{name} ({self._labels[name]}" + (f", similar to {old})" if old else ")")
            for name in sorted(self._new_names)
            for old in (similar_name(name, olds),)
        ]
        if news:
            number = counted(len(news), "new class", "new classes")
            yield f"{number}: {first_of(news, _NAMES_SHOWN)}"
        for notice in numbered_classes_notice(self.class_names):
            for value in self._values.values():
                if value.is_label:
                    taken = "names" if value.kind == "bytes" else "labels"
                    yield f"{notice}; the values of {value.column!r} were taken as {taken}"
        for text, label in self._text_of.items():
            yield f"{text!r} has the names of the new labels in {label!r}"
        for feature in self.features:
            folder, _, last = feature.rpartition("/")
            other = f"{folder}/{'text' if last == 'label' else 'label'}"
            is_pair = folder and last in ("text", "label") and other in self._known
            if is_pair and other not in self.features:
                yield f"{feature!r} is set but {other!r} is not, so they may name other classes"
        for feature, value in self._values.items():
            like = [key for key in self._known if key.endswith(f"/{feature}")]
            if like and feature not in self._known:
                yield (
                    f"column {value.column!r} is the new feature {feature!r}; name the one that it "
                    f"is for if that is {like[0]!r}"
                )
            shown = self.first_value(value.column) if self._is_csv else ""
            if value.kind == "bytes" and not value.is_label and _LIKE_NUMBERS.match(shown):
                yield (
                    f"column {value.column!r} is text such as {shown}; numbers need a decimal "
                    "point, and lists JSON Lines or Parquet"
                )
        for column, notice in zip(self._loss.columns(), self._loss.notices(), strict=True):
            if column in self._columns:
                yield notice

    def describe(self) -> Any:
        """Return how columns become features, and the class names."""
        return self.features, sorted(map(repr, self._values.items())), self.class_names


def value_text(key: Any) -> str:
    if isinstance(key, bytes):
        return f"{key[:_BYTES_SHOWN].decode('utf-8', 'surrogateescape')!r}"
    return f"{key}"


def listed(shown: Sequence[str], total: int) -> str:
    more = total - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
