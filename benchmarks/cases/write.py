"""Rows to a file: from columns, and from Python dicts one by one.

All writers sync their file to the disk at the end, as recordsmith does by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from cases.columns import arrow_table
from inputs import Inputs


def sync(path: Path) -> None:
    """Have the system write a file to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remover(path: Path) -> Callable[[], None]:
    return lambda: path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    """The same rows make files of the same size with every encoder."""
    return path.stat().st_size


def _recordsmith_columns(inputs: Inputs) -> Task:
    from recordsmith import RaggedArray, ShardWriter

    made = inputs.columns()
    path = inputs.out("recordsmith.tfrecord")
    columns = {
        "user": made.user,
        "label": made.label,
        "time": made.time,
        "dense": made.dense,
        "items": RaggedArray(made.items, made.item_splits),
        "country": made.country,
    }

    def run() -> Path:
        with ShardWriter(path) as writer:
            writer.write_columns(columns)
        return path

    return Task(run, records=inputs.small_count, before=_remover(path), digest=_size)


def _tensorflow_columns(inputs: Inputs) -> Task:
    return _tensorflow(inputs, "tensorflow-columns.tfrecord", inputs.small_count, as_dicts=False)


def _tensorflow_dicts(inputs: Inputs) -> Task:
    return _tensorflow(inputs, "tensorflow-dicts.tfrecord", inputs.dict_count, as_dicts=True)


def _tensorflow(inputs: Inputs, name: str, count: int, as_dicts: bool) -> Task:
    import tensorflow as tf

    columns = inputs.columns(count)
    rows = list(columns.rows()) if as_dicts else None
    path = inputs.out(name)
    feature, int64s = tf.train.Feature, tf.train.Int64List
    floats, strings = tf.train.FloatList, tf.train.BytesList

    def encode(row: dict[str, Any]) -> bytes:
        features = tf.train.Features(
            feature={
                "user": feature(int64_list=int64s(value=[row["user"]])),
                "label": feature(int64_list=int64s(value=[row["label"]])),
                "time": feature(int64_list=int64s(value=[row["time"]])),
                "dense": feature(float_list=floats(value=row["dense"])),
                "items": feature(int64_list=int64s(value=row["items"])),
                "country": feature(bytes_list=strings(value=[row["country"]])),
            }
        )
        return tf.train.Example(features=features).SerializeToString()  # type: ignore[no-any-return]

    def run() -> Path:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in columns.rows() if rows is None else rows:
                writer.write(encode(row))
        sync(path)
        return path

    return Task(run, records=count, before=_remover(path), digest=_size)


def _parquet(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    columns = inputs.columns()
    path = inputs.out("small.parquet")

    def run() -> None:
        pq.write_table(arrow_table(columns), path)
        sync(path)

    return Task(run, records=inputs.small_count, before=_remover(path))


def _recordsmith_dicts(inputs: Inputs) -> Task:
    from recordsmith import ShardWriter

    rows = list(inputs.columns(inputs.dict_count).rows())
    path = inputs.out("recordsmith-dicts.tfrecord")

    def run() -> Path:
        with ShardWriter(path) as writer:
            for row in rows:
                writer.write_example(row)
        return path

    return Task(run, records=inputs.dict_count, before=_remover(path), digest=_size)


CASES = (
    Case(
        name="write-columns",
        title="Write columns",
        what=(
            "The same rows from NumPy arrays (and a list of bytes) to a file that is synced at "
            "the end. TensorFlow has no way but row by row; Parquet is written with pyarrow's "
            "default settings, compressed with Snappy."
        ),
        unit="row",
        peers=(
            Peer(OURS, _recordsmith_columns),
            Peer("tf.train.Example, TFRecordWriter", _tensorflow_columns, at_most=1 / 80),
            Peer("pyarrow, Parquet", _parquet, at_most=1.0, strictly=True),
        ),
    ),
    Case(
        name="write-dicts",
        title="Write dicts",
        what=(
            "One dict after the other, of Python ints, lists of ints and floats, and bytes, to a "
            "file that is synced at the end."
        ),
        unit="row",
        peers=(
            Peer(OURS, _recordsmith_dicts),
            Peer("tf.train.Example, TFRecordWriter", _tensorflow_dicts, at_most=1 / 5),
        ),
    ),
)
