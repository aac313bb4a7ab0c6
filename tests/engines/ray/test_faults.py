"""Faults of a Ray cluster: a lost node, workers of another version and workers without space."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..jobs import checksums, reshard

ray = pytest.importorskip("ray")

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

from recordsmith.engines.ray import Ray  # noqa: E402 - needs ray

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # of Ray itself
]

Run = Callable[[Any], Any]


class Wrapping(Ray):
    """Runs each task in a function: `wrap(function)(task)`."""

    def __init__(self, wrap: Callable[[Run], Run], **options: Any) -> None:
        super().__init__(**options)
        self._wrap = wrap

    def map(self, function: Run, tasks: Iterable[Any]) -> Iterator[Any]:
        return super().map(self._wrap(function), tasks)


@pytest.mark.slow
def test_a_node_is_lost(nodes: Any, source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    """While it writes a shard."""
    node = nodes.add_node(num_cpus=1, object_store_memory=200 << 20, include_dashboard=False)
    node_id, marker = node.node_id, str(tmp_path / "begun")

    def stop_there(function: Run) -> Run:
        def run(task: Any) -> Any:
            if ray.get_runtime_context().get_node_id() != node_id:
                return function(task)
            from recordsmith.dataset import ShardWriter

            def seal(_: Any) -> None:
                Path(marker).touch()
                time.sleep(600)

            ShardWriter.seal = seal  # type: ignore[method-assign]
            return function(task)

        return run

    def remove() -> None:
        deadline = time.monotonic() + 300
        while not Path(marker).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        nodes.remove_node(node, allow_graceful=False)

    removing = threading.Thread(target=remove)
    removing.start()
    try:
        # all tasks run there, and elsewhere once it is gone
        there_if_alive = NodeAffinitySchedulingStrategy(node_id, soft=True)
        engine = Wrapping(stop_there, scheduling_strategy=there_if_alive)
        reshard(source, tmp_path / "out", engine=engine)
    finally:
        removing.join()
    assert Path(marker).exists()
    assert checksums(tmp_path / "out") == wanted
