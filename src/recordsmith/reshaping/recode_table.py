"""Tables of new values for old ones: from a dict, or a file with the columns old, new and name.

A file is CSV, TSV (both by its suffix or its first line) or JSON: a list of objects with these
keys, or one object of new values by old ones. A row whose old value is `*` speaks of all values
that have no row; with `*` as its new value, too, they stay as they are.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from recordsmith.dataset.documents import json_of, kind_in_json, text_of
from recordsmith.errors import OptionError
from recordsmith.files import as_path, read_document
from recordsmith.words import first_of

TableLike: TypeAlias = "Mapping[Any, Any] | str | os.PathLike[str]"

OTHERS = "*"
_COLUMNS = frozenset(("old", "new", "name"))
_EXPECTED_JSON = (
    'expected new values by old ones, such as {"1": 10}, or a list of objects with old, new and '
    "perhaps name"
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")


@dataclass(frozen=True)
class Row:
    """One line of a table. where: what to call it in a message; name: of the new class, or None."""

    old: int | str
    new: int | str
    name: str | None
    where: str

    def __post_init__(self) -> None:
        """A name becomes a line of `labels.txt`."""
        if self.name is not None and ("\n" in self.name or self.name.endswith("\r")):
            raise OptionError(f"{self.where}: the name {self.name!r:.80} is more than one line")


@dataclass(frozen=True)
class Recoding:
    """A table for features of one kind: int64 with ints, or bytes with bytes.

    others: the new value of all that have no row; None where there is none.
    keeps_others: values without a row stay as they are.
    """

    values: Mapping[int | bytes, int | bytes]
    others: int | bytes | None
    keeps_others: bool

    def new(self, old: int | bytes) -> int | bytes | None:
        """None if the table does not say."""
        return self.values.get(old, old if self.keeps_others else self.others)


@dataclass(frozen=True)
class RecodeTable:
    """New values by old ones, as they were given: text may still stand for numbers."""

    rows: tuple[Row, ...]
    where: str

    @classmethod
    def of(cls, given: TableLike, key: str) -> RecodeTable:
        """The table of one feature, from a dict or the path of a file.

        Raises:
            OptionError: it is none; says the line.
            FileAccessError: the file cannot be read.
        """
        if isinstance(given, Mapping):
            where = f"the table of {key!r}"
            rows = tuple(
                Row(_cell(old, where), _cell(new, where), None, where) for old, new in given.items()
            )
        else:
            path = as_path(given)
            where = str(path)
            rows = tuple(_rows_of(path))
        if not rows:
            raise OptionError(f"{where} has no rows; expected new values by old ones")
        return cls(rows, where)

    def of_kind(self, kind: str, key: str) -> Recoding:
        """What it says of a feature of this kind.

        Raises:
            OptionError: its values are not of this kind, or a value is there twice.
        """
        if kind not in ("int64", "bytes"):
            raise OptionError(f"feature {key!r} is {kind}; only int64 and bytes can be recoded")
        convert = _as_int if kind == "int64" else _as_bytes
        values: dict[int | bytes, int | bytes] = {}
        others, keeps_others, has_others = None, False, False
        for row in self.rows:
            if row.old == OTHERS:
                if has_others:
                    raise OptionError(f"{row.where}: a row with * is there twice")
                has_others = True
                keeps_others = row.new == OTHERS
                others = None if keeps_others else convert(row.new, row, key)
                continue
            old = convert(row.old, row, key)
            if old in values:
                raise OptionError(f"{row.where}: the old value {row.old!r} is there twice")
            values[old] = convert(row.new, row, key)
        return Recoding(values, others, keeps_others)

    def to_json(self) -> list[Any]:
        """Its rows: old, new, name."""
        return [[row.old, row.new, row.name] for row in self.rows]


def _rows_of(path: Path) -> Iterator[Row]:
    data = read_document(path)
    if path.suffix.lower() == ".json":
        yield from _rows_of_json(data, path)
        return
    try:
        text = text_of(data)
    except ValueError as error:
        raise OptionError(f"{path} is no table: {error}") from None
    head = text.partition("\n")[0]
    is_tabbed = path.suffix.lower() == ".tsv" or ("\t" in head and "," not in head)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if is_tabbed else ",")
    try:
        columns = [cell.strip().lower() for cell in next(lines, [])]
        if not {"old", "new"} <= set(columns):
            raise OptionError(
                f"{path} begins with {head.strip()[:60]!r}; expected a line with the names of its "
                "columns: old,new or old,new,name"
            )
        for cells in lines:
            where = f"{path}, line {lines.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                raise OptionError(f"{where} has {len(cells)} cells; expected {len(columns)}")
            row = dict(zip(columns, cells, strict=True))
            yield Row(row["old"], row["new"], row.get("name") or None, where)
    except csv.Error as error:
        raise OptionError(f"{path}, line {lines.line_num}: {error}") from None


def _rows_of_json(data: bytes, path: Path) -> Iterator[Row]:
    try:
        document = json_of(data, with_keys_once=True)
    except ValueError as error:
        raise OptionError(f"{path} is no table: {error}") from None
    if isinstance(document, dict):
        for old, new in document.items():
            if isinstance(new, (dict, list)):  # it is some other document
                found = kind_in_json(new)
                raise OptionError(f"{path} is no table: {old!r:.50} is {found}; {_EXPECTED_JSON}")
            yield Row(old, _cell(new, f"{path}: the new value of {old!r:.50}"), None, str(path))
        return
    if not isinstance(document, list):
        raise OptionError(f"{path} is no table: it is {kind_in_json(document)}; {_EXPECTED_JSON}")
    for number, item in enumerate(document):
        where = f"{path}, row {number}"
        if not isinstance(item, dict) or not {"old", "new"} <= item.keys() <= _COLUMNS:
            raise OptionError(f"{where} is {_found_row(item)}; {_EXPECTED_JSON}")
        name = item.get("name")
        if name is not None and not isinstance(name, str):
            raise OptionError(f"{where}: the name is {name!r:.50}; expected text")
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
        raise OptionError(f"{where}: {kind_in_json(value)} is neither an integer nor text")
    return int(value)


def _as_int(value: int | str, row: Row, key: str) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value.strip()):
            raise OptionError(f"{row.where}: {value!r:.50} is no integer; feature {key!r} is int64")
        value = int(value)
    if not -(2**63) <= value < 2**63:
        raise OptionError(f"{row.where}: {value} does not fit int64")
    return value


def _as_bytes(value: int | str, row: Row, key: str) -> bytes:
    try:
        return str(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise OptionError(
            f"{row.where}: {value!r:.50} for feature {key!r} has surrogates, which are no text"
        ) from None
