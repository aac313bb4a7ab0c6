"""Faults of a Ray cluster: a lost node, workers of another version and workers without space."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import Processes

from ...raising import raises
from ..jobs import checksums, pack_table
from ..workers import OTHER_VERSIONS, other_version

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


def test_a_node_is_lost(nodes: Any, source: Path, wanted: dict[str, int], tmp_path: Path) -> None:
    """While it writes a shard."""
    node = nodes.add_node(num_cpus=1, object_store_memory=200 << 20, include_dashboard=False)
    node_id, marker = node.node_id, str(tmp_path / "begun")

    def stop_there(function: Run) -> Run:
        def run(task: Any) -> Any:
            if ray.get_runtime_context().get_node_id() != node_id:
                return function(task)
            from recordsmith.dataset.writer import ShardWriter

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
        pack_table(source, tmp_path / "out", engine=engine)
    finally:
        removing.join()
    assert Path(marker).exists()
    assert checksums(tmp_path / "out") == wanted


def _assert_fails(engine: Ray, source: Path, tmp_path: Path, kind: Any, **fields: Any) -> None:
    """The error has these fields, nothing is published, and the next run completes."""
    out = tmp_path / "out"
    with raises(kind, **fields) as caught:
        pack_table(source, out, engine=engine)
    assert "-of-00006.tfrecord" in str(caught.value) or fields.get("option") == "results"
    with (
        raises(rs.CorruptDataError, defect=rs.Defect.UNFINISHED_DATASET)
        if any((out / ".recordsmith").glob("*.done"))
        else pytest.raises(rs.RecordsmithError)
    ):
        rs.open(out)
    assert not [path for path in out.glob("*") if not path.name.startswith(".")]
    pack_table(source, out, engine=Processes(2))
    pack_table(source, tmp_path / "threads")
    assert checksums(out) == checksums(tmp_path / "threads")


@pytest.mark.parametrize("name", OTHER_VERSIONS)
def test_workers_of_another_version(name: str, source: Path, tmp_path: Path) -> None:
    fields = other_version(name, tmp_path / "shadow")
    variables = {"PYTHONPATH": str(tmp_path / "shadow")}
    engine = Ray(runtime_env={"env_vars": variables})
    _assert_fails(engine, source, tmp_path, rs.RecordsmithError, **fields)


def test_workers_without_space(source: Path, tmp_path: Path) -> None:
    """The operating system limits the size of their files."""

    def limit(function: Run) -> Run:
        def run(task: Any) -> Any:
            import resource

            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
            try:
                return function(task)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

        return run

    _assert_fails(Wrapping(limit), source, tmp_path, rs.FileAccessError, operation="write")
