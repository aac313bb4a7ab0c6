"""Jobs that run on Spark."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine
from recordsmith.tasks import run_document

from ...raising import raises
from ..jobs import SHARDS, checksums, exported, pack_by_command, pack_table, write_table
from ..workers import other_version

pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")


def _double(task: Any) -> Any:
    return {"task": task["number"], "result": 2 * task["number"]}


def _kill_once(task: Any) -> Any:
    if task["number"] == 3:
        try:
            os.close(os.open(task["flag"], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            process = os.getpid()
            for _ in range(2):
                process = int(Path(f"/proc/{process}/stat").read_text().split()[3])
            os.kill(process, 9)
    return _double(task)


def _die(task: Any) -> Any:
    os.kill(os.getpid(), 9)


@pytest.fixture
def by_value() -> Iterator[None]:
    """Workers cannot import the tests, so functions travel by value."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.usefixtures("by_value")
def test_each_task_has_a_result(spark: Any, tmp_path: Path) -> None:
    engine = rs.engines.Spark(spark)
    flag = tmp_path / "killed"
    tasks = [{"number": number, "flag": str(flag)} for number in range(20)]
    for function in (_double, _kill_once):
        found = {result["task"]: result["result"] for result in engine.map(function, tasks)}
        assert found == {number: 2 * number for number in range(20)}
    assert flag.exists()
    assert [*engine.map(_double, [])] == []


@pytest.mark.usefixtures("by_value")
def test_closing_cancels_tasks(spark: Any) -> None:
    begun = []

    def tasks() -> Iterator[Any]:
        for number in range(1000):
            begun.append(number)
            yield {"number": number}

    results = rs.engines.Spark(spark).map(_double, tasks())
    next(results)
    results.close()
    assert len(begun) < 100
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 20
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()


def _then_kill(flag: str, function: Any, task: Any) -> Any:
    """Run a task, and kill the executor of one of them before it returns the result."""
    result = function(task)
    _kill_once({**task, "flag": flag})
    return result


class _Killing(rs.engines.Spark):
    def __init__(self, session: Any, flag: Path) -> None:
        super().__init__(session)
        self._flag = str(flag)

    def map(self, function: Any, tasks: Any) -> Any:
        return super().map(partial(_then_kill, self._flag, function), tasks)


@pytest.mark.usefixtures("by_value")
def test_packed_datasets_have_the_bytes_of_threads(
    spark: Any, source: Path, wanted: dict[str, int], tmp_path: Path
) -> None:
    assert len(wanted) == SHARDS
    engine = rs.engines.Spark(spark)
    pack_table(source, tmp_path / "spark", engine=engine)
    assert checksums(tmp_path / "spark") == wanted
    assert exported(tmp_path / "spark", engine) == exported(tmp_path / "spark")
    flag = tmp_path / "killed"
    pack_table(source, tmp_path / "killed-once", engine=_Killing(spark, flag))
    assert flag.exists()
    assert checksums(tmp_path / "killed-once") == wanted


def test_a_dataset_is_packed_in_a_bucket(
    spark: Any, servers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto")
    url, options = servers["s3"].new_bucket()
    table = write_table(tmp_path / "rows.jsonl")
    pack_table(table, tmp_path / "threads")
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    engine = rs.engines.Spark(spark)
    pack_table(table, f"{url}/out", engine=engine)
    assert checksums(f"{url}/out") == checksums(tmp_path / "threads")
    assert exported(f"{url}/out", engine) == exported(tmp_path / "threads")


def _divide(task: Any) -> Any:
    return task | {"result": 1 / task["number"]}


def test_the_command_line(source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    pack_by_command(source, tmp_path / "out", "spark:local[2]")
    assert checksums(tmp_path / "out") == wanted


@pytest.mark.usefixtures("by_value")
def test_a_failed_task_is_named(spark: Any) -> None:
    found = rs.engines.Spark(spark).map(_divide, [{"number": 0, "name": "part-0"}])
    with raises(rs.RecordsmithError, match="part-0, failed: ZeroDivisionError"):
        next(found)


@pytest.mark.parametrize("reason", ["Cannot run program", "ModuleNotFoundError"])
def test_workers_that_lack_the_package(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    program = tmp_path / "python"
    if reason == "ModuleNotFoundError":
        other_version("without engines", tmp_path / "site")
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"}:$PYTHONPATH exec {sys.executable} "$@"\n'
        )
        program.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(program))
    tasks = [{"number": 7, "name": "part-7"}]
    with raises(rs.RecordsmithError, match=f"part-7, failed: .*{reason}") as caught:
        next(rs.engines.Spark(spark).map(run_document, tasks))
    assert f"{program}': set PYSPARK_PYTHON" in caught.value.remedy


@pytest.mark.usefixtures("by_value")
def test_a_task_that_kills_its_executors_is_named(spark: Any) -> None:
    found = rs.engines.Spark(spark).map(_die, [{"number": 7, "name": "train-00007-of-00010"}])
    with raises(rs.RecordsmithError, match="train-00007-of-00010") as caught:
        next(found)
    assert re.search(r"Spark reports: .*[Ee]xecutor", caught.value.remedy)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("before", "after"), [(None, sys.executable), ("python3", "python3")])
def test_local_masters_run_this_python(
    before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "x")  # so that it is restored
    if before is None:
        monkeypatch.delenv("PYSPARK_PYTHON")
    else:
        monkeypatch.setenv("PYSPARK_PYTHON", before)
    parse_engine("spark:local[2]")
    assert os.environ["PYSPARK_PYTHON"] == after


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.engines.Spark("local[2]")
    assert caught.value.option == "session"
