"""A Dask cluster of two worker processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest


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
