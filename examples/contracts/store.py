"""A store of one's own: the objects of a SQLite database.

An object appears whole, and each write gives it another version. Everything else (folders,
listings, reading in parts, moving) follows from these eight methods.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import recordsmith as rs
from recordsmith.stores import (
    Location,
    ObjectInfo,
    ObjectWriter,
    Store,
    WholeWriter,
    check_key,
    check_range,
    check_version,
    missing_error,
    pieces_of,
)

_TABLE = "CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, version TEXT, data BLOB)"


class SqliteStore(Store):
    """Objects are rows. One statement changes a row, so conditional writes need no lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run(_TABLE)

    def _run(self, statement: str, *values: Any) -> tuple[list[Any], int]:
        with closing(sqlite3.connect(self.path, timeout=60)) as database, database:
            cursor = database.execute(statement, values)
            return cursor.fetchall(), cursor.rowcount

    def name_of(self, key: str) -> str:
        return f"sqlite://{self.path}/{key}"

    def info(self, key: str) -> ObjectInfo:
        query = "SELECT length(data), version FROM objects WHERE key = ?"
        rows, _ = self._run(query, check_key(key))
        if not rows:
            raise missing_error(self.name_of(key))
        return ObjectInfo(key, *rows[0])

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        check_range(start, stop)
        rows, _ = self._run("SELECT data, version FROM objects WHERE key = ?", check_key(key))
        if not rows:
            raise missing_error(self.name_of(key))
        check_version(self.name_of(key), rows[0][1], version)
        data: bytes = rows[0][0]
        return data[start:stop]

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        query = "SELECT key, length(data), version FROM objects WHERE substr(key, 1, ?) = ?"
        yield from (ObjectInfo(*row) for row in self._run(query, len(prefix), prefix)[0])

    def open_write(
        self,
        key: str,
        *,
        overwrite: bool = True,
        is_durable: bool = True,  # noqa: ARG002
    ) -> ObjectWriter:
        def put(data: bytes) -> None:
            self._run("REPLACE INTO objects VALUES (?, ?, ?)", key, uuid4().hex, data)

        return WholeWriter(self, key, put, overwrite=overwrite)

    def put_if_absent(self, key: str, data: Any) -> bool:
        statement = "INSERT OR IGNORE INTO objects VALUES (?, ?, ?)"
        return self._run(statement, check_key(key), uuid4().hex, b"".join(pieces_of(data)))[1] == 1

    def put_if_match(self, key: str, data: Any, version: str) -> bool:
        statement = "UPDATE objects SET version = ?, data = ? WHERE key = ? AND version = ?"
        values = uuid4().hex, b"".join(pieces_of(data)), check_key(key), version
        return self._run(statement, *values)[1] == 1

    def delete(self, key: str) -> None:
        self._run("DELETE FROM objects WHERE key = ?", check_key(key))


def main(folder: Path) -> None:
    """Pack into the store, read it, verify it."""
    out = Location(SqliteStore(folder / "objects.db"), "squares")
    rs.pack(rs.Rows({"square": [n * n]} for n in range(100)), out, shards=2, shuffle=False)
    dataset = rs.open(out)
    assert [int(record["square"][0]) for record in dataset[7:10]] == [49, 64, 81]
    assert rs.verify(out, deep=True).is_good
    assert [entry.name for entry in out.list_entries() if entry.name.startswith("train")] == [
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
