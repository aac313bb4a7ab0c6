"""Jobs that every engine runs, with the same bytes as local threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.stores import as_folder
from recordsmith.tasks import Engine

from ..json_engine import JsonEngine

SHARDS = 12
ROWS = 2400


def write_table(path: Path) -> Path:
    """Write a source of rows, some of which lack a column."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(ROWS):
            row: dict[str, Any] = {"id": number, "name": f"row {number}"}
            row["values"] = [1.5] * (number % 4)
            if number % 3:
                row["label"] = number % 5
            file.write(json.dumps(row) + "\n")
    return path


def pack_table(path: Path, out: Any, **options: Any) -> None:
    """Pack it into two splits of several shards."""
    splits = {"train": 0.75, "test": 0.25}
    rs.pack(rs.Table(path), out, splits=splits, shards=SHARDS // 2, seed=3, **options)


def checksums(out: Any) -> dict[str, int]:
    """The checksum of each shard; `verify` compares them with the bytes."""
    report = rs.verify(out, deep=True)
    assert report.is_good, report
    entries = {shard.location.name: shard.entry for shard in rs.open(out).shards}
    return {name: entry.crc32c for name, entry in entries.items() if entry is not None}


def exported(dataset: Any, engine: Engine | None = None) -> dict[str, bytes]:
    """The tar files of an export; without an engine, of tasks in this process."""
    out = as_folder(f"{dataset}-{'here' if engine is None else 'engine'}")
    rs.export(dataset, out, "webdataset", engine=engine or JsonEngine())
    return {place.name: place.read() for place in sorted(out.list(), key=str)}
