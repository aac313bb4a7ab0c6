"""Jobs on a Dask cluster make the same bytes as threads."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine

from ...raising import raises
from ..jobs import SHARDS, checksums, exported, pack_by_command, pack_table

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


def test_the_same_bytes(client: Any, source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    engine = rs.engines.Dask(client)
    pack_table(source, tmp_path / "out", engine=engine)
    assert checksums(tmp_path / "out") == wanted
    assert len(wanted) == SHARDS
    assert exported(tmp_path / "out", engine) == exported(tmp_path / "out")


def test_the_same_bytes_after_a_worker_was_lost(
    client: Any,
    source: Path,
    wanted: dict[str, int],
    tmp_path: Path,
    kill_a_worker: Callable[[str], Callable[[], bool]],
) -> None:
    was_killed = kill_a_worker("recordsmith.dataset:ShardWriter.seal")
    pack_table(source, tmp_path / "out", engine=rs.engines.Dask(client))
    assert was_killed()
    assert checksums(tmp_path / "out") == wanted


def test_the_same_bytes_in_s3(
    client: Any, s3_workers: str, source: Path, wanted: dict[str, int]
) -> None:
    pack_table(source, f"{s3_workers}/out", engine=rs.engines.Dask(client))
    assert checksums(f"{s3_workers}/out") == wanted


def test_the_command_line(
    client: Any, source: Path, wanted: dict[str, int], tmp_path: Path
) -> None:
    pack_by_command(source, tmp_path / "out", f"dask:{client.scheduler.address}")
    assert checksums(tmp_path / "out") == wanted


def test_a_failed_task_is_named_and_the_others_are_cancelled(client: Any, tmp_path: Path) -> None:
    engine = rs.engines.Dask(client)
    tasks = ({"number": number, "name": f"part-{number}"} for number in range(10_000))
    found = engine.map(_fail, tasks)
    with raises(rs.RecordsmithError, match=r"part-[1-9]\d*, failed: ArithmeticError"):
        for document in found:
            assert document["number"] == 0
    assert not _pending(client)


def test_a_task_that_kills_all_workers_is_named(client: Any) -> None:
    found = rs.engines.Dask(client).map(_die, [{"number": 7, "name": "train-00007-of-00010"}])
    with raises(rs.RecordsmithError, match="train-00007-of-00010"):
        next(found)


def test_tasks_are_taken_as_they_run(client: Any) -> None:
    taken = []

    def tasks() -> Any:
        for number in range(1000):
            taken.append(number)
            yield {"number": number}

    found = rs.engines.Dask(client).map(_same, tasks())
    results = [next(found)["number"] for _ in range(20)]
    assert len(taken) < 50
    found.close()
    assert len({*results}) == 20
    assert not _pending(client)


def _pending(client: Any) -> list[str]:
    """Tasks that the cluster would still run."""
    return [key for key, future in client.futures.items() if future.status == "pending"]


def _die(_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _same(document: Any) -> Any:
    return document


def _fail(document: Any) -> Any:
    if document["number"]:
        raise ArithmeticError
    return document


def test_bad_engines() -> None:
    for make in (
        lambda: parse_engine("dask"),
        lambda: parse_engine("dask:127.0.0.1:9"),
        lambda: rs.engines.Dask(3),
        lambda: [*rs.engines.Dask("nowhere:1:2").map(_same, [{}])],
    ):
        with raises(rs.OptionError):
            engine = make()
            [*engine.map(_same, [{}])]
