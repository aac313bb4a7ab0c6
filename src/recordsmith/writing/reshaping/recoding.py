"""Recoding of feature values: tables of new values by old ones, and the class names that follow.

A table is a dict, or a CSV file with the columns old, new and optionally name. The old value `*` is
the default for values without a row; with the new value `*`, they stay unchanged.
"""

from __future__ import annotations

import csv
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recordsmith.dataset import ClassNames, KeypointClass, KeypointClasses, class_names_of, text_of
from recordsmith.format.example import (
    Schema,
    decode_example,
    decode_sequence_example,
    delimited,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.example.keys import MASK, OBJECT_LABEL, is_class_key
from recordsmith.stores import Location, as_location, read_document
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

TableLike: TypeAlias = "Mapping[Any, Any] | str | os.PathLike[str] | RecodeTable"

_OTHERS = "*"
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row of a table. where: its place, for messages; name: of the new class, or None."""

    old: int | str
    new: int | str
    name: str | None
    where: str

    def __post_init__(self) -> None:
        """Check the name, which becomes a line of `labels.txt`."""
        if self.name is not None and ("\n" in self.name or self.name.endswith("\r")):
            raise _invalid(f"{self.where}: invalid name", self.name, "a single line")


@dataclass(frozen=True)
class Recoding:
    """A table for int64 or bytes features.

    others: the new value of values without a row; None if they are invalid.
    keeps_others: whether values without a row stay unchanged.
    """

    values: Mapping[int | bytes, int | bytes]
    others: int | bytes | None
    keeps_others: bool

    def new(self, old: int | bytes) -> int | bytes | None:
        """Return the new value, or None if there is none."""
        return self.values.get(old, old if self.keeps_others else self.others)


@dataclass(frozen=True)
class RecodeTable:
    """New values by old ones as given: numbers may still be text."""

    rows: tuple[Row, ...]
    where: str

    @classmethod
    def from_option(cls, given: TableLike, key: str) -> RecodeTable:
        """Read the table of one feature from a dict or a file; OptionError if it is invalid."""
        if isinstance(given, RecodeTable):
            return given
        if isinstance(given, Mapping):
            where = f"the table of {key!r}"
            rows = tuple(
                Row(_cell(old, where), _cell(new, where), None, where) for old, new in given.items()
            )
        else:
            path = as_location(given)
            where = str(path)
            rows = tuple(_read_rows(path))
        if not rows:
            raise _invalid(f"{where} has no rows", None, "new values by old ones")
        return cls(rows, where)

    def for_kind(self, kind: str, key: str) -> Recoding:
        """Convert the table for a feature of this kind."""
        if kind not in ("int64", "bytes"):
            raise _invalid(f"feature {key!r} is {kind}", None, "int64 or bytes for recoding")
        convert = _as_int if kind == "int64" else _as_bytes
        values: dict[int | bytes, int | bytes] = {}
        others, keeps_others, has_others = None, False, False
        for row in self.rows:
            if row.old == _OTHERS:
                if has_others:
                    raise _invalid(f"{row.where}: repeated old value {_OTHERS}", _OTHERS)
                has_others = True
                keeps_others = row.new == _OTHERS
                others = None if keeps_others else convert(row.new, row, key)
                continue
            old = convert(row.old, row, key)
            if old in values:
                raise _invalid(f"{row.where}: repeated old value {row.old!r}", row.old)
            values[old] = convert(row.new, row, key)
        return Recoding(values, others, keeps_others)

    def to_json(self) -> list[Any]:
        """Return the rows: old, new, name."""
        return [[row.old, row.new, row.name] for row in self.rows]


def _read_rows(path: Location) -> Iterator[Row]:
    try:
        text = text_of(read_document(path))
    except ValueError as error:
        raise _invalid(f"{path} is not a table: {error}", None) from None
    head = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text, newline=""))
    try:
        columns = [cell.strip().lower() for cell in next(lines, [])]
        if not {"old", "new"} <= set(columns):
            shown = head.strip()[:60]
            expected = "a line with the names of the columns: old,new or old,new,name"
            raise _invalid(f"{path} begins with {shown!r}", shown, expected)
        for cells in lines:
            where = f"{path}, line {lines.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                raise _invalid(f"{where} has {len(cells)} cells", len(cells), str(len(columns)))
            row = dict(zip(columns, cells, strict=True))
            yield Row(row["old"], row["new"], row.get("name") or None, where)
    except csv.Error as error:
        raise _invalid(f"{path}, line {lines.line_num}: {error}", None) from None


def _cell(value: Any, where: str) -> int | str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _invalid(f"{where}: found {type(value).__name__}", None, "an integer or text")
    return int(value)


def _as_int(value: int | str, row: Row, key: str) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value.strip()):
            problem = f"{row.where}: {value!r:.50} for int64 feature {key!r}"
            raise _invalid(problem, value, "an integer")
        value = int(value)
    if not -(2**63) <= value < 2**63:
        raise _invalid(f"{row.where}: {value} does not fit int64", value)
    return value


def _as_bytes(value: int | str, row: Row, key: str) -> bytes:
    try:
        return str(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        problem = f"{row.where}: {value!r:.50} for feature {key!r} contains surrogates"
        raise _invalid(problem, value, "text") from None


def _invalid(problem: str, value: object, expected: str = "") -> OptionError:
    return OptionError(problem, option="recode", value=value, expected=expected)


# -- values ----------------------------------------------------------------------------------------


class ValueChange(ABC):
    """Changes the values of one feature, in the value field of a map entry. Thread-safe."""

    def __call__(self, value: bytes, field: int) -> bytes:
        """Change a serialized feature, or each step of a feature list; the same if nothing changes.

        Raises CorruptDataError if a value cannot be changed (feature-value-mismatch).
        """
        payload = delimited(field, delimited(1, value))  # of one feature with an empty key
        if field == 1:
            steps = [decode_example(payload)[""]]
        else:
            steps = decode_sequence_example(payload).feature_lists[""]
        news = [self._new(step) for step in steps]
        if all(new is step for new, step in zip(news, steps, strict=True)):
            return value
        if field == 1:
            payload = encode_example({"": news[0]})
        else:
            payload = encode_sequence_example({}, {"": news})
        return payload[payload.index(0) + 1 :]  # the first zero is the length of the key

    @abstractmethod
    def _new(self, values: Any) -> Any:
        """Return the new values of a feature or step, or the same object."""


class Recoder(ValueChange):
    """Replaces values by those of a table. Each must have a row."""

    def __init__(self, key: str, table: RecodeTable) -> None:
        self._key = key
        self._table = table
        self._of_kind: dict[str, Recoding] = {}

    def _new(self, values: Any) -> Any:
        if not len(values):
            return values
        kind = "bytes" if isinstance(values, list) else str(values.dtype).removesuffix("32")
        recoding = self._of_kind.get(kind)
        if recoding is None:
            recoding = self._of_kind[kind] = self._table.for_kind(kind, self._key)
        olds = values if kind == "bytes" else values.tolist()
        news = [recoding.new(old) for old in olds]
        if None in news:
            old = olds[news.index(None)]
            shown = repr(old.decode("utf-8", "surrogateescape"))[:80] if kind == "bytes" else old
            raise CorruptDataError(
                Defect.FEATURE_VALUE,
                f"feature {self._key!r} has a value without a row in {self._table.where}",
                found=str(shown),
                remedy=f"Add a row for it, or one with the old value {_OTHERS} for all others "
                f"({_OTHERS},{_OTHERS} leaves them unchanged).",
                feature=self._key,
            )
        return news if kind == "bytes" else np.array(news, np.int64)


# -- class names -----------------------------------------------------------------------------------


def recoded_class_names(
    tables: Mapping[str, RecodeTable], names: ClassNames | None
) -> ClassNames | None:
    """Return the class names after recoding.

    The name of a new label is that in the column `name`; otherwise its own name if it is an
    unchanged label; otherwise the name of the first old label in the table that maps to it.
    """
    of_labels = [table for key, table in tables.items() if is_class_key(key)]
    if not of_labels:
        return names
    try:
        moved = _moved_names(of_labels[0], names or ())
    except OptionError:  # the labels are text
        return names
    return class_names_of(moved) if moved or names is not None else None


def recoded_keypoint_classes(
    tables: Mapping[str, RecodeTable], classes: KeypointClasses
) -> KeypointClasses:
    """Return the keypoints of classes after recoding the labels of objects."""
    if OBJECT_LABEL not in tables:
        return classes
    recoding = tables[OBJECT_LABEL].for_kind("int64", OBJECT_LABEL)
    moved: dict[int, KeypointClass] = {}
    for label, known in classes.items():
        new = recoding.new(label)
        if isinstance(new, int) and moved.setdefault(new, known) != known:
            raise _invalid(f"classes with different keypoints become {new}", label)
    return moved


def check_class_names(
    tables: Mapping[str, RecodeTable],
    schema: Schema,
    staying: Iterable[str],
    names: ClassNames | None,
) -> None:
    """Check that all features with class labels are recoded together."""
    recoded = {key: table for key, table in tables.items() if is_class_key(key)}
    if not recoded or names is None:
        return
    schema.check_complete("the features with class labels are unknown")
    first, table = next(iter(recoded.items()))
    for key in sorted(staying):
        is_mask = key == MASK
        if not (is_mask or is_class_key(key)):
            continue
        other = recoded.get(key)
        if other is None or other.to_json() != table.to_json():
            raise OptionError(
                f"the class names apply to {first!r} and {key!r}, but only one is recoded",
                option="recode",
                value=key,
                remedy="Pixels of masks cannot be recoded: drop the masks, or leave the labels."
                if is_mask
                else "Recode both with the same table, or drop one.",
            )


def _moved_names(table: RecodeTable, names: ClassNames) -> dict[int, str]:
    recoding = table.for_kind("int64", "label")
    old_names = {label: name for label, name in enumerate(names) if name is not None}
    moved: dict[Any, str] = {}
    for row in table.rows:
        if row.name is not None and row.new != _OTHERS:
            moved.setdefault(int(row.new), row.name)
    for label, name in old_names.items():
        if recoding.new(label) == label:
            moved.setdefault(label, name)
    in_order: list[Any] = [*recoding.values, *old_names]
    for label in in_order:
        if label in old_names and (new := recoding.new(label)) is not None:
            moved.setdefault(new, old_names[label])
    return {label: name for label, name in moved.items() if label >= 0}
