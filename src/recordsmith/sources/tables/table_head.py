"""The first rows of a table, for the detector: in little time, and without errors."""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.errors import RecordsmithError
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.tables.arrow_rows import ARROW_SUFFIXES
from recordsmith.sources.tables.csv_rows import guess_delimiter
from recordsmith.sources.tables.table_reader import open_rows
from recordsmith.wire.compression import GZIP_MAGIC

_ROWS = 300
_INFLATED_BYTES = 1 << 18
_MAX_COLUMNS = 10_000


@dataclass(frozen=True, eq=False)
class TableHead:
    """The first rows of a table.

    path: relative to the root.
    columns: the texts in each column, without missing ones; a column of anything else is empty.
    row_count: of these rows.
    """

    path: str
    columns: dict[str, list[str]]
    row_count: int

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def read_table_head(tree: FileTree, path: str) -> TableHead | None:
    """Read the first rows of a table; None if it is not a table with column names."""
    name = path.lower().removesuffix(".gz")
    if name.endswith(ARROW_SUFFIXES):
        return _arrow(tree, path)
    head = tree.head(path)
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(31).decompress(head, _INFLATED_BYTES)
        except zlib.error:
            return None
    text = head.decode("utf-8-sig", "replace")
    lines = text.splitlines(keepends=True)
    if lines and len(head) >= 1 << 16:
        lines.pop()  # it may be cut
    rows = lines[: _ROWS + 1]
    try:
        columns = _json(rows) if name.endswith((".jsonl", ".ndjson")) else _csv(rows, name)
    except (csv.Error, ValueError, RecursionError):
        return None
    if not columns or len(columns) > _MAX_COLUMNS:
        return None
    return TableHead(
        path,
        {name: [text for text in map(_text, values) if text] for name, values in columns.items()},
        max(map(len, columns.values())),
    )


def _csv(lines: Sequence[str], name: str) -> dict[str, list[Any]]:
    if not lines:
        return {}
    names, *rows = list(csv.reader(lines, delimiter=guess_delimiter(name, lines[0])))
    rows = [row for row in rows if len(row) == len(names)]
    return {column.strip(): [row[at] for row in rows] for at, column in enumerate(names)}


def _json(lines: Sequence[str]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for line in lines:
        row = json.loads(line) if not line.isspace() else {}
        if not isinstance(row, dict):
            return {}
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _arrow(tree: FileTree, path: str) -> TableHead | None:
    try:
        rows = open_rows([tree.root / path], {})
        batch = next(iter(rows.batches(0)), None)
        if batch is None:
            return None
        names = [name for name in rows.kinds if name != rows.image]
        columns = {name: list(map(_text, batch.values(name)[:_ROWS])) for name in names}
    except RecordsmithError:
        return None
    return TableHead(
        path,
        {name: list(filter(None, values)) for name, values in columns.items()},
        min(_ROWS, len(batch)),
    )


def _text(value: Any) -> str:
    """A text or an integer as text; empty for anything else."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value.strip()
    return str(value) if type(value) is int else ""
