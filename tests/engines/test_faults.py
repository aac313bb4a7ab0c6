"""Faults of workers and drivers: an error that names the task, no dataset, and a good next run."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines.processes import Processes
from recordsmith.support.tasks import Outcome, Task

from ..places import visible
from ..raising import raises
from ..repeating_engine import RepeatingEngine
from .workers import OTHER_VERSIONS, other_version

Job = Callable[..., Any]


@pytest.fixture
def flowers(tmp_path: Path, images: ModuleType) -> Path:
    return images.make_folder(tmp_path / "flowers", {"daisy": 9, "rose": 6})  # type: ignore[no-any-return]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two shards that do not compress."""
    noise = random.Random(0)
    folder = tmp_path / "records"
    folder.mkdir()
    for name in "ab":
        with rs.ShardWriter(folder / f"{name}.tfrecord") as writer:
            for number in range(150):
                writer.write_example({"id": number, "data": noise.randbytes(5000)})
    return folder


@pytest.fixture(params=["pack", "reshard", "edit"])
def job(request: pytest.FixtureRequest, flowers: Path, records: Path) -> Job:
    """A job that writes a dataset, as a function of the folder and an engine."""
    jobs: dict[str, Job] = {
        "pack": lambda out, **options: rs.pack(rs.ImageFolder(flowers), out, shards=3, **options),
        "reshard": lambda out, **options: rs.reshard(records, out, shards=3, **options),
        "edit": lambda out, **options: rs.edit(records, out, drop=["id"], **options),
    }
    return jobs[request.param]


def assert_no_dataset(out: Any) -> None:
    """Nothing opens, and on a disk nothing has a final name."""
    with pytest.raises(rs.RecordsmithError):
        rs.open(out)
    if isinstance(out, Path):
        assert not out.exists() or not visible(out)


def assert_next_run_completes(job: Job, out: Any, plain: Any) -> None:
    """The next run gives the bytes of threads."""
    job(out, engine=Processes(2))
    job(plain)
    assert visible(out) == visible(plain)
    assert rs.verify(out, deep=True).is_good


# -- results ---------------------------------------------------------------------------------------


