"""What every engine of a cluster does. Functions within functions travel by value to workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.support.tasks import Engine, Outcome, Task

from ..raising import raises
from .jobs import SHARDS, checksums, exported, reshard, reshard_by_command


def tasks(count: int) -> list[Task]:
    return [Task(str, number, f"part-{number}", 1, number) for number in range(count)]


class Killing:
    """An engine that kills a worker once, while it writes a shard."""

    def __init__(self, engine: Engine, marker: Path) -> None:
        self._engine = engine
        self._marker = str(marker)

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        marker, kill = self._marker, self.kill

        def run(task: Task) -> Outcome:
            from recordsmith.dataset import ShardWriter

            seal = ShardWriter.seal

            def die(writer: Any) -> None:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    seal(writer)
                else:
                    kill()

            ShardWriter.seal = die  # type: ignore[method-assign]
            try:
                return function(task)
            finally:
                ShardWriter.seal = seal  # type: ignore[method-assign]

        return self._engine.map(run, tasks)

    @property
    def kill(self) -> Callable[[], None]:
        """What kills the worker that calls it."""

        def kill() -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        return kill


class EngineContract:
    """Subclasses have the fixtures `engine`, `address` (its text on the command line) and
    `in_bucket` (an engine whose workers have the credentials of a bucket, and the URL of that).
    """

    killing: type[Killing] = Killing
    takes_tasks_as_they_run = True

    def test_the_same_bytes(
        self, engine: Any, source: Path, wanted: dict[str, int], tmp_path: Path
    ) -> None:
        reshard(source, tmp_path / "out", engine=engine)
        assert checksums(tmp_path / "out") == wanted
        assert len(wanted) == SHARDS
        assert exported(tmp_path / "out", engine) == exported(tmp_path / "out")

    def test_the_same_bytes_after_a_worker_was_lost(
        self, engine: Any, source: Path, wanted: dict[str, int], tmp_path: Path
    ) -> None:
        marker = tmp_path / "killed"
        reshard(source, tmp_path / "out", engine=self.killing(engine, marker))
        assert marker.exists()
        assert checksums(tmp_path / "out") == wanted

    def test_the_same_bytes_in_a_bucket(
        self, in_bucket: tuple[Any, str], source: Path, wanted: dict[str, int]
    ) -> None:
        engine, url = in_bucket
        reshard(source, f"{url}/out", engine=engine)
        assert checksums(f"{url}/out") == wanted
        assert exported(f"{url}/out", engine) == exported(f"{url}/out")

    @pytest.mark.slow
    def test_the_command_line(
        self, address: str, source: Path, wanted: dict[str, int], tmp_path: Path
    ) -> None:
        reshard_by_command(source, tmp_path / "out", address)
        assert checksums(tmp_path / "out") == wanted

    def test_a_failed_task_ends_the_job_and_is_named(self, engine: Any) -> None:
        def fail(task: Task) -> Outcome:
            if task.number:
                raise ArithmeticError
            return Outcome(task.number)

        with raises(rs.RecordsmithError, match=r"part-[1-9]\d*, failed: .*ArithmeticError"):
            for outcome in engine.map(fail, tasks(100)):
                assert outcome.number == 0

    def test_a_task_that_kills_all_workers_is_named(self, engine: Any) -> None:
        kill = self.killing(engine, Path()).kill

        def die(_: Task) -> None:
            kill()

        with raises(rs.RecordsmithError, match="part-0"):
            next(iter(engine.map(die, tasks(1))))

    def test_tasks_are_taken_as_they_run(self, engine: Any) -> None:
        if not self.takes_tasks_as_they_run:
            pytest.skip("writes all tasks before the first one runs")
        taken = []

        def noted() -> Iterator[Task]:
            for task in tasks(1000):
                taken.append(task)
                yield task

        def double(task: Task) -> Outcome:
            return Outcome(task.number, 2 * task.number)

        outcomes = engine.map(double, noted())
        some = [next(outcomes) for _ in range(20)]
        assert len(taken) < 100
        outcomes.close()
        assert len({outcome.number for outcome in some}) == 20
        assert all(outcome.result == 2 * outcome.number for outcome in some)
