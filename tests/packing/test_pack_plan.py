"""Plans: saving, packing shard by shard, and completing the dataset."""

from __future__ import annotations

import dataclasses
import errno
import importlib
import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.building import ShardResult
from recordsmith.stores import LocalStore

from ..raising import raises

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


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_tasks_give_the_dataset_of_pack(flowers: Path, tmp_path: Path) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", **OPTIONS)
    out = tmp_path / "out"
    made = rs.plan(rs.ImageFolder(flowers), out, **OPTIONS)
    made.save(tmp_path / "plan.jsonl")
    plan = rs.PackPlan.load(tmp_path / "plan.jsonl")
    assert plan == made
    documents = [[task.to_json() for task in each.tasks()] for each in (plan, made)]
    assert documents[0] == json.loads(json.dumps(documents[1]))
    assert [shard.file for shard in plan.shards][:2] == [
        "x-train-0.tfrecord.gz",
        "x-train-1.tfrecord.gz",
    ]
    assert sum(shard.sample_count for shard in plan.shards) == 16

    def work(number: int) -> ShardResult:
        (task,) = plan.tasks([number])
        result = rs.run(json.loads(json.dumps(task.to_json())))
        assert result.file == task.name == plan.shards[number].file
        assert result.record_count == task.size == plan.shards[number].sample_count
        return ShardResult.from_json(json.loads(json.dumps(result.to_json())))

    with ThreadPoolExecutor(3) as pool:
        results = [*pool.map(work, (4, 0, 2, 0, 5))]
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.open(out)
    assert caught.value.defect is rs.Defect.UNFINISHED_DATASET
    assert "4 complete shards" in caught.value.problem
    for incomplete in (results, [work(1), *results]):
        with raises(rs.OptionError, option="results"):
            rs.finish(plan, incomplete)
    results += [work(1), work(3)]
    read: list[str] = []
    with monkeypatch_reads(read):
        report = rs.finish(plan, results)
    assert not [name for name in read if "tfrecord" in name]
    assert (report.is_new, report.sample_count) == (True, 16)
    assert _files(out) == _files(tmp_path / "plain")
    assert not rs.finish(plan, results).is_new


@contextmanager
def monkeypatch_reads(read: list[str]) -> Iterator[None]:
    """Note the keys of all objects that are opened for reading."""
    usual = LocalStore.open_read

    def open_read(store: LocalStore, key: str, info: Any = None) -> Any:
        read.append(key)
        return usual(store, key, info)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "open_read", open_read)
        yield


def test_samples_that_changed_are_noticed(
    flowers: Path, tmp_path: Path, images: ModuleType
) -> None:
    """A task has what was listed: a new file is not in it, and a missing one is skipped by name."""
    plan = rs.plan(rs.ImageFolder(flowers), tmp_path / "out")
    (flowers / "rose" / "new.jpg").write_bytes(images.jpeg())
    first = min((flowers / "rose").iterdir())
    first.unlink()
    results = [*map(rs.run, plan.tasks())]
    with pytest.raises(rs.SourceError) as caught:
        rs.finish(plan, results)
    assert caught.value.problem_count == 1
    assert first.name in next(iter(caught.value.problems))
    report = rs.finish(plan, results, skip_errors=True)
    assert (report.sample_count, report.skipped_count) == (15, 1)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_tasks_that_read_more_when_repeated(
    flowers: Path, tmp_path: Path, order: tuple[int, ...]
) -> None:
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
    assert results[0].entry != results[1].entry
    with raises(rs.OptionError, option="results"):
        rs.finish(plan, results[:2], skip_errors=True)
    rs.finish(plan, [results[number] for number in order])
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", shards=1)
    assert _files(tmp_path / "out") == _files(tmp_path / "plain")


def test_results_of_another_plan_are_refused(flowers: Path, tmp_path: Path) -> None:
    plans = [rs.plan(rs.ImageFolder(flowers), tmp_path / f"{seed}", seed=seed) for seed in (1, 2)]
    results = [[*map(rs.run, plan.tasks())] for plan in plans]
    with raises(rs.OptionError, option="results"):
        rs.finish(plans[0], results[1])
    other = dataclasses.replace(results[0][0], crc32c=5)
    with raises(rs.OptionError, option="results"):
        rs.finish(plans[0], [*results[0], other])
    assert rs.finish(plans[0], results[0] * 2).is_new