FOREIGN: dict[str, Callable[[Outcome], object]] = {
    "no outcome": vars,
    "of an unknown task": lambda outcome: replace(outcome, number=outcome.number + 100),
}
"""What the engine returns instead of an outcome."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_an_outcome_of_the_job(job: Job, tmp_path: Path, name: str) -> None:
    with raises(rs.OptionError, option="results"):
        job(tmp_path / "out", engine=RepeatingEngine(after=FOREIGN[name]))
    assert_no_dataset(tmp_path / "out")
    assert_next_run_completes(job, tmp_path / "out", tmp_path / "threads")


def _remove(shard: Path) -> None:
    shard.unlink()


def _replace(shard: Path) -> None:
    """As another job, whose shard has the same size."""
    shard.write_bytes(bytes(shard.stat().st_size))
    note = shard.with_suffix(".done")
    if note.exists():
        note.write_text(json.dumps(json.loads(note.read_text()) | {"fingerprint": "0" * 32}))


@pytest.mark.slow
@pytest.mark.parametrize("change", [_remove, _replace])
def test_shards_of_workers_that_are_not_here(
    job: Job, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """As where its folder is not the one of the driver, or another job writes there."""
    internal = tmp_path / "out" / ".recordsmith"

    def after(_: Outcome) -> None:
        for path in internal.glob("*.tfrecord.partial"):
            change(path)

    with raises(rs.FileAccessError, errno=errno.ENOENT):
        job(tmp_path / "out", engine=RepeatingEngine(after=after))
    assert_no_dataset(tmp_path / "out")
    assert_next_run_completes(job, tmp_path / "out", tmp_path / "threads")


# -- views of the source ---------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["removed", "other bytes"])
def test_a_worker_that_sees_another_input(records: Path, tmp_path: Path, change: str) -> None:
    """Also if the driver sees the right one again."""
    path, out = records / "b.tfrecord", tmp_path / "out"
    size, aside = path.stat().st_size, tmp_path / "aside"
    with rs.ShardWriter(tmp_path / "other.tfrecord") as writer:
        for number in range(150):
            writer.write_example({"id": number, "data": bytes(5000)})
    other = (tmp_path / "other.tfrecord").read_bytes()

    def before(_: Task) -> None:
        path.rename(aside)
        if change != "removed":
            assert len(other) == size
            path.write_bytes(other)

    def restore(_: object) -> None:
        aside.replace(path)

    def reshard(out: Path, **options: Any) -> None:
        rs.reshard(records, out, shards=2, **options)

    with raises(rs.FileAccessError, path=path) as caught:
        reshard(out, engine=RepeatingEngine(before, restore))
    assert "train-00001-of-00002" in caught.value.remedy  # type: ignore[attr-defined]
    assert_no_dataset(out)
    assert_next_run_completes(reshard, out, tmp_path / "threads")


def test_a_worker_without_a_sample(flowers: Path, tmp_path: Path) -> None:
    path = flowers / "rose" / "000.png"
    data, times = path.read_bytes(), path.stat()

    def pack(out: Path, **options: Any) -> None:
        rs.pack(rs.ImageFolder(flowers), out, shards=3, **options)

    engine = RepeatingEngine(lambda _: path.unlink(missing_ok=True))
    with raises(rs.SourceError, problem_count=1, match="rose/000.png"):
        pack(tmp_path / "out", engine=engine)
    assert_no_dataset(tmp_path / "out")
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert_next_run_completes(pack, tmp_path / "out", tmp_path / "threads")


def test_the_machine_of_a_failed_task_is_named(flowers: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    engine = RepeatingEngine(
        lambda task: replace(task, version=0), lambda outcome: replace(outcome, machine="node-7")
    )
    with raises(rs.OptionError, option="task") as caught:
        rs.pack(rs.ImageFolder(flowers), tmp_path / "out", shards=1, engine=engine)
    assert "train-00000-of-00001.tfrecord failed on node-7" in caught.value.remedy


# -- other versions --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_VERSIONS)
def test_workers_of_another_version(
    name: str, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = other_version(name, tmp_path / "shadow")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path / "shadow"))
        with raises(rs.RecordsmithError, **fields) as caught:
            job(tmp_path / "out", engine=Processes(2))
    assert ".tfrecord" in str(caught.value) or fields.get("option") == "results"
    assert_no_dataset(tmp_path / "out")
    assert_next_run_completes(job, tmp_path / "out", tmp_path / "threads")


# -- disks -----------------------------------------------------------------------------------------


def test_a_worker_without_space(records: Path, small_disk: Path, tmp_path: Path) -> None:
    """A disk of 1 MiB, and shards of 300 kB."""
    out = small_disk / "out"
    with raises(rs.FileAccessError, errno=errno.ENOSPC) as caught:
        rs.reshard(records, out, shards=5, engine=Processes(2))
    assert "The task for train-0000" in caught.value.remedy
    assert_no_dataset(out)
    finished = len([*(out / ".recordsmith").glob("*.done")])
    assert finished >= 2
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)

    def reshard(out: Path, **options: Any) -> None:
        rs.reshard(records, out, shards=5, **options)

    assert_next_run_completes(reshard, out, tmp_path / "threads")


# -- buckets ---------------------------------------------------------------------------------------

SHARD, MANIFEST = r"tfrecord\?", r"dataset.json"
REFUSED = {
    "no space for a shard": ("507", SHARD, errno.ENOSPC),
    "no right to write a shard": ("403", SHARD, errno.EACCES),
    "no space for the manifest": ("507", MANIFEST, errno.ENOSPC),
    "no right to write the manifest": ("403", MANIFEST, errno.EACCES),
    "no right to begin": ("403", "begun.json", errno.EACCES),
}
"""Status of requests to write, their keys, and the error."""


@pytest.fixture
def bucket_url(s3: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket, whose options all processes find in their environment."""
    for name, value in s3.variables("bucket").items():
        monkeypatch.setenv(name, value)
    options = {"retry_config": {"max_retries": 1}}
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    return "s3://bucket"


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("engine", [RepeatingEngine(), Processes(2)], ids=["here", "processes"])
def test_a_bucket_that_refuses(
    s3: Any, bucket_url: str, flowers: Path, tmp_path: Path, name: str, engine: Any
) -> None:
    status, path, number = REFUSED[name]
    out = f"{bucket_url}/out"

    def pack(out: Any, **options: Any) -> None:
        rs.pack(rs.ImageFolder(flowers), out, shards=3, **options)

    s3.fail([status], method="PUT", path=path)
    with raises(rs.FileAccessError, errno=number, operation="write") as caught:
        pack(out, engine=engine)
    assert caught.value.path.startswith(f"{out}/")
    is_task = path == SHARD
    assert ("The task for train-0000" in caught.value.remedy) == is_task
    s3.fail(rate=0)
    assert "out/dataset.json" not in s3.objects()
    assert_no_dataset(out)
    assert_next_run_completes(pack, out, f"{bucket_url}/threads")
