"""Plans: saving, packing shard by shard, and completing the dataset."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import recordsmith as rs
from recordsmith.stores.local.store import LocalStore
from recordsmith.writing import ShardResult

from ...killed_jobs import killed_before
from ...places import contents
from ...raising import raises

OPTIONS: dict[str, Any] = {
    "splits": {"train": 0.7, "test": 0.3},
    "shards": 3,
    "seed": 5,
    "keys": {"image/width": None},
    "compression": "gzip",
    "shard_names": "x-{split}-{shard}",
}


@pytest.fixture
def flowers(tmp_path: Path, images: ModuleType) -> Path:
    return images.make_folder(tmp_path / "flowers", {"daisy": 10, "rose": 6})  # type: ignore[no-any-return]


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


def test_tasks_give_the_dataset_of_pack(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through files and JSON, in any order, some of them twice, and without reading a shard."""
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", **OPTIONS)
    out = tmp_path / "out"
    made = rs.plan(rs.ImageFolder(flowers), out, **OPTIONS)
    made.save(tmp_path / "plan.jsonl")
    plan = rs.PackPlan.load(tmp_path / "plan.jsonl")
    assert plan == made
    documents = [[through_json(task.to_json()) for task in each.tasks()] for each in (plan, made)]
    assert documents[0] == documents[1]
    assert sum(shard.sample_count for shard in plan.shards) == 16

    def work(number: int) -> ShardResult:
        (task,) = plan.tasks([number])
        result = rs.run(through_json(task.to_json()))
        assert result.file == task.name == plan.shards[number].file
        assert result.record_count == task.size == plan.shards[number].sample_count
        return ShardResult.from_json(through_json(result.to_json()))

    results = [*map(work, (4, 0, 2, 0, 5))]
    with raises(rs.CorruptDataError, defect=rs.Defect.UNFINISHED_DATASET):
        rs.open(out)
    for incomplete in (results, [work(1), *results]):
        with raises(rs.OptionError, option="results"):
            rs.finish(plan, incomplete)
    results += [work(1), work(3)]
    read: list[str] = []
    usual = LocalStore.open_read
    monkeypatch.setattr(
        LocalStore, "open_read", lambda *args: (read.append(args[1]), usual(*args))[1]
    )
    report = rs.finish(plan, results)
    assert not [name for name in read if "tfrecord" in name]
    assert (report.is_new, report.sample_count) == (True, 16)
    assert contents(out) == contents(tmp_path / "plain")
    assert not rs.finish(plan, results).is_new


def test_tasks_that_read_more_when_repeated(flowers: Path, tmp_path: Path) -> None:
    """The result with the most samples counts, in any order of the results."""
    plan = rs.plan(rs.ImageFolder(flowers), tmp_path / "out", shards=1)
    results = []
    for name in ("daisy/000.png", "rose/000.png", None):
        if name is not None:
            (flowers / name).rename(tmp_path / "aside")
        results += map(rs.run, plan.tasks())
        if name is not None:
            (tmp_path / "aside").rename(flowers / name)
    assert [result.record_count for result in results] == [15, 15, 16]
    with raises(rs.OptionError, option="results"):
        rs.finish(plan, results[:2], skip_errors=True)
    rs.finish(plan, results[::-1])
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", shards=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "plain")


