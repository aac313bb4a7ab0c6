"""A source of one's own: the rows of a SQLite table become records.

`list_samples` reads no content; the reader finds that of a sample by its reference, in any process.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.sources import Listing, Note, Sample, StoredReader, ignore_note


@dataclass(frozen=True)
class NoteReader(StoredReader):
    """Reads one row. Its fields are plain values, so that a task can carry it."""

    path: str

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:  # noqa: ARG002
        with closing(sqlite3.connect(self.path)) as database:
            query = "SELECT body, stars FROM notes WHERE id = ?"
            body, stars = database.execute(query, (int(sample.name),)).fetchone()
        return {"body": body, "stars": stars}


class NoteSource:
    """The rows of the table `notes`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def list_samples(self) -> Listing:
        with closing(sqlite3.connect(self.path)) as database:
            rows = database.execute("SELECT id, length(body) FROM notes ORDER BY id").fetchall()
        samples = [Sample(str(number), size_bytes=size) for number, size in rows]
        return Listing(samples, NoteReader(str(self.path)))

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "NoteSource", "file": self.path.name}


def main(folder: Path) -> None:
    """Pack the table, read it, verify it."""
    rows = [("too short", 2), ("just right", 5), ("long", 3), ("again and again", 4)]
    with closing(sqlite3.connect(folder / "notes.db")) as database, database:
        database.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT, stars INTEGER)")
        database.executemany("INSERT INTO notes (body, stars) VALUES (?, ?)", rows)
    rs.pack(NoteSource(folder / "notes.db"), folder / "packed", shards=2, shuffle=False)
    records = [(r["body"][0].decode(), int(r["stars"][0])) for r in rs.open(folder / "packed")]
    assert records == rows
    assert rs.verify(folder / "packed", deep=True).is_good


if __name__ == "__main__":
    main(Path(sys.argv[1]))
