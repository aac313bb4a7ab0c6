"""Small records as Arrow batches, into Parquet and CSV, and grouped by SQL."""

from __future__ import annotations

from collections.abc import Callable
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


def _export(format: str) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import recordsmith as rs

        dataset = rs.open(inputs.path("small.tfrecord"))
        assert dataset.schema.features
        out = inputs.out(f"exported-{format}")

        def run() -> int:
            return rs.export(dataset, out, format, overwrite=True).record_count

        return Task(run, records=inputs.small_count, digest=int)

    return prepare


def _write_table(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    table = pq.read_table(inputs.path("small.parquet"))
    out = inputs.out("written.parquet")

    def run() -> int:
        pq.write_table(table, out)
        return int(table.num_rows)

    return Task(run, records=inputs.small_count, digest=int)


def _float_texts(inputs: Inputs) -> Task:
    """The text of the numbers alone: most of what a CSV file costs."""
    import pyarrow.parquet as pq

    table = pq.read_table(inputs.path("small.parquet"))
    lists = [table[name].combine_chunks() for name in ("dense", "items")]

    def run() -> int:
        for values in lists:
            values.flatten().cast("string")
        return int(table.num_rows)

    return Task(run, records=inputs.small_count, digest=int)


def _csv_rows(inputs: Inputs) -> Task:
    import csv
    import json

    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    out = inputs.out("by-hand.csv")

    def run() -> int:
        count = 0
        with open(out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            for example in dataset:
                cells = [
                    value[0].decode()
                    if isinstance(value, list)
                    else value[0].item()
                    if len(value) == 1
                    else json.dumps(value.tolist())
                    for value in example.values()
                ]
                writer.writerow(cells)
                count += 1
        return count

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
            Peer(OURS, _export("parquet")),
            Peer("pyarrow: write_table alone", _write_table),
        ),
    ),
    Case(
        name="export-csv",
        title="Export to CSV",
        what="Small records exported to CSV: 13 floats and 10 integers in lists, 4 other columns.",
        unit="record",
        inputs=("small.tfrecord", "small.parquet"),
        peers=(
            Peer(OURS, _export("csv")),
            Peer("pyarrow: the text of the numbers in lists alone", _float_texts),
            Peer("csv.writer and json.dumps, by hand", _csv_rows),
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
