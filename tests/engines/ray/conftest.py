"""A Ray cluster of two nodes on this machine, and tables of all kinds of columns."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

COUNT = 600


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """The cluster, to which tests may add nodes."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("pandas")
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # which would be sent to its makers
    node = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    try:
        cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="session")
def cluster(nodes: Any) -> Any:
    """Two nodes with a worker each; this process is connected to the first."""
    return sys.modules["ray"]


@pytest.fixture
def killed_once(tmp_path: Path) -> tuple[Callable[[Any], Any], Callable[[], bool]]:
    """A function of a batch that kills its worker once, and whether it was killed."""
    marker = tmp_path / "killed"
    name = str(marker)

    def pass_on(batch: Any) -> Any:
        if batch.num_rows and batch["id"][0].as_py() >= COUNT // 2:
            try:
                os.close(os.open(name, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return batch
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    return pass_on, marker.exists


def row(number: int) -> dict[str, Any]:
    """Values of all kinds and shapes, some missing or empty."""
    return {
        "id": number,
        "pair": [number * 0.5, 1.0],
        "name": None if number % 5 == 0 else f"näme {number}",
        "raw": b"\xff\x00" * (number % 3),
        "many": list(range(number % 4)),
        "words": None if number % 7 == 0 else ["a", "b"][: number % 3],
        "flag": number % 2 == 0,
    }


def schema() -> Any:
    """The Arrow types of the columns."""
    import pyarrow as pa

    return pa.schema({
        "id": pa.int64(),
        "pair": pa.list_(pa.float32(), 2),
        "name": pa.string(),
        "raw": pa.binary(),
        "many": pa.list_(pa.int32()),
        "words": pa.list_(pa.string()),
        "flag": pa.bool_(),
    })  # fmt: skip


def table(start: int = 0, stop: int = COUNT) -> Any:
    """A pyarrow.Table of some rows."""
    import pyarrow as pa

    return pa.Table.from_pylist([row(number) for number in range(start, stop)], schema=schema())
