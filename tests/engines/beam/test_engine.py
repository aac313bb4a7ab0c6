"""Jobs as pipelines in several processes make the same bytes as threads."""

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

pytest.importorskip("apache_beam")
pytest.importorskip("pyarrow")

OPTIONS = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
IN_PROCESS = ["--direct_running_mode=in_memory"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    """Where tasks and results lie; empty in the end."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    yield str(folder)
    assert not [*folder.iterdir()]


def test_the_same_bytes(source: Path, wanted: dict[str, int], tmp_path: Path, folder: str) -> None:
    engine = rs.engines.Beam(None, OPTIONS, folder=folder)
    pack_table(source, tmp_path / "out", engine=engine)
    assert checksums(tmp_path / "out") == wanted
    assert len(wanted) == SHARDS
    assert exported(tmp_path / "out", engine) == exported(tmp_path / "out")


def test_the_same_bytes_after_a_worker_was_lost(
    source: Path, wanted: dict[str, int], tmp_path: Path, folder: str
) -> None:
    marker = tmp_path / "marker"
    killed_once = _killed_once(str(marker))

    class Killing(rs.engines.Beam):  # type: ignore[misc]
        def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
            return super().map(killed_once(function), tasks)

    pack_table(source, tmp_path / "out", engine=Killing(None, OPTIONS, folder=folder))
    assert marker.exists()
    assert checksums(tmp_path / "out") == wanted


def test_the_same_bytes_in_s3(
    s3: Any, source: Path, wanted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.variables("bucket").items():
        monkeypatch.setenv(name, value)
    engine = rs.engines.Beam(None, [*OPTIONS, "--temp_location=s3://bucket/tmp"])
    pack_table(source, "s3://bucket/out", engine=engine)
    assert checksums("s3://bucket/out") == wanted
    assert not s3.objects(prefix="tmp/")


def test_the_command_line(source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    pack_by_command(source, tmp_path / "out", "beam:")
    assert checksums(tmp_path / "out") == wanted


def test_a_failed_task_ends_the_job(tmp_path: Path, folder: str) -> None:
    engine = rs.engines.Beam(None, IN_PROCESS, folder=folder)
    tasks = ({"number": number, "name": f"part-{number}"} for number in range(100))
    found = engine.map(_failing(), tasks)
    with raises(rs.RecordsmithError, match="part-7, failed: ArithmeticError"):
        for document in found:
            assert document["number"] != 7


def test_a_task_that_kills_all_workers_is_named(folder: str) -> None:
    engine = rs.engines.Beam(None, OPTIONS, folder=folder)
    tasks = [{"number": 7, "name": "train-00007-of-00010"}]
    with raises(rs.RecordsmithError, match="train-00007-of-00010"):
        next(engine.map(_killed_always(), tasks))


def test_closing_cancels_tasks_that_have_not_begun(tmp_path: Path, folder: str) -> None:
    begun = tmp_path / "begun"
    engine = rs.engines.Beam(None, IN_PROCESS, folder=folder)
    found = engine.map(_slow(str(begun)), [{"number": number} for number in range(500)])
    next(found)
    found.close()
    assert 1 <= begun.stat().st_size < 400


def test_a_runner_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no job server")

    monkeypatch.setattr("recordsmith.engines.beam._start_pipeline", fail)
    with raises(rs.OptionError, option="engine", value="FlinkRunner", match="no job server"):
        next(rs.engines.Beam("FlinkRunner").map(dict, [{}]))


def test_text_of_options() -> None:
    engine: Any = parse_engine("beam:FlinkRunner --flink_master=localhost:8081 --name='a b'")
    assert repr(engine) == "Beam('FlinkRunner')"
    assert engine._options == ["--flink_master=localhost:8081", "--name=a b"]
    local: Any = parse_engine("beam:")
    assert repr(local) == "Beam('FnApiRunner')"
    assert "--direct_running_mode=multi_processing" in local._options
    with raises(rs.OptionError, option="engine"):
        parse_engine('beam:"')
    with raises(rs.OptionError, option="engine", value="NoRunner"):
        [*rs.engines.Beam("NoRunner").map(dict, [{}])]
    with raises(rs.OptionError, option="options"):
        rs.engines.Beam(None, "--a")
    with raises(rs.OptionError, option="options", match="direct_num_workers"):
        rs.engines.Beam(None, ["--direct_num_workers=x"])


# functions within functions are pickled by value, as workers cannot import this module


def _killed_once(marker: str) -> Any:
    def wrap(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(task: Any) -> Any:
            from recordsmith.dataset import ShardWriter

            seal = ShardWriter.seal

            def die(writer: Any) -> None:
                try:
                    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    seal(writer)
                else:
                    os.kill(os.getpid(), signal.SIGKILL)

            if not os.path.exists(marker):
                ShardWriter.seal = die  # type: ignore[method-assign]
            return function(task)

        return run

    return wrap


def _killed_always() -> Any:
    def run(_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    return run


def _slow(path: str) -> Any:
    def run(task: Any) -> Any:
        import time

        with open(path, "a", encoding="utf-8") as file:
            file.write(".")
        time.sleep(0.02)
        return task

    return run


def _failing() -> Any:
    def run(task: Any) -> Any:
        if task["number"] == 7:
            raise ArithmeticError
        return task

    return run
