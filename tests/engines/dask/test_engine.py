"""Jobs on a Dask cluster make the same bytes as threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine
from recordsmith.support.tasks import run_task

from ...raising import raises
from ..engine_contract import EngineContract, tasks

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


class TestDask(EngineContract):
    @pytest.fixture
    def engine(self, client: Any) -> Any:
        return rs.engines.Dask(client)

    @pytest.fixture
    def address(self, client: Any) -> str:
        return f"dask:{client.scheduler.address}"

    @pytest.fixture
    def in_bucket(self, engine: Any, s3_workers: str) -> tuple[Any, str]:
        return engine, s3_workers

    def test_closing_cancels_tasks(self, engine: Any, client: Any) -> None:
        outcomes = engine.map(run_task, tasks(1000))
        next(outcomes)
        outcomes.close()
        assert not [future for future in client.futures.values() if future.status == "pending"]


def test_bad_engines() -> None:
    for make in (
        lambda: parse_engine("dask"),
        lambda: parse_engine("dask:127.0.0.1:9"),
        lambda: rs.engines.Dask(3),
        lambda: rs.engines.Dask("nowhere:1:2"),
    ):
        with raises(rs.OptionError):
            [*make().map(run_task, tasks(1))]


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_the_page(run_page: Callable[[str], None]) -> None:
    run_page("dask.md")


@pytest.mark.slow
@pytest.mark.usefixtures("client")
@pytest.mark.filterwarnings("ignore")  # of a second cluster in a process
def test_examples_of_docstrings(run_examples: Callable[..., None]) -> None:
    from recordsmith.dask import read, write

    run_examples(read, write, rs.engines.Dask, read=read, write=write)
    labels = rs.open("sizes").read_columns(["image/class/label"])["image/class/label"]
    assert sorted(set(labels.tolist())) == [1, 2]