def test_results_of_another_plan_are_refused(flowers: Path, tmp_path: Path) -> None:
    plans = [rs.plan(rs.ImageFolder(flowers), tmp_path / f"{seed}", seed=seed) for seed in (1, 2)]
    results = [[*map(rs.run, plan.tasks())] for plan in plans]
    entry = msgspec.structs.replace(results[0][0].entry, crc32c=5)
    other = dataclasses.replace(results[0][0], entry=entry)
    strange = {**results[0][0].to_json(), "records": "many"}
    for wrong in (results[1], [*results[0], other], [strange], [{}]):
        with raises(rs.OptionError, option="results"):
            rs.finish(plans[0], wrong)
    assert rs.finish(plans[0], [result.to_json() for result in results[0] * 2]).is_new


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((), []),
        (("version",), 0),
        (("name",), "../x.tfrecord"),
        (("name",), ".x.tfrecord"),
        (("name",), "x.txt"),  # a task replaces only shards
        (("name",), "dataset.json"),
        (("number",), "0"),
        (("split",), "a\nb"),
        (("options", "compression"), "x"),
        (("samples",), None),
        (("samples", 0, 0), -1),
        (("samples", 0, 1), 5),
        (("samples", 0, 3), 2**40),
        (("reader", "root"), 5),
        (("reader", "reader"), "os:system"),
        (("options", "keys"), "x"),
    ],
    ids=str,
)
def test_tasks_of_others(flowers: Path, tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    """A task from a stranger names its fault, and writes nothing."""
    (task,) = rs.plan(rs.ImageFolder(flowers), tmp_path / "out").tasks()
    document = through_json(task.to_json()) if place else value
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    if place:
        inner[place[-1]] = value
    with pytest.raises(rs.OptionError):
        rs.run(document)
    outside = [path for path in tmp_path.rglob("*") if flowers not in (path, *path.parents)]
    assert {path.name for path in outside} <= {"out", ".recordsmith", "lock"}


@pytest.mark.posix
def test_tasks_keep_an_interrupted_append(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard of a task could replace one that the append needs to finish."""
    out = tmp_path / "out"
    for place in (out, tmp_path / "more"):
        rs.pack(rs.ImageFolder(flowers), place)
    plan = rs.plan(rs.ImageFolder(flowers), out, shards=2)

    def stopped() -> None:
        monkeypatch.setattr(
            "recordsmith.writing.building.publishing._remove",
            lambda *_: os.kill(os.getpid(), signal.SIGKILL),
        )
        rs.append(tmp_path / "more", out)

    assert killed_before(10**6, stopped)
    with raises(rs.OptionError, option="out", match="recordsmith recover"):
        list(map(rs.run, plan.tasks()))
    assert rs.append(tmp_path / "more", out).shard_count == 2
    assert rs.verify(out).is_good
    rs.finish(plan, list(map(rs.run, plan.tasks())), overwrite=True)
    assert rs.verify(out).is_good


def test_a_machine_without_the_source(flowers: Path, tmp_path: Path) -> None:
    (task,) = rs.plan(rs.ImageFolder(flowers), tmp_path / "out").tasks()
    flowers.rename(tmp_path / "elsewhere")
    with raises(rs.FileAccessError, path=flowers, errno=errno.ENOENT):
        rs.run(task)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: [lines[0], lines[2], lines[1], lines[3]],
        lambda lines: [lines[0], lines[1].replace('"out":"', '"out":"/other'), *lines[2:]],
        lambda lines: [lines[0].replace('"fingerprint":"', '"fingerprint":"0'), *lines[1:]],
        lambda lines: [lines[0], "[" * 100_000, *lines[2:]],
        lambda lines: [lines[0].replace("x-train-0", "../train-0"), *lines[1:]],
        lambda lines: [lines[0].replace('"version":', '"version":9'), *lines[1:]],
        lambda _: ["[]"],
        lambda _: [],
    ],
    ids=["truncated", "reordered", "folder", "plan", "deep", "name", "version", "list", "empty"],
)
def test_a_plan_has_only_its_own_tasks(
    flowers: Path, tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    """So the first line of a plan shows what its tasks write."""
    path = tmp_path / "plan.jsonl"
    options = {**OPTIONS, "splits": None}
    rs.plan(rs.ImageFolder(flowers), tmp_path / "out", **options).save(path)
    path.write_text("\n".join(change(path.read_text().splitlines())))
    with raises(rs.OptionError, option="path"):
        [*rs.PackPlan.load(path).tasks()]


def test_what_has_no_plan(flowers: Path, tmp_path: Path) -> None:
    with raises(rs.OptionError, option="source"):
        rs.plan(rs.Rows([{"a": 1}]), tmp_path / "out")
    with raises(rs.OptionError, option="overwrite"):
        rs.plan(rs.ImageFolder(flowers), tmp_path / "out", overwrite=True)
    with raises(rs.OptionError, option="only"):
        rs.plan(rs.ImageFolder(flowers), tmp_path / "out").tasks([1])