def test_a_shard_that_is_not_here_is_named(flowers: Path, tmp_path: Path) -> None:
    """As where a worker's disk is not the one of this machine."""
    out = tmp_path / "out"
    plan = rs.plan(rs.ImageFolder(flowers), out, shards=3)
    results = [*map(rs.run, plan.tasks())]
    lost = out / ".recordsmith" / f"{plan.shards[1].file}.partial"
    lost.unlink()
    with raises(rs.FileAccessError, path=out / plan.shards[1].file, errno=errno.ENOENT):
        rs.finish(plan, results)
    assert not (out / "dataset.json").exists()
    results[1] = rs.run(next(plan.tasks([1])))
    assert rs.finish(plan, results).is_new


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((), []),
        (("version",), 0),
        (("version",), None),
        (("name",), None),
        (("name",), "../x.tfrecord"),
        (("name",), ".x.tfrecord"),
        (("name",), "x.txt"),  # a task replaces only shards
        (("name",), "dataset.json"),
        (("number",), "0"),
        (("split",), 5),
        (("split",), "a\nb"),
        (("recipe", "compression"), "x"),
        (("order",), [0] * 16),  # a sample twice
        (("order", 1), 2**62),
        (("numbers",), [0]),
        (("samples",), None),
        (("samples", "names", 0), 5),
        (("samples", "sizes", 0), -1),
        (("samples", "versions"), "x"),
        (("samples", "labels"), [2**40]),
        (("reader", "root"), 5),
        (("reader", "reader"), "os:system"),
        (("recipe", "keys"), "x"),
        (("rows",), {"name": "../x", "begins": [], "ends": [], "faults": []}),
        (("rows",), {"name": "x", "begins": [-1], "ends": [2**62], "faults": []}),
    ],
    ids=str,
)
def test_tasks_of_others(flowers: Path, tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    """A task from a stranger names its fault, and writes nothing."""
    (task,) = rs.plan(rs.ImageFolder(flowers), tmp_path / "out").tasks()
    document = _changed(task.to_json(), place, value)
    with pytest.raises(rs.OptionError):
        rs.run(document)
    outside = [path for path in tmp_path.rglob("*") if flowers not in (path, *path.parents)]
    assert {path.name for path in outside} <= {"out", ".recordsmith", "lock"}


def _changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value at a place in it."""
    if not place:
        return value
    found = json.loads(json.dumps(document))
    inner = found
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return found


def test_a_machine_without_the_source(flowers: Path, tmp_path: Path) -> None:
    (task,) = rs.plan(rs.ImageFolder(flowers), tmp_path / "out").tasks()
    flowers.rename(tmp_path / "elsewhere")
    with raises(rs.FileAccessError, path=flowers, errno=errno.ENOENT):
        rs.run(task)


@pytest.mark.parametrize("number", [-1, 6])
def test_shard_number_out_of_range(flowers: Path, tmp_path: Path, number: int) -> None:
    plan = rs.plan(rs.ImageFolder(flowers), tmp_path / "out", **OPTIONS)
    with pytest.raises(rs.OptionError) as caught:
        plan.tasks([number])
    error = caught.value
    assert (error.option, error.value) == ("only", str(number))
    assert error.expected == "integers from 0 to 5"


def test_pack_is_refused_while_shards_are_written(
    flowers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []
    module = importlib.import_module("recordsmith.packing.pack")
    usual = module.run_task

    def run_task(task: Any) -> Any:
        with raises(rs.FileAccessError, operation="write", errno=errno.EBUSY):
            rs.pack(rs.ImageFolder(flowers), tmp_path / "out")
        refused.append(True)
        return usual(task)

    monkeypatch.setattr(module, "run_task", run_task)
    rs.run(next(rs.plan(rs.ImageFolder(flowers), tmp_path / "out").tasks()))
    assert refused


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 1},
        {"version": 3},
        {"options": {"unknown": 1}},
        {"options": 5},
        {"shards": [{}]},
        {"shards": []},
        {"shards": [["../x.tfrecord", "train", 16]]},
        {"shards": [["authorized_keys", "train", 16]]},
        {"shards": [["x.tfrecord", "train", -1]]},
        {"shards": [["x.tfrecord", "train", 8]] * 2},
        {"shards": [["x.tfrecord", "test", 16]]},
        {"splits": ["train", "a\nb"]},
        {"listed": {}},
        {"fingerprint": None, "shards": None},
    ],
    ids=str,
)
def test_invalid_plan_documents(flowers: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "plan.json"
    rs.plan(rs.ImageFolder(flowers), tmp_path / "out").save(path)
    header, *tasks = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(header) | change), *tasks]))
    with pytest.raises(rs.OptionError) as caught:
        rs.PackPlan.load(path)
    assert (caught.value.option, caught.value.value) == ("path", f"{str(path)!r:.80}")


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1],
        lambda lines: [lines[0], lines[2], lines[1], lines[3]],
        lambda lines: [lines[0], lines[1].replace('"out": "', '"out": "/other'), *lines[2:]],
        lambda lines: [lines[0].replace('"fingerprint": "', '"fingerprint": "0'), *lines[1:]],
        lambda lines: [lines[0], "[" * 100_000, *lines[2:]],
    ],
    ids=["truncated", "reordered", "another folder", "another plan", "deep"],
)
def test_a_plan_has_only_its_own_tasks(
    flowers: Path, tmp_path: Path, change: Callable[[list[str]], list[str]]
) -> None:
    """So the first line of a plan shows what its tasks write."""
    path = tmp_path / "plan.jsonl"
    rs.plan(rs.ImageFolder(flowers), tmp_path / "out", shards=3).save(path)
    lines = [json.dumps(json.loads(line)) for line in path.read_text().splitlines()]
    path.write_text("\n".join(change(lines)))
    with raises(rs.OptionError, option="path"):
        [*rs.PackPlan.load(path).tasks()]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((), []),
        (("file",), "../x.tfrecord"),
        (("records",), 17),
        (("records",), -1),
        (("size_bytes",), -1),
        (("crc32c",), 1.5),
        (("schema",), None),
        (("skipped",), [["0", 5]]),
        (("notes",), {"x": 5}),
        (("images",), {"image": 5}),
    ],
    ids=str,
)
def test_results_of_strangers(
    flowers: Path, tmp_path: Path, place: tuple[Any, ...], value: Any
) -> None:
    plan = rs.plan(rs.ImageFolder(flowers), tmp_path / "out", keys="tfds")
    (result,) = map(rs.run, plan.tasks())
    with raises(rs.OptionError, option="results"):
        rs.finish(plan, [_changed(result.to_json(), place, value)])
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert rs.finish(plan, [result.to_json()]).sample_count == 16


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff"])
def test_files_that_are_not_plans(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(data)
    with pytest.raises(rs.OptionError) as caught:
        rs.PackPlan.load(tmp_path / "plan.json")
    assert caught.value.option == "path"


def test_options_that_do_not_affect_the_shards(flowers: Path) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.plan(rs.ImageFolder(flowers), "out", overwrite=True)
    assert caught.value.option == "overwrite"


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("image_options", {"store": "png"}, "recordsmith.ImageOptions(...)"),
        ("shard_size_bytes", "1MB", "a positive integer"),
        ("shard_names", 5, "a template"),
    ],
)
def test_options_of_invalid_types(flowers: Path, option: str, value: Any, expected: str) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.plan(rs.ImageFolder(flowers), "out", **{option: value})
    assert (caught.value.option, caught.value.value) == (option, repr(value))
    assert caught.value.expected.startswith(expected)


def test_arguments_of_invalid_types(flowers: Path, tmp_path: Path) -> None:
    source, out = rs.ImageFolder(flowers), tmp_path / "out"
    for other in (None, [{"a": 1}]):
        for job in (lambda: rs.plan(other, out), lambda: rs.pack(other, out)):  # type: ignore[arg-type]  # noqa: B023 - called here
            with pytest.raises(rs.OptionError) as caught:
                job()
            assert (caught.value.option, caught.value.value) == ("source", repr(other))
    with raises(rs.OptionError, option="threads", value="2"):
        rs.pack(source, out, threads="2")  # type: ignore[arg-type]
    with pytest.raises(rs.OptionError) as caught:
        rs.plan(source, out).tasks(["0"])  # type: ignore[list-item]
    assert (caught.value.option, caught.value.value) == ("only", "'0'")


def test_image_that_is_a_number(tmp_path: Path) -> None:
    options = rs.ImageOptions(store="png")
    with pytest.raises(rs.SourceError, match=r"'image/encoded' .*5"):
        rs.pack(rs.Rows([{"image/encoded": 5}]), tmp_path / "out", image_options=options)
