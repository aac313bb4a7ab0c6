"""Rows of a table into shards for training: eight columns of numbers and texts, shuffled.

Next to recordsmith: reading the table and doing nothing with it; pyarrow's columns, written in
order; and what users write by hand: `csv`, `json` or pyarrow, `tf.train.Example`, `TFRecordWriter`.
The hand-written scripts hold all rows in memory, to shuffle them, write one split, and know the
kinds of the columns, which recordsmith finds out.
"""

from __future__ import annotations

import csv
import importlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from cases.pack import packing_task
from cases.write import sync
from inputs import Inputs

_INTEGERS, _FLOATS = ("id", "user", "clicked"), ("price", "ratio", "height")


def _recordsmith(name: str) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith import Table, pack

        def run(out: Path) -> None:
            pack(Table(inputs.path(name)), out, splits={"train": 0.9, "test": 0.1})

        return packing_task(inputs.out(f"recordsmith-{name}"), inputs.row_count, run)

    return prepare


def _by_hand(name: str, read_rows: Callable[[Path], list[dict[str, Any]]]) -> Any:
    def prepare(inputs: Inputs) -> Task:
        import tensorflow as tf

        feature, int64s = tf.train.Feature, tf.train.Int64List
        floats, strings = tf.train.FloatList, tf.train.BytesList

        def encode(row: dict[str, Any]) -> Any:
            features = {
                "id": feature(int64_list=int64s(value=[int(row["id"])])),
                "user": feature(int64_list=int64s(value=[int(row["user"])])),
                "clicked": feature(int64_list=int64s(value=[int(row["clicked"])])),
                "price": feature(float_list=floats(value=[float(row["price"])])),
                "ratio": feature(float_list=floats(value=[float(row["ratio"])])),
                "height": feature(float_list=floats(value=[float(row["height"])])),
                "city": feature(bytes_list=strings(value=[row["city"].encode()])),
                "remark": feature(bytes_list=strings(value=[row["remark"].encode()])),
            }
            return tf.train.Example(features=tf.train.Features(feature=features))

        def run(out: Path) -> None:
            rows = read_rows(inputs.path(name))
            random.Random(0).shuffle(rows)
            path = out / "train.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for row in rows:
                    writer.write(encode(row).SerializeToString())
            sync(path)

        return packing_task(inputs.out(f"by-hand-{name}"), inputs.row_count, run)

    return prepare


def _csv_rows(path: Path) -> list[dict[str, Any]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()  # type: ignore[no-any-return]


def _json_rows(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return list(map(json.loads, file))


def _columns(name: str, read: Callable[[Path], Any]) -> Callable[[Inputs], Task]:
    """Columns with the kinds that pyarrow infers, written in order: no shuffle, no checks."""

    def prepare(inputs: Inputs) -> Task:
        from recordsmith import ShardWriter

        def run(out: Path) -> None:
            with ShardWriter(out / "train.tfrecord") as writer:
                writer.write_columns(read(inputs.path(name)))

        return packing_task(inputs.out(f"columns-{name}"), inputs.row_count, run)

    return prepare


def _reading(name: str, read: Callable[[Path], Any]) -> Callable[[Inputs], Task]:
    return lambda inputs: Task(lambda: read(inputs.path(name)), inputs.row_count)


def _csv_table(path: Path) -> Any:
    return importlib.import_module("pyarrow.csv").read_csv(path)


def _parquet_table(path: Path) -> Any:
    return importlib.import_module("pyarrow.parquet").read_table(path)


_WHAT = "Eight columns of numbers and texts, 80 bytes a row, shuffled into two splits."
CASES = (
    Case(
        name="tables-csv",
        title="Pack a CSV table",
        what=_WHAT,
        unit="row",
        peers=(
            Peer(OURS, _recordsmith("table.csv")),
            Peer("csv.DictReader, tf.train.Example", _by_hand("table.csv", _csv_rows)),
            Peer("pyarrow.csv, write_columns, in order", _columns("table.csv", _csv_table)),
            Peer("reading only: pyarrow.csv", _reading("table.csv", _csv_table)),
        ),
        inputs=("table.csv",),
    ),
    Case(
        name="tables-json",
        title="Pack JSON Lines",
        what=_WHAT,
        unit="row",
        peers=(
            Peer(OURS, _recordsmith("table.jsonl")),
            Peer("json.loads, tf.train.Example", _by_hand("table.jsonl", _json_rows)),
            Peer("reading only: json.loads", _reading("table.jsonl", _json_rows)),
        ),
        inputs=("table.jsonl",),
    ),
    Case(
        name="tables-parquet",
        title="Pack a Parquet table",
        what=_WHAT,
        unit="row",
        peers=(
            Peer(OURS, _recordsmith("table.parquet")),
            Peer("to_pylist, tf.train.Example", _by_hand("table.parquet", _parquet_rows)),
            Peer("read_table, write_columns, in order", _columns("table.parquet", _parquet_table)),
            Peer("reading only: read_table", _reading("table.parquet", _parquet_table)),
        ),
        inputs=("table.parquet",),
    ),
)
