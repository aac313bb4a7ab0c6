"""Finishing a plan publishes the shards of its results, and no other shards of equal size."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.building import ShardResult, done_location, partial_location
from recordsmith.stores import Location, MemoryStore, as_folder

from ..killed_jobs import killed_before
from ..places import visible
from ..raising import raises
from .disturbed_stores import DyingStore, Killed, run_in

ROWS = [{"id": number} for number in range(1000, 1040)]


def plan(place: Location, seed: int = 1) -> rs.PackPlan:
    """Plans of all seeds have shards of the same names and sizes."""
    return rs.plan(rs.Rows(ROWS), place, shards=2, seed=seed)


def run(made: rs.PackPlan, *numbers: int) -> list[ShardResult]:
    return [run_in(made.out, task) for task in made.tasks(numbers or (0, 1))]


def packed(place: Location, seed: int = 1) -> dict[str, bytes]:
    """The files of the dataset, written by one process."""
    rs.pack(rs.Rows(ROWS), place, shards=2, seed=seed)
    return visible(place)


def noted(**fields: Any) -> Callable[[Location, str], None]:
    """Change fields of the note of a shard."""

    def change(place: Location, file: str) -> None:
        note = done_location(place, file)
        note.put(json.dumps(json.loads(note.read()) | fields).encode())

    return change


CHANGES: dict[str, Callable[[Location, str], None]] = {
    "removed": lambda place, file: partial_location(place, file).delete(),
    "shorter": lambda place, file: partial_location(place, file).put(b""),
    "without note": lambda place, file: done_location(place, file).delete(),
    "damaged note": lambda place, file: done_location(place, file).put(b"["),
    "other plan": noted(plan="0" * 32),
    "other size": noted(size_bytes=1, object_version=""),
    "other bytes": noted(crc32c=1, object_version=""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_after_its_task(place: Location, tmp_path: Path, name: str) -> None:
    made = plan(place)
    results = run(made)
    file = made.shards[1].file
    CHANGES[name](place, file)
    with raises(rs.FileAccessError, path=place / file, errno=errno.ENOENT):
        rs.finish(made, results)
    assert not (place / "dataset.json").exists()
    results[1:] = run(made, 1)
    rs.finish(made, results)
    assert visible(place) == packed(as_folder(tmp_path / "plain"))


def test_missing_over_an_older_dataset(tmp_path: Path) -> None:
    older = packed(as_folder(tmp_path / "out"), seed=2)
    made = plan(as_folder(tmp_path / "out"))
    results = run(made)
    assert {file: len(data) for file, data in older.items() if "train" in file} == {
        result.file: result.size_bytes for result in results
    }
    for path in (tmp_path / "out" / ".recordsmith").glob(f"{made.shards[0].file}.*"):
        path.unlink()
    with raises(rs.FileAccessError, path=made.out / made.shards[0].file, errno=errno.ENOENT):
        rs.finish(made, results, overwrite=True)
    assert visible(tmp_path / "out") == older


def test_replaced_by_a_late_task_of_another_plan(tmp_path: Path) -> None:
    made, other = (plan(as_folder(tmp_path / "out"), seed) for seed in (1, 2))
    results = run(made)
    run(other, 0)
    with raises(rs.FileAccessError, path=made.out / made.shards[0].file, errno=errno.ENOENT):
        rs.finish(made, results)
    rs.finish(made, [*run(made, 0), *results[1:]])
    assert visible(tmp_path / "out") == packed(as_folder(tmp_path / "plain"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")
@pytest.mark.parametrize("overwrite", [False, True])
def test_finishing_again(tmp_path: Path, overwrite: bool) -> None:
    """After it was killed at any change of the file system, or was done."""
    wanted = packed(as_folder(tmp_path / "plain"))
    for number in count(1):
        made = plan(as_folder(tmp_path / f"{number}"))
        if overwrite:
            packed(made.out, seed=2)
        results = run(made)

        def finish() -> None:
            rs.finish(made, results, overwrite=overwrite)  # noqa: B023 - called in this round

        killed = killed_before(number, finish)
        finish()
        assert visible(made.out) == wanted, number
        if not killed:
            break
    assert number > 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_finishing_again_without_renaming(tmp_path: Path) -> None:
    wanted = packed(as_folder(tmp_path / "plain"))
    for changes in count():
        store = MemoryStore()
        made = plan(Location(store, "out"))
        results = run(made)
        dying = DyingStore(store, changes)
        with suppress(Killed):
            rs.finish(plan(Location(dying, "out")), results)
        rs.finish(made, results)
        assert visible(made.out) == wanted, changes
        if not dying.is_dead:
            break
    assert changes > 3


@pytest.mark.parametrize("missing", ["result", "shard"])
def test_tasks_run_after_finishing_too_early(place: Location, tmp_path: Path, missing: str) -> None:
    """Their rows are kept until the dataset is complete."""
    made = plan(place)
    tasks = [*made.tasks()]
    results = [run_in(place, tasks[0])]
    if missing == "shard":
        results.append(dataclasses.replace(results[0], file=tasks[1].name))
    kind = rs.OptionError if missing == "result" else rs.FileAccessError
    for _ in range(2):
        with raises(kind):
            rs.finish(made, results)
    rs.finish(made, [results[0], run_in(place, tasks[1])])
    assert visible(place) == packed(as_folder(tmp_path / "plain"))
    internal = {entry.name for entry in (place / ".recordsmith").list_entries()}
    assert internal - {"lock"} == {f"{task.name}.index" for task in tasks}
