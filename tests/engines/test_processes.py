"""Jobs on processes of this machine give the bytes of threads, also when processes are killed."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine
from recordsmith.engines.processes import Processes, _Running
from recordsmith.support.tasks import Outcome, Task, failed_error, run_on, run_task

from ..places import contents
from ..raising import raises
from ..repeating_engine import RepeatingEngine
from .jobs import checksums, reshard_by_command


@pytest.fixture
def flowers(tmp_path: Path, images: ModuleType) -> Path:
    return images.make_folder(tmp_path / "flowers", {"daisy": 9, "rose": 6})  # type: ignore[no-any-return]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    rows = [{"a": at, "b": [0.5] * (at % 3), "c": b"x" * (at % 50)} for at in range(400)]
    splits = {"train": 0.7, "test": 0.3}
    rs.pack(rs.Rows(rows), tmp_path / "in", shards=2, splits=splits, compression="gzip")
    return tmp_path / "in"


Job = Callable[..., object]


def _uncompressed(dataset: Path) -> Path:
    copy = dataset.parent / "uncompressed"
    if not copy.exists():
        rs.reshard(dataset, copy, compression="none")
    return copy


JOBS: dict[str, Callable[[Path, Path], tuple[Job, dict[str, Any]]]] = {
    "folder": lambda flowers, _: (
        lambda out, **options: rs.pack(rs.ImageFolder(flowers), out, **options),
        {"shards": 3, "splits": {"train": 0.6, "test": 0.4}},
    ),
    "other images": lambda flowers, _: (
        lambda out, **options: rs.pack(rs.ImageFolder(flowers), out, **options),
        {"shards": 2, "image_options": rs.ImageOptions(store="png"), "keys": "slim"},
    ),
    "rows in memory": lambda *_: (
        lambda out, **options: rs.pack(
            rs.Rows([{"a": at, "b": [1.0] * (at % 3)} for at in range(50)]), out, **options
        ),
        {"shards": 3, "compression": "zlib"},
    ),
    "records": lambda _, dataset: (
        lambda out, **options: rs.pack(rs.Shards(_uncompressed(dataset)), out, **options),
        {"shards": 3},
    ),
    "reshard": lambda _, dataset: (
        lambda out, **options: rs.reshard(dataset, out, **options),
        {"shards": 3, "compression": "none"},
    ),
    "shuffle": lambda _, dataset: (
        lambda out, **options: rs.reshard(dataset, out, **options),
        {"shards": 3, "shuffle": True, "where": "a > 100", "sample": 0.5},
    ),
    "edit": lambda _, dataset: (
        lambda out, **options: rs.edit(dataset, out, **options),
        {
            "drop": ["c"],
            "add": {"z": [1, 2], "w": b"\xff", "f": np.float32(1.5)},
            "recode": {"a": {1: 2, "*": "*"}},
        },
    ),
}


@pytest.mark.parametrize(
    "name",
    ["folder", "rows in memory", "reshard", "edit"]
    + [pytest.param(n, marks=pytest.mark.slow) for n in ("other images", "records", "shuffle")],
)
def test_the_bytes_are_those_of_threads(
    name: str, flowers: Path, dataset: Path, tmp_path: Path
) -> None:
    job, options = JOBS[name](flowers, dataset)
    job(tmp_path / "threads", **options)
    seen: list[tuple[int, int]] = []
    engine = Processes(2)
    job(tmp_path / "tasks", engine=engine, progress=lambda *now: seen.append(now), **options)
    assert contents(tmp_path / "tasks") == contents(tmp_path / "threads")
    assert seen == sorted(seen)
    assert len(seen) >= 2


@pytest.mark.parametrize("engine", [None, "processes:2"])
def test_standard_output_is_only_json(
    engine: str | None, source: Path, wanted: dict[str, int], tmp_path: Path
) -> None:
    reshard_by_command(source, tmp_path / "out", engine)
    assert checksums(tmp_path / "out") == wanted


class Killing(Processes):
    """Kills a process before each of the first results that it passes on."""

    def __init__(self, count: int, kills: int) -> None:
        super().__init__(count)
        self.kills = kills
        self.killed: list[int] = []

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        running = _Running(function, tasks, self._count)
        try:
            for outcome in running.outcomes():
                alive = [process for process in running._processes if process.poll() is None]
                if len(self.killed) < self.kills:
                    os.kill(alive[0].pid, signal.SIGKILL)
                    self.killed.append(alive[0].pid)
                yield outcome
        finally:
            running.stop()


@pytest.mark.posix
@pytest.mark.parametrize("kills", [1, 3])
def test_killed_processes(flowers: Path, tmp_path: Path, kills: int) -> None:
    options: dict[str, Any] = {"shards": 8, "image_options": rs.ImageOptions(store="png")}
    rs.pack(rs.ImageFolder(flowers), tmp_path / "threads", **options)
    engine = Killing(2, kills)
    rs.pack(rs.ImageFolder(flowers), tmp_path / "tasks", engine=engine, **options)
    assert len(engine.killed) == kills
    assert contents(tmp_path / "tasks") == contents(tmp_path / "threads")


def test_a_killed_driver_resumes(flowers: Path, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, _total: int) -> None:
        if done:
            raise Stop

    source = rs.ImageFolder(flowers)
    with pytest.raises(Stop):
        rs.pack(source, tmp_path / "tasks", shards=5, engine=Processes(1), progress=stop)
    with pytest.raises(rs.CorruptDataError):
        rs.open(tmp_path / "tasks")
    report = rs.pack(source, tmp_path / "tasks", shards=5, engine=Processes(1))
    assert report.reused_count >= 1
    rs.pack(source, tmp_path / "threads", shards=5)
    assert contents(tmp_path / "tasks") == contents(tmp_path / "threads")


def test_unreadable_samples_are_those_of_threads(flowers: Path, tmp_path: Path) -> None:
    for path in sorted((flowers / "rose").iterdir())[:3]:
        path.write_bytes(b"no image")
    source = rs.ImageFolder(flowers)
    found = []
    for engine in (None, Processes(2)):
        out = tmp_path / f"{engine}"
        with pytest.raises(rs.SourceError) as caught:
            rs.pack(source, out, shards=3, engine=engine)
        found.append((caught.value.problem_count, [*caught.value.problems]))
        report = rs.pack(source, out, shards=3, engine=engine, skip_errors=True)
        # an engine keeps complete shards; the one with the skipped samples is tried again
        assert (report.skipped_count, report.reused_count) == (3, 0 if engine is None else 2)
    assert found[0] == found[1]
    assert contents(tmp_path / "None") == contents(tmp_path / "Processes(2)")


def die(_: Task) -> Outcome:
    os._exit(9)


def fail(task: Task) -> Outcome:
    return run_task(replace(task, function=len))


def task(number: int, content: object = ()) -> Task:
    return Task(_returned, number, f"{number}.tfrecord", 1, content)


def _returned(content: object) -> object:
    if isinstance(content, Exception):
        raise content
    return content


@pytest.mark.parametrize("function", [die, fail])
def test_a_task_that_fails_is_named(
    function: Callable[[Task], Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.support.tasks.run_task", function)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with pytest.raises(rs.RecordsmithError) as caught:
        run_on(Processes(2), [task(0, 5)], lambda _: None)
    assert "0.tfrecord" in str(caught.value)


class _Returning:
    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = outcomes

    def map(self, _function: object, tasks: Iterable[Task]) -> Iterator[Outcome]:
        list(tasks)
        yield from self._outcomes


def test_tasks_without_results_are_named() -> None:
    engine = _Returning(Outcome(0, "a"), Outcome(0, "b"))
    assert run_on(engine, [task(0)], lambda _: None) == {0: "a"}
    with raises(rs.OptionError, option="results"):
        run_on(engine, [task(0), task(1)], lambda _: None)


@pytest.mark.parametrize(
    "text", ["", "abacus", "processes:-1", "processes:x", "processes:0", f"processes:{10**11}"]
)
def test_engines_that_do_not_exist(text: str) -> None:
    with raises(rs.OptionError, option="engine"):
        parse_engine(text)


@pytest.mark.parametrize("engine", ["processes:4", 4, Processes], ids=str)
def test_objects_that_are_no_engines(engine: Any) -> None:
    with raises(rs.OptionError, option="engine", value=engine):
        run_on(engine, [task(0)], lambda _: None)


@pytest.mark.parametrize(
    ("error", "is_another_version"),
    [
        (ImportError("no such name"), True),
        ("Traceback:\nModuleNotFoundError: No module named 'x'", True),
        ("pickle.UnpicklingError: invalid load key", True),
        (ArithmeticError("division by zero"), False),
        (MemoryError(), False),
    ],
    ids=str,
)
def test_advice_fits_the_error(error: object, is_another_version: bool) -> None:
    failure = failed_error(task(1), error)
    assert ("same version" in failure.remedy) == is_another_version


def test_names_of_engines() -> None:
    assert repr(parse_engine("processes:3")) == "Processes(3)"
    assert isinstance(rs.engines.Processes(), Processes)


@pytest.mark.parametrize(
    "error",
    [
        rs.OptionError(option="a", value=3, expected="b"),
        rs.OptionError("problem", option="x", excerpt=["a line"], remedy="do it"),
        rs.SourceError("problem", ["a", "b"], path="/x", line=3, lists_problems=True),
        rs.CorruptDataError(
            rs.Defect.PAYLOAD_CRC, "problem", found="a", path="/y", record=3, offset=4
        ),
        rs.FileAccessError(errno.EIO, "io", "/z", operation="write"),
        rs.RecordsmithError("problem", remedy="do it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel(error: rs.RecordsmithError) -> None:
    with pytest.raises(type(error)) as caught:
        run_on(RepeatingEngine(), [task(0, error)], lambda _: None)
    own, travelled = error.to_json(), caught.value.to_json()
    remedy = travelled.pop("remedy")
    assert remedy.startswith(own.pop("remedy", ""))
    assert "The task for 0.tfrecord failed." in remedy
    del own["message"], travelled["message"]
    assert own == travelled


def _slow(task: Task) -> Outcome:
    time.sleep(1)
    return Outcome(task.number)


@pytest.mark.parametrize("seed", range(4))
def test_a_job_that_fails_while_processes_start(seed: int) -> None:
    """They are killed, also one that starts at the same moment."""

    def tasks() -> Iterator[Task]:
        for number in range(3):
            yield task(number, "x" * (seed << 22))
        raise ValueError

    with raises(ValueError):
        list(Processes(4).map(_slow, tasks()))


def test_example_of_the_docstring(run_examples: Callable[..., None]) -> None:
    run_examples(Processes)
    assert rs.verify("out").is_good
