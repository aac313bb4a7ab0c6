"""Rows of a table into one shard for training: eight columns of numbers and texts, shuffled.

Next to recordsmith: reading the table and doing nothing with it; and what users write by hand:
`csv` or pyarrow, `tf.train.Example`, `TFRecordWriter`. The hand-written scripts hold all rows in
memory, to shuffle them, and know the kinds of the columns, which recordsmith finds out.
"""

from __future__ import annotations

import csv
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
            pack(Table(inputs.path(name)), out, shards=1)

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


def _reading_csv(inputs: Inputs) -> Task:
    def run() -> int:
        with open(inputs.path("table.csv"), newline="", encoding="utf-8") as file:
            return sum(map(len, csv.reader(file)))

    return Task(run, inputs.row_count)


def _reading_numbers(inputs: Inputs) -> Task:
    """Each row as a dict of numbers and bytes: what any script in Python has to do."""
    kinds: Any = {**dict.fromkeys(_INTEGERS, int), **dict.fromkeys(_FLOATS, float)}

    def run() -> int:
        count = 0
        with open(inputs.path("table.csv"), newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                count += len({name: kinds.get(name, str.encode)(row[name]) for name in row})
        return count

    return Task(run, inputs.row_count)


def _reading_parquet(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    return Task(lambda: pq.read_table(inputs.path("table.parquet")), inputs.row_count)


def _reading_dicts(inputs: Inputs) -> Task:
    import pyarrow.parquet as pq

    return Task(lambda: pq.read_table(inputs.path("table.parquet")).to_pylist(), inputs.row_count)


CASES = (
    Case(
        name="tables-csv",
        title="Pack a CSV table",
        what="Eight columns of numbers and texts, 80 bytes a row, shuffled, into one shard.",
        unit="row",
        peers=(
            Peer(OURS, _recordsmith("table.csv")),
            Peer("csv.DictReader, tf.train.Example", _by_hand("table.csv", _csv_rows)),
            Peer("csv.DictReader, numbers and bytes in a dict", _reading_numbers),
            Peer("reading the cells: csv.reader", _reading_csv),
        ),
        inputs=("table.csv",),
    ),
    Case(
        name="tables-parquet",
        title="Pack a Parquet table",
        what="The same table as Parquet, shuffled, into one shard.",
        unit="row",
        peers=(
            Peer(OURS, _recordsmith("table.parquet")),
            Peer("to_pylist, tf.train.Example", _by_hand("table.parquet", _parquet_rows)),
            Peer("reading the rows: read_table().to_pylist()", _reading_dicts),
            Peer("reading the columns: read_table()", _reading_parquet),
        ),
        inputs=("table.parquet",),
    ),
)
