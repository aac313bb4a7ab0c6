"""A Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """The cluster, to which tests may add nodes."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("pandas")
    from ray.cluster_utils import Cluster

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
