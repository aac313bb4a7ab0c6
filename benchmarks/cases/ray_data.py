"""Small records as a Ray Dataset: every column of every row, in blocks that a function receives.

Each peer has a cluster of this machine, which is started before the rounds and counted with all its
processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_STORE_BYTES = 1 << 30
_SETTING = "ray_python"


def _task(read: Callable[[Any], Any], records: int) -> Task:
    import pyarrow as pa
    import pyarrow.compute as pc
    import ray.data

    ray.init(
        "local",
        log_to_driver=False,
        logging_level="ERROR",
        include_dashboard=False,
        object_store_memory=_STORE_BYTES,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False

    def summary(block: Any) -> Any:
        sums = {name: [pc.sum(block[name]).as_py() or 0] for name in ("user", "label")}
        return pa.table({"rows": [len(block)], **sums})

    def run() -> list[int]:
        data = read(ray.data).map_batches(summary, batch_size=None, batch_format="pyarrow")
        rows = data.take_all()
        return [sum(row[name] for row in rows) for name in ("rows", "user", "label")]

    return Task(run, records=records, digest=lambda found: found)


def _recordsmith(name: str, times: int) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith.ray.reading import read

        path = str(inputs.path(name))
        return _task(lambda _: read(path), times * inputs.small_count)

    return prepare


def _tfrecords(inputs: Inputs) -> Task:
    import tensorflow as tf  # which Ray needs for it

    assert tf
    path = str(inputs.path("flat/train.tfrecord"))
    return _task(lambda data: data.read_tfrecords(path), inputs.small_count)


def _parquet(inputs: Inputs) -> Task:
    path = str(inputs.path("small-50-times.parquet"))
    return _task(lambda data: data.read_parquet(path), 50 * inputs.small_count)


CASES = (
    Case(
        "ray-tfrecords",
        "Small records as a Ray Dataset",
        "Records of about 170 bytes, without the ragged feature, which Ray cannot read. CPU time "
        "is that of the whole cluster.",
        "record",
        (
            Peer(OURS, _recordsmith("flat", 1), python_setting=_SETTING),
            Peer("`read_tfrecords`", _tfrecords, at_most=1 / 10, python_setting=_SETTING),
        ),
        inputs=("flat",),
    ),
    Case(
        "ray-parquet",
        "Many small records as a Ray Dataset",
        "Records of about 200 bytes with a ragged feature, and the same rows as Parquet. CPU time "
        "is that of the whole cluster.",
        "record",
        (
            Peer(OURS, _recordsmith("small-packed-50-times", 50), python_setting=_SETTING),
            Peer("`read_parquet`", _parquet, at_most=1.5, python_setting=_SETTING),
        ),
        inputs=("small-packed-50-times", "small-50-times.parquet"),
    ),
)
