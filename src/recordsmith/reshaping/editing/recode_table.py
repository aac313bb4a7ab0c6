"""Tables of new values by old ones: a dict, or a file with the columns old, new and name.

A file is CSV, TSV (detected by suffix or first line) or JSON: a list of objects with these keys, or
an object of new values by old ones. The old value `*` is the default for values without a row; with
the new value `*`, they stay unchanged.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from recordsmith.dataset.documents import json_of, kind_in_json, text_of
from recordsmith.errors import OptionError
from recordsmith.stores import Location, as_location, read_document
from recordsmith.words import first_of

TableLike: TypeAlias = "Mapping[Any, Any] | str | os.PathLike[str] | RecodeTable"

OTHERS = "*"
_COLUMNS = frozenset(("old", "new", "name"))
_EXPECTED_JSON = (
    'new values by old ones, such as {"1": 10}, or a list of objects with old, new and optionally '
    "name"
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")


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
        """Read the table of one feature from a dict or a file.

        Raises:
            OptionError: it is invalid.
            FileAccessError: the file cannot be read.
        """
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
        """Convert the table for a feature of this kind.

        Raises:
            OptionError: values are not of this kind, or an old value is repeated.
        """
        if kind not in ("int64", "bytes"):
            raise _invalid(f"feature {key!r} is {kind}", None, "int64 or bytes for recoding")
        convert = _as_int if kind == "int64" else _as_bytes
        values: dict[int | bytes, int | bytes] = {}
        others, keeps_others, has_others = None, False, False
        for row in self.rows:
            if row.old == OTHERS:
                if has_others:
                    raise _invalid(f"{row.where}: repeated old value {OTHERS}", OTHERS)
                has_others = True
                keeps_others = row.new == OTHERS
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
    data = read_document(path)
    if path.suffix.lower() == ".json":
        yield from _read_json_rows(data, path)
        return
    try:
        text = text_of(data)
    except ValueError as error:
        raise _invalid(f"{path} is not a table: {error}", None) from None
    head = text.partition("\n")[0]
    is_tabbed = path.suffix.lower() == ".tsv" or ("\t" in head and "," not in head)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if is_tabbed else ",")
    try:
        columns = [cell.strip().lower() for cell in next(lines, [])]
        if not {"old", "new"} <= set(columns):
            raise _invalid(
                f"{path} begins with {head.strip()[:60]!r}",
                head.strip()[:60],
                "a line with the names of the columns: old,new or old,new,name",
            )
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


def _read_json_rows(data: bytes, path: Location) -> Iterator[Row]:
    try:
        document = json_of(data, with_keys_once=True)
    except ValueError as error:
        raise _invalid(f"{path} is not a table: {error}", None) from None
    if isinstance(document, dict):
        for old, new in document.items():
            if isinstance(new, (dict, list)):  # another kind of document
                found = kind_in_json(new)
                raise _invalid(
                    f"{path} is not a table: {old!r:.50} is {found}", old, _EXPECTED_JSON
                )
            yield Row(old, _cell(new, f"{path}: the new value of {old!r:.50}"), None, str(path))
        return
    if not isinstance(document, list):
        raise _invalid(
            f"{path} is not a table: it is {kind_in_json(document)}", None, _EXPECTED_JSON
        )
    for number, item in enumerate(document):
        where = f"{path}, row {number}"
        if not isinstance(item, dict) or not {"old", "new"} <= item.keys() <= _COLUMNS:
            raise _invalid(f"{where} is {_found_row(item)}", None, _EXPECTED_JSON)
        name = item.get("name")
        if name is not None and not isinstance(name, str):
            raise _invalid(f"{where}: the name is {name!r:.50}", name, "text")
        yield Row(_cell(item["old"], where), _cell(item["new"], where), name or None, where)


def _found_row(item: Any) -> str:
    keys = f" with {first_of(list(item), 3)}" if isinstance(item, dict) and item else ""
    return f"{kind_in_json(item)}{keys}"


def _cell(value: Any, where: str) -> int | str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _invalid(f"{where}: found {kind_in_json(value)}", None, "an integer or text")
    return int(value)


def _as_int(value: int | str, row: Row, key: str) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value.strip()):
            raise _invalid(
                f"{row.where}: {value!r:.50} for int64 feature {key!r}", value, "an integer"
            )
        value = int(value)
    if not -(2**63) <= value < 2**63:
        raise _invalid(f"{row.where}: {value} does not fit int64", value)
    return value


def _as_bytes(value: int | str, row: Row, key: str) -> bytes:
    try:
        return str(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _invalid(
            f"{row.where}: {value!r:.50} for feature {key!r} contains surrogates", value, "text"
        ) from None


def _invalid(problem: str, value: object, expected: str = "") -> OptionError:
    return OptionError(problem, option="recode", value=value, expected=expected)
