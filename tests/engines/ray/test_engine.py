"""Jobs on a Ray cluster make the same bytes as threads."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine

from ...raising import raises
from ..jobs import SHARDS, checksums, exported, pack_by_command, pack_table

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")

from recordsmith.engines.ray import Ray  # noqa: E402 - needs ray

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]


def test_the_same_bytes(source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    engine = rs.engines.Ray()
    pack_table(source, tmp_path / "out", engine=engine)
    assert checksums(tmp_path / "out") == wanted
    assert len(wanted) == SHARDS
    assert exported(tmp_path / "out", engine) == exported(tmp_path / "out")


class Killing(Ray):
    """Kills a worker once, while it writes a shard."""

    def __init__(self, marker: Path) -> None:
        super().__init__()
        self._marker = str(marker)

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        marker = self._marker

        def run(task: Any) -> Any:
            import recordsmith.dataset.writer as module

            original = module.ShardWriter.seal

            def seal(writer: Any) -> None:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    original(writer)
                else:
                    os.kill(os.getpid(), signal.SIGKILL)

            module.ShardWriter.seal = seal  # type: ignore[method-assign]
            try:
                return function(task)
            finally:
                module.ShardWriter.seal = original  # type: ignore[method-assign]

        return super().map(run, tasks)


def test_the_same_bytes_after_a_worker_was_lost(
    source: Path, wanted: dict[str, int], tmp_path: Path
) -> None:
    pack_table(source, tmp_path / "out", engine=Killing(tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert checksums(tmp_path / "out") == wanted


def test_the_same_bytes_in_s3(
    s3: Any, source: Path, wanted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = s3.variables("bucket")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    engine = rs.engines.Ray(runtime_env={"env_vars": variables})
    pack_table(source, "s3://bucket/out", engine=engine)
    assert checksums("s3://bucket/out") == wanted
    assert exported("s3://bucket/out", engine) == exported("s3://bucket/out")


def test_the_command_line(source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    pack_by_command(source, tmp_path / "out", "ray")
    assert checksums(tmp_path / "out") == wanted


def test_a_failed_task_ends_the_job() -> None:
    def fail(document: Any) -> Any:
        if document["number"]:
            raise ArithmeticError
        return document

    tasks = ({"number": number, "name": f"part-{number}"} for number in range(10_000))
    with raises(rs.RecordsmithError, match=r"part-[1-9]\d*, failed: ArithmeticError"):
        for document in rs.engines.Ray().map(fail, tasks):
            assert document["number"] == 0
    assert next(tasks)["number"] < 100


def test_a_task_that_kills_all_workers_is_named() -> None:
    def kill(document: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)
        return document

    found = rs.engines.Ray(max_retries=1).map(kill, [{"number": 7, "name": "part-7"}])
    with raises(rs.RecordsmithError, match="part-7"):
        next(found)


def test_tasks_are_taken_as_they_run() -> None:
    taken = []

    def tasks() -> Any:
        for number in range(1000):
            taken.append(number)
            yield {"number": number}

    def double(document: Any) -> Any:
        return {"number": 2 * document["number"]}

    found: Any = rs.engines.Ray().map(double, tasks())
    results = [next(found)["number"] for _ in range(20)]
    assert len(taken) < 50
    found.close()
    assert {*results} <= {2 * number for number in taken}
    assert len({*results}) == 20


def test_options() -> None:
    assert repr(parse_engine("ray:auto")) == "Ray('auto')"
    assert repr(parse_engine("ray:ray://head:10001")) == "Ray('ray://head:10001')"
    with raises(rs.OptionError, option="address", value=3):
        Ray(3)  # type: ignore[arg-type]
