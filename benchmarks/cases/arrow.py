"""Small records as Arrow batches, into Parquet, and grouped by SQL."""

from __future__ import annotations

from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_ROWS = 1024
_MANY, _MANY_IN_PARQUET = "small-50-times.tfrecord", "small-50-times.parquet"


def _record_batches(inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    count = len(dataset.schema.features)

    def run() -> int:
        return sum(len(batch) for batch in dataset.to_arrow(batch_size=_ROWS))

    assert count
    return Task(run, records=inputs.small_count, digest=int)


def _batches(inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    assert dataset.schema.features

    def run() -> int:
        return sum(len(batch["user"]) for batch in dataset.batches(_ROWS))

    return Task(run, records=inputs.small_count, digest=int)


def _parquet_batches(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    path = inputs.path("small.parquet")

    def run() -> int:
        return sum(len(batch) for batch in pq.ParquetFile(path).iter_batches(_ROWS))

    return Task(run, records=inputs.small_count, digest=int)


def _tfx_bsl_batches(inputs: Inputs) -> Task:
    import tensorflow as tf
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    path = str(inputs.path("small.tfrecord"))
    decoder = ExamplesToRecordBatchDecoder()  # a schema of the same types makes it no faster

    def run() -> int:
        payloads = tf.data.TFRecordDataset(path).batch(_ROWS).as_numpy_iterator()
        return sum(decoder.DecodeBatch(batch).num_rows for batch in payloads)

    return Task(run, records=inputs.small_count, digest=int)


def _export(inputs: Inputs) -> Task:
    import recordsmith as rs

    path, out = inputs.path("small.tfrecord"), inputs.out("exported")
    dataset = rs.open(path)
    assert dataset.schema.features
    export = rs.export

    def run() -> int:
        return export(dataset, out, "parquet", overwrite=True).record_count

    return Task(run, records=inputs.small_count, digest=int)


def _write_table(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    table = pq.read_table(inputs.path("small.parquet"))
    out = inputs.out("written.parquet")

    def run() -> int:
        pq.write_table(table, out)
        return int(table.num_rows)

    return Task(run, records=inputs.small_count, digest=int)


def _query(inputs: Inputs) -> Task:
    import recordsmith as rs
    from recordsmith.duckdb import query

    dataset = rs.open(inputs.path(_MANY))
    assert dataset.schema.features
    return Task(
        lambda: query("select label, count(*) as n from data group by label", dataset),
        records=inputs.record_counts[_MANY],
        digest=lambda table: sum(table["n"].to_pylist()),
    )


def _one_column(inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path(_MANY))
    assert dataset.schema.features

    def run() -> int:
        return sum(len(batch["label"]) for batch in dataset.batches(16_384, ["label"]))

    return Task(run, records=inputs.record_counts[_MANY], digest=int)


def _tensorflow_counts(inputs: Inputs) -> Task:
    import numpy as np
    import tensorflow as tf

    path = str(inputs.path(_MANY))
    features = {"label": tf.io.FixedLenFeature([], tf.int64)}
    dataset = (
        tf.data.TFRecordDataset(path)
        .batch(_ROWS)
        .map(lambda payloads: tf.io.parse_example(payloads, features))
    )

    def run() -> Any:
        counts = np.zeros(1 << 20, np.int64)
        for batch in dataset:
            np.add.at(counts, batch["label"].numpy(), 1)
        return int(counts.sum())

    return Task(run, records=inputs.record_counts[_MANY], digest=int)


def _parquet_query(inputs: Inputs) -> Task:
    import duckdb

    path = str(inputs.path(_MANY_IN_PARQUET))
    sql = f"select label, count(*) as n from '{path}' group by label"

    def run() -> Any:
        relation = duckdb.sql(sql)
        assert relation is not None
        return relation.to_arrow_table()

    return Task(
        run, records=inputs.record_counts[_MANY], digest=lambda table: sum(table["n"].to_pylist())
    )


CASES = (
    Case(
        name="arrow-batches",
        title="Arrow batches",
        what="Small records into batches of 1,024 rows, all columns.",
        unit="record",
        inputs=("small.tfrecord", "small.parquet"),
        peers=(
            Peer(OURS, _record_batches),
            Peer("recordsmith: batches, without Arrow", _batches, at_most=1.1),
            Peer("tfx_bsl", _tfx_bsl_batches, at_most=1 / 8, python_setting="tfx_bsl_python"),
            Peer("pyarrow: Parquet, batches of 1,024", _parquet_batches, at_most=0.5),
        ),
    ),
    Case(
        name="arrow-parquet",
        title="Export to Parquet",
        what="Small records exported to Parquet.",
        unit="record",
        inputs=("small.tfrecord", "small.parquet"),
        peers=(
            Peer(OURS, _export),
            Peer("pyarrow: write_table alone", _write_table),
        ),
    ),
    Case(
        name="arrow-query",
        title="SQL",
        what="`select label, count(*) … group by label` over small records.",
        unit="record",
        inputs=(_MANY, _MANY_IN_PARQUET),
        peers=(
            Peer(OURS, _query),
            Peer('recordsmith: batches(["label"]) alone', _one_column, at_most=1.3),
            Peer("tf.data: parse_example, counted by NumPy", _tensorflow_counts, at_most=1 / 8),
            Peer("DuckDB on the same rows in Parquet", _parquet_query),
        ),
    ),
)
