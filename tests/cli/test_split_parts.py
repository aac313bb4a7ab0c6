"""`--split` takes a part of a split wherever records are read, and a name where files are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

PART = "train[:50%]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """7 records of `train` and 2 of `test`."""
    folder = tmp_path / "in"
    folder.mkdir()
    for split, count in {"train": 7, "test": 2}.items():
        with rs.ShardWriter(folder / f"{split}-00000-of-00001.tfrecord") as writer:
            for number in range(count):
                writer.write_example({"id": number, "name": f"{split} {number}"})
    return folder


@pytest.mark.parametrize(("split", "expected"), [(PART, 4), ("test+train[-1:]", 3), ("test", 2)])
def test_jobs_that_read_records(
    run: Any, folder: Path, tmp_path: Path, split: str, expected: int
) -> None:
    assert len(run("head", folder, "-n", 99, "--json", "--split", split).document["records"]) == (
        expected
    )
    assert run("inspect", folder, "--json", "--split", split).document["records"] == expected
    outcome = run("export", folder, tmp_path / "csv", "--format", "csv", "--split", split, "--json")
    assert outcome.document["records"] == expected
    assert (
        run("diff", folder, folder, "--json", "--split", split).document["same_count"] == expected
    )
    if split != "test+train[-1:]":
        job = ("reshard", folder, tmp_path / "out", "--split", split, "--json")
        assert run(*job).document["records"] == expected


@pytest.mark.parametrize("command", ["verify", "index", "salvage"])
def test_jobs_that_read_files(run: Any, folder: Path, tmp_path: Path, command: str) -> None:
    out = [tmp_path / "out"] if command == "salvage" else []
    outcome = run(command, folder, *out, "--split", PART, "--json")
    assert outcome.code == 2
    assert outcome.document["option"] == "split"
    assert run(command, folder, *out, "--split", "train", "--json").code == 0


def test_a_malformed_part(run: Any, folder: Path) -> None:
    outcome = run("head", folder, "--split", "train[:50%", "--json")
    assert outcome.code == 2
    assert outcome.document["option"] == "split"
