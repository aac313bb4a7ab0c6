"""A Dask cluster of two worker processes, and frames of all kinds of columns."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs


@pytest.fixture
def client(cluster: Any) -> Any:
    """A client of two workers that respond; one that an earlier test has killed is there again."""
    deadline = time.monotonic() + 120
    while True:
        cluster.cluster.scale(2)  # starts those that were given up
        found: dict[str, Any] = {}
        with suppress(TimeoutError):
            cluster.wait_for_workers(2, timeout=20)
            found = cluster.run(os.getpid, on_error="return")
        if [*map(type, found.values())] == [int, int]:
            return cluster
        assert time.monotonic() < deadline, found  # the scheduler has not noticed a killed worker
        time.sleep(0.1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A client of a cluster in processes of their own."""
    distributed = pytest.importorskip("distributed")
    import cloudpickle
    import dask

    for module in [name for name in sys.modules if name.startswith(__package__ or "-")]:
        cloudpickle.register_pickle_by_value(sys.modules[module])  # workers cannot import tests
    patience = {"distributed.deploy.lost-worker-timeout": "10 minutes"}  # 15 s, on a busy machine
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def kill_a_worker(client: Any, tmp_path: Path) -> Callable[[str], Callable[[], bool]]:
    """Let a method kill its worker when it is called first, as if the machine was lost.

    Takes the method as `module:Class.method`; returns a function that tells whether it was killed.
    """

    def arrange(method: str) -> Callable[[], bool]:
        marker = tmp_path / "killed"
        client.run(_kill_once, method, str(marker))
        return marker.exists

    return arrange


def _kill_once(method: str, marker: str) -> None:
    import importlib

    module, _, path = method.partition(":")
    owner, _, name = path.partition(".")
    holder = getattr(importlib.import_module(module), owner)
    original = getattr(holder, name)

    def killed(*arguments: Any, **options: Any) -> Any:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
        except OSError:  # it was killed, or the test has ended
            pass
        return original(*arguments, **options)

    setattr(holder, name, killed)


@pytest.fixture
def s3_workers(client: Any, s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty bucket, whose credentials this process and the workers have."""
    variables = s3.variables("bucket")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    client.run(_remember, variables)
    yield "s3://bucket"
    client.run(_forget, list(variables))


def _remember(variables: dict[str, str]) -> None:
    os.environ.update(variables)


def _forget(names: list[str]) -> None:
    for name in names:
        os.environ.pop(name, None)


def example(number: int) -> dict[str, Any]:
    """Features of all kinds and shapes, some missing or empty."""
    found: dict[str, Any] = {
        "id": number,
        "pair": [number * 0.5, 1.0],
        "name": f"näme {number}",
        "raw": [b"\xff\x00" * (number % 3)],
        "many": list(range(number % 4)),
    }
    if number % 5:
        found["label"] = number % 3
    if number % 7:
        found["words"] = ["a", "b"][: number % 3]
    return found


KINDS = {"many": "int64", "words": "bytes"}
COUNT = 600


def write_examples(folder: Any, name: str = "train", count: int = COUNT) -> None:
    """Write three shards of numbered examples."""
    for shard in range(3):
        with rs.ShardWriter(folder / f"{name}-{shard:05d}-of-00003.tfrecord") as writer:
            for number in range(count * shard // 3, count * (shard + 1) // 3):
                writer.write_example(example(number), KINDS)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards, without a manifest."""
    folder = tmp_path_factory.mktemp("examples")
    write_examples(folder)
    return folder
