"""The format `recordsmith` of Spark, on a cluster with two workers."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import pickle
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ..connector_contract import (
    COUNT,
    Check,
    Connector,
    ConnectorContract,
    assert_whole,
    row,
    tables,
    write_dataset,
)

pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")


class _Spark(Connector):
    def __init__(self, session: Any) -> None:
        self._session = session

    def read(self, paths: Any, split: str | None = None, **options: Any) -> Any:
        return self.load(paths, split, **options).toArrow().sort_by("id")

    def load(self, paths: Any, split: str | None = None, **options: Any) -> Any:
        reader = self._session.read.format("recordsmith")
        return reader.options(**_texts({"split": split, **options})).load(str(paths))

    def write(
        self, tables: Sequence[Any], out: Any, check: Check | None = None, **options: Any
    ) -> None:
        def run(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                if check is not None:
                    check(batch["id"].to_pylist())
                yield batch

        rows = [tuple(values.values()) for each in tables for values in each.to_pylist()]
        schema = self._session.createDataFrame(tables[0][:0]).schema
        parts = self._session.sparkContext.parallelize(rows, len(tables))
        frame = self._session.createDataFrame(parts, schema)
        if check is not None:
            frame = frame.mapInArrow(run, frame.schema)
        mode = "overwrite" if options.pop("overwrite", False) else "append"
        writer = frame.write.format("recordsmith").options(**_texts(options))
        writer.mode(mode).save(str(out))

    def sent(self, path: str) -> bytes:
        from recordsmith.spark.source import RecordsmithSource

        source = RecordsmithSource({"path": path})
        reader = source.reader(source.schema())
        return pickle.dumps((source, reader, reader.partitions()))

    @contextmanager
    def raises(
        self, kind: type[Exception], *, match: str = "", **fields: Any
    ) -> Iterator[pytest.ExceptionInfo[Any]]:
        """Spark has only the text of an error."""
        name = rf":\s+recordsmith\.support\.errors\.{kind.__name__}: .*{match}"
        with pytest.raises(Exception, match=name) as caught:
            yield caught
        if "record" in fields:
            assert f"{fields['path']}, record {fields['record']}, " in str(caught.value)


def _texts(options: dict[str, Any]) -> dict[str, str]:
    """The options of a connector as Spark has them."""
    given = {name: value for name, value in options.items() if value is not None}
    if "filter" in given:
        given["where"] = given.pop("filter")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
    }


@pytest.fixture
def connector(spark: Any) -> _Spark:
    return _Spark(spark)


class TestSpark(ConnectorContract):
    takes_datasets = False


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data") / "packed"
    write_dataset(folder)
    return str(folder)


def test_types_and_partitions(connector: _Spark, packed: str) -> None:
    frame = connector.load(packed)
    assert {field.name: field.dataType.simpleString() for field in frame.schema} == {
        "flag": "bigint",
        "id": "bigint",
        "many": "array<bigint>",
        "name": "string",
        "raw": "binary",
        "score": "float",
        "words": "array<string>",
    }
    assert frame.rdd.getNumPartitions() == 3
    frame = connector.load(packed, partition_size="5kB", where="id > 3")
    assert frame.rdd.getNumPartitions() > 6
    assert frame.toArrow()["id"].to_pylist() == [*range(4, COUNT)]


def test_columns_of_a_stated_schema_have_its_types(spark: Any, packed: str) -> None:
    reader, shard = spark.read.format("recordsmith"), str(min(Path(packed).glob("*.tfrecord")))
    with pytest.raises(Exception, match="array<string>"):
        reader.schema("id int, many array<string>").load(shard).collect()
    schema = "score double, id int, name binary, many array<int>, other array<bigint>"
    found = reader.schema(schema).load(shard)
    assert [field.dataType.simpleString() for field in found.schema] == [
        *("double", "int", "binary", "array<int>", "array<bigint>"),
    ]
    for number, values in enumerate(found.toArrow().to_pylist()):
        expected = row(number)
        assert values == {
            **{name: expected[name] for name in ("score", "id", "many")},
            "name": expected["name"] and expected["name"].encode(),
            "other": None,
        }


def test_a_stated_schema_reads_no_records_for_the_plan(
    spark: Any, connector: _Spark, tmp_path: Path
) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_columns({"x": [1, 2, 3]})
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    data[-3] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    frame = spark.read.format("recordsmith").schema("x bigint").load(str(tmp_path))
    assert frame.columns == ["x"]
    for read in (frame.collect, lambda: connector.load(tmp_path)):
        with connector.raises(rs.CorruptDataError, match="payload-crc"):
            read()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"colums": "id"}, "columns"),
        ({"columns": '["a"'}, "columns"),
        ({"where": "not labl == 3"}, "labl"),
        ({"partition_size": "0"}, "partition_size"),
        ({"restore_types": "1"}, "restore_types"),
        ({"store_options": "{"}, "store_options"),
        ({"schema": "id string"}, "id"),
        ({"schema": "x map<string, int>"}, "'x'"),
        ({"schema": "x struct<a: int>"}, "'x'"),
    ],
)
def test_invalid_options_are_named(
    spark: Any, connector: _Spark, packed: str, options: dict[str, str], named: str
) -> None:
    reader = spark.read.format("recordsmith")
    given = dict(options)
    if "schema" in given:
        reader = reader.schema(given.pop("schema"))
    with connector.raises(rs.OptionError, match=named):
        reader.options(**given).load(packed).collect()


def test_an_existing_dataset_needs_a_mode(connector: _Spark, tmp_path: Path) -> None:
    connector.write(tables(), tmp_path / "out")
    with connector.raises(rs.OptionError, match=re.escape('mode("overwrite")')):
        connector.write(tables(), tmp_path / "out")


def test_times_and_decimals_are_restored(spark: Any, connector: _Spark, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=dt.UTC)
    day = dt.date(2024, 2, 29)
    price = decimal.Decimal("12.34")
    schema = "at timestamp, day date, price decimal(10, 2), exact double, small int, nothing void"
    rows = [(moment, day, price, 0.1, 7, None), (None, None, None, None, None, None)]
    frame = spark.createDataFrame(rows, schema)
    frame.write.format("recordsmith").mode("append").save(str(tmp_path / "out"))
    (example, missing) = rs.open(tmp_path / "out")
    assert example["at"][0] == int(moment.timestamp()) * 10**6 + 5
    assert example["day"][0] == (day - dt.date(1970, 1, 1)).days
    assert example["price"] == [b"12.34"]
    assert missing == {}
    restored = connector.load(tmp_path / "out", restore_types="true")
    assert restored.schema["small"].dataType.simpleString() == "int"
    (values, _) = restored.toArrow().to_pylist()
    assert (values["at"], values["day"], values["price"]) == (moment, day, price)
    assert values["exact"] == pytest.approx(0.1)


@pytest.fixture
def small_batches(spark: Any) -> Iterator[None]:
    """So that a partition has several batches."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def _killing_executor(flag: Path) -> Check:
    """Kill the executor of this worker once, in the middle of a partition."""
    name = str(flag)

    def check(ids: Sequence[int]) -> None:
        if max(ids) < 330 or os.path.exists(name):
            return
        Path(name).touch()
        time.sleep(0.5)  # the writer, in another process, writes what it has
        process = os.getpid()
        for _ in range(2):
            process = int(Path(f"/proc/{process}/stat").read_text().split()[3])
        os.kill(process, 9)

    return check


def _slow_once(flag: Path) -> Check:
    """Wait in the first attempt of one partition, after some rows, until a copy has begun."""
    name = str(flag)

    def check(ids: Sequence[int]) -> None:
        if max(ids) < 480:
            return
        try:
            os.close(os.open(f"{name}-begun", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            Path(name).touch()
        else:
            deadline = time.monotonic() + 120
            while not Path(name).exists() and time.monotonic() < deadline:
                time.sleep(0.05)

    return check


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("disturbing", [_killing_executor, _slow_once])
def test_killed_and_repeated_tasks_change_nothing(
    connector: _Spark, tmp_path: Path, disturbing: Any
) -> None:
    """A slow task is run again at the same time."""
    connector.write(tables(), tmp_path / "out", disturbing(tmp_path / "flag"))
    assert (tmp_path / "flag").exists()
    assert_whole(tmp_path / "out")
