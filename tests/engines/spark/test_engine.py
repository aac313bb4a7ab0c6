"""Jobs that run on Spark make the same bytes as threads."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine
from recordsmith.support.tasks import run_task

from ...raising import raises
from ..engine_contract import EngineContract, Killing, tasks
from ..workers import other_version

pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")


class _KillingExecutors(Killing):
    @property
    def kill(self) -> Callable[[], None]:
        def kill() -> None:
            process = os.getpid()
            for _ in range(2):
                process = int(Path(f"/proc/{process}/stat").read_text().split()[3])
            os.kill(process, 9)
            time.sleep(60)

        return kill


class TestSpark(EngineContract):
    killing = _KillingExecutors

    @pytest.fixture
    def engine(self, spark: Any) -> Any:
        return rs.engines.Spark(spark)

    @pytest.fixture
    def address(self) -> str:
        return "spark:local[2]"

    @pytest.fixture
    def in_bucket(
        self, engine: Any, servers: Any, monkeypatch: pytest.MonkeyPatch
    ) -> tuple[Any, str]:
        pytest.importorskip("moto")
        url, options = servers["s3"].new_bucket()
        monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
        return engine, url

    def test_closing_cancels_jobs(self, engine: Any, spark: Any) -> None:
        outcomes = engine.map(run_task, tasks(1000))
        next(outcomes)
        outcomes.close()
        tracker = spark.sparkContext.statusTracker()
        deadline = time.monotonic() + 20
        while tracker.getActiveJobsIds() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not tracker.getActiveJobsIds()

    def test_a_task_that_kills_all_workers_is_named(self, engine: Any) -> None:
        """And what Spark reports is shown."""
        kill = self.killing(engine, Path()).kill

        def die(_: Any) -> None:
            kill()

        with raises(rs.RecordsmithError, match="part-0") as caught:
            next(engine.map(die, tasks(1)))
        assert re.search(r"Spark reports: .*[Ee]xecutor", caught.value.remedy)


@pytest.mark.parametrize(
    "reason",
    ["Cannot run program", pytest.param("ModuleNotFoundError", marks=pytest.mark.slow)],
)
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
    with raises(rs.RecordsmithError, match=f"part-0, failed: .*{reason}") as caught:
        next(rs.engines.Spark(spark).map(run_task, tasks(1)))
    assert f"{program}': set PYSPARK_PYTHON" in caught.value.remedy


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
    with raises(rs.OptionError, option="session"):
        rs.engines.Spark("local[2]")
