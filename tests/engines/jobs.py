"""Jobs that every engine runs, with the same bytes as local threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.stores import as_folder
from recordsmith.support.tasks import Engine

from ..repeating_engine import RepeatingEngine

SHARDS = 12
ROWS = 2400


def write_records(folder: Path) -> Path:
    """Write a dataset of rows, some of which lack a column."""
    rows: list[dict[str, Any]] = []
    for number in range(ROWS):
        row: dict[str, Any] = {"id": number, "name": f"row {number}"}
        row["values"] = [1.5] * (number % 4)
        if number % 3:
            row["label"] = number % 5
        rows.append(row)
    rs.pack(rs.Rows(rows), folder, shards=4)
    return folder


def reshard(path: Path, out: Any, **options: Any) -> None:
    """Rewrite it to two splits of several shards."""
    splits = {"train": 0.75, "test": 0.25}
    rs.reshard(path, out, splits=splits, shards=SHARDS // 2, shuffle=True, seed=3, **options)


def reshard_by_command(path: Path, out: Path, engine: str | None) -> None:
    """Do it by a command in a process of its own; check that standard output is only JSON."""
    program = Path(__file__).parent / "noisy.py"
    options = ["--splits", "train=0.75,test=0.25", "--shards", str(SHARDS // 2), "--seed", "3"]
    options += ["--shuffle", "--json", *(["--engine", engine] if engine else [])]
    folders = [str(program.parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(program), "reshard", str(path), str(out), *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == ROWS
    for kind in ("Python", "C", "a process"):
        assert done.stderr.count(f"noise of {kind}\n") >= 2


def checksums(out: Any) -> dict[str, int]:
    """The checksum of each shard; `verify` compares them with the bytes."""
    report = rs.verify(out, deep=True)
    assert report.is_good, report
    entries = {shard.location.name: shard.entry for shard in rs.open(out).shards}
    return {name: entry.crc32c for name, entry in entries.items() if entry is not None}


def exported(dataset: Any, engine: Engine | None = None) -> dict[str, bytes]:
    """The tar files of an export; without an engine, of tasks in this process."""
    out = as_folder(f"{dataset}-{'here' if engine is None else 'engine'}")
    rs.export(dataset, out, "webdataset", engine=engine or RepeatingEngine())
    return {place.name: place.read() for place in sorted(out.list(), key=str)}
