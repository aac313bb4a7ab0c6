"""Embeddings of 1,536 floats to shuffled batches of 256, next to Parquet and to a plain array.

Parquet is written for this: fixed-size lists, neither compressed nor with a dictionary, as random
numbers only become larger and slower by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import EMBEDDING_SIZE, Inputs

BATCH_SIZE = 256


def _task(inputs: Inputs, epoch: Callable[[], Iterable[Any]]) -> Task:
    """`epoch`: yields batches, float32, (batch, size)."""

    def run() -> list[float]:
        return [float(batch[:, 0].sum()) for batch in epoch()]

    return Task(run, inputs.embedding_count, digest=lambda sums: round(sum(sums), 1))


def _recordsmith(inputs: Inputs) -> Task:
    import recordsmith as rs

    features: Any = {"embedding": rs.Tensor("embedding", (EMBEDDING_SIZE,))}
    loader = rs.Loader(
        rs.open(inputs.path("embeddings.tfrecord")), features, batch_size=BATCH_SIZE, shuffle=True
    )
    return _task(inputs, lambda: (batch["embedding"] for batch in loader))


def _array(column: Any) -> Any:
    return column.combine_chunks().flatten().to_numpy().reshape(-1, EMBEDDING_SIZE)


def _shuffled(array: Any, rng: Any) -> Iterable[Any]:
    order = rng.permutation(len(array))
    for start in range(0, len(array), BATCH_SIZE):
        yield array[order[start : start + BATCH_SIZE]]


def _row_groups(inputs: Inputs) -> Task:
    """Row groups in a random order, each shuffled: less random than recordsmith's order."""
    import numpy as np
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)

    def epoch() -> Iterable[Any]:
        file = pq.ParquetFile(inputs.path("embeddings.parquet"))
        for group in rng.permutation(file.num_row_groups).tolist():
            table = file.read_row_group(group, columns=["embedding"], use_threads=False)
            yield from _shuffled(_array(table["embedding"]), rng)

    return _task(inputs, epoch)


def _whole_table(inputs: Inputs) -> Task:
    import numpy as np
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)

    def epoch() -> Iterable[Any]:
        table = pq.read_table(inputs.path("embeddings.parquet"), use_threads=False)
        return _shuffled(_array(table["embedding"]), rng)

    return _task(inputs, epoch)


def _plain(inputs: Inputs) -> Task:
    """No format and no checksums: the numbers of all rows, end to end."""
    import numpy as np

    rng = np.random.default_rng(0)

    def epoch() -> Iterable[Any]:
        numbers = np.frombuffer(inputs.path("embeddings.raw").read_bytes(), np.float32)
        return _shuffled(numbers.reshape(-1, EMBEDDING_SIZE), rng)

    return _task(inputs, epoch)


def _tensorflow(inputs: Inputs) -> Task:
    import tensorflow as tf

    path = str(inputs.path("embeddings.tfrecord"))
    features = {"embedding": tf.io.FixedLenFeature((EMBEDDING_SIZE,), tf.float32)}
    batches = tf.data.TFRecordDataset(path).shuffle(1024).batch(BATCH_SIZE)
    batches = batches.map(lambda payloads: tf.io.parse_example(payloads, features)["embedding"])
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 1
    batches = batches.with_options(options)
    return _task(inputs, batches.as_numpy_iterator)


CASE = Case(
    name="embeddings",
    title="Embeddings of 1,536 floats to shuffled batches of 256",
    what="float32, 6 kB a record; the peers use one thread.",
    unit="record",
    inputs=("embeddings.tfrecord", "embeddings.parquet", "embeddings.raw"),
    peers=(
        Peer(OURS, _recordsmith),
        Peer("pyarrow, Parquet: row groups in random order", _row_groups, at_most=1, strictly=True),
        Peer("pyarrow, Parquet: the table in memory", _whole_table, at_most=1, strictly=True),
        Peer("np.frombuffer, the file in memory", _plain),
        Peer("tf.data, a buffer of 1,024", _tensorflow, at_most=1 / 1.5),
    ),
)
