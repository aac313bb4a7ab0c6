"""Spark writes whole datasets, whatever happens to its tasks and executors."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ..tensorflow_reads import tensorflow_rows

pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = (
    "number bigint, small int, is_even boolean, half float, name string, raw binary, "
    "ragged array<bigint>, words array<string>, maybe bigint, nothing void"
)
PARTS = 4


def row(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "small": -number,
        "is_even": number % 2 == 0,
        "half": number / 2,
        "name": f"né {number}",
        "raw": bytes([255, number % 256]),
        "ragged": [*range(number % 4)] if number % 7 else None,
        "words": ["a", ""] if number % 3 else [],
        "maybe": number if number % 5 == 0 else None,
        "nothing": None,
    }


def frame_of(spark: Any, count: int = 200) -> Any:
    rows = [tuple(row(number).values()) for number in range(count)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, PARTS), SCHEMA)


def save(frame: Any, out: object, mode: str = "append", **options: str) -> None:
    frame.write.format("recordsmith").options(**options).mode(mode).save(str(out))


def load(spark: Any, path: object, **options: str) -> Any:
    return spark.read.format("recordsmith").options(**options).load(str(path))


def stored(number: int) -> dict[str, Any]:
    """A row as features have it: without columns that are null everywhere."""
    found = row(number)
    del found["nothing"]
    return {**found, "is_even": int(found["is_even"])}


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def assert_whole(path: Path | str, count: int = 200) -> None:
    """Every row once, in order; and every file as the manifest says."""
    assert rs.verify(path).is_good
    assert [int(example["number"][0]) for example in rs.open(path)] == [*range(count)]


def test_a_frame_survives_the_round_trip(spark: Any, tmp_path: Path) -> None:
    save(frame_of(spark), tmp_path / "out")
    assert_whole(tmp_path / "out")
    assert len(rs.open(tmp_path / "out").shards) == PARTS
    names = [name for name in files_in(tmp_path / "out") if name.endswith(".tfrecord")]
    assert names == [f"train-{part:05}-of-{PARTS:05}.tfrecord" for part in range(PARTS)]
    frame = load(spark, tmp_path / "out")
    by_name = sorted(stored(0))
    assert frame.toArrow().select(by_name).to_pylist() == [
        {name: stored(number)[name] for name in by_name} for number in range(200)
    ]
    restored = load(spark, tmp_path / "out", restore_types="true")
    types = {field.name: field.dataType.simpleString() for field in restored.schema}
    assert types["small"] == "int"
    assert types["is_even"] == "boolean"
    assert [found["is_even"] for found in restored.select("is_even").collect()] == [
        True, False,
    ] * 100  # fmt: skip


def test_times_and_decimals_are_restored(spark: Any, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=dt.timezone.utc)
    day = dt.date(2024, 2, 29)
    price = decimal.Decimal("12.34")
    schema = "at timestamp, day date, price decimal(10, 2), exact double"
    frame = spark.createDataFrame([(moment, day, price, 0.1), (None, None, None, None)], schema)
    save(frame, tmp_path / "out")
    (example, missing) = rs.open(tmp_path / "out")
    assert example["at"][0] == int(moment.timestamp()) * 10**6 + 5
    assert example["day"][0] == (day - dt.date(1970, 1, 1)).days
    assert example["price"] == [b"12.34"]
    assert missing == {}
    found = load(spark, tmp_path / "out", restore_types="true").toArrow().to_pylist()
    assert found[0]["at"] == moment
    assert (found[0]["day"], found[0]["price"]) == (day, price)
    assert found[0]["exact"] == pytest.approx(0.1)


def test_tensorflow_reads_what_was_written(spark: Any, tmp_path: Path) -> None:
    save(frame_of(spark), tmp_path / "out")
    found = tensorflow_rows((tmp_path / "out").glob("*.tfrecord"))

    def feature(value: Any) -> list[Any]:
        values = value if isinstance(value, list) else [value]
        encoded = [one.encode() if isinstance(one, str) else one for one in values]
        return [one.hex() if isinstance(one, bytes) else one for one in encoded]

    assert found == [
        {
            name: feature(value)
            for name, value in sorted(stored(number).items())
            if value is not None
        }
        for number in range(200)
    ]


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("map('a', 1)", "map"),
        ("named_struct('a', 1)", "struct"),
        ("array(array(1))", "lists of lists"),
    ],
)
def test_columns_without_equivalent_are_refused(
    spark: Any, tmp_path: Path, column: str, named: str
) -> None:
    frame = spark.sql(f"select 1 as good, {column} as `the column`")
    with pytest.raises(
        Exception, match=rf":\s+recordsmith\.errors\.OptionError: .*the column.*{named}"
    ):
        save(frame, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _failing() -> Any:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 2:
                raise ValueError("the user's function failed")

    return run


@pytest.fixture
def small_batches(spark: Any) -> Iterator[None]:
    """So that a partition has several batches."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_an_existing_dataset_is_replaced_only_in_mode_overwrite(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    save(frame_of(spark, 10), out)
    before = files_in(out)
    with pytest.raises(
        Exception, match=r':\s+recordsmith.errors.OptionError: .*mode\("overwrite"\)'
    ):
        save(frame_of(spark), out)
    assert files_in(out) == before
    assert_whole(out, 10)
    save(frame_of(spark).coalesce(2), out, "overwrite", split="test", compression="gzip")
    assert_whole(out)
    assert [name for name in files_in(out) if ".tfrecord" in name and "/" not in name] == [
        "test-00000-of-00002.tfrecord.gz",
        "test-00001-of-00002.tfrecord.gz",
    ]


@pytest.mark.usefixtures("small_batches")
def test_a_failed_write_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    failing = frame_of(spark).mapInArrow(_failing(), SCHEMA)
    with pytest.raises(Exception, match="the user's function failed"):
        save(failing, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    save(frame_of(spark, 10), tmp_path / "out")
    before = files_in(tmp_path / "out")
    with pytest.raises(Exception, match="the user's function failed"):
        save(failing, tmp_path / "out", "overwrite")
    assert files_in(tmp_path / "out") == before
    assert_whole(tmp_path / "out", 10)


def _killing(flag: str, depth: int) -> Any:
    """Kill this worker, or its executor, once, in the middle of a partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            yield batch
            if number == 5 and batch.column(0)[0].as_py() > 100:
                try:
                    os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                time.sleep(0.5)  # the writer, in another process, writes what it has
                process = os.getpid()
                for _ in range(depth):
                    process = int(Path(f"/proc/{process}/stat").read_text().split()[3])
                os.kill(process, 9)

    return run


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("depth", [0, 2], ids=["worker", "executor"])
def test_a_killed_worker_changes_nothing(spark: Any, tmp_path: Path, depth: int) -> None:
    out, flag = tmp_path / "out", tmp_path / "killed"
    save(frame_of(spark).mapInArrow(_killing(str(flag), depth), SCHEMA), out)
    assert flag.exists()
    assert_whole(out)
    save(frame_of(spark), tmp_path / "other")
    for shard, other in zip(rs.open(out).shards, rs.open(tmp_path / "other").shards, strict=True):
        assert Path(shard.location).read_bytes() == Path(other.location).read_bytes()
    assert not [name for name in files_in(out) if "partial" in name]


def _slow_first(flag: str) -> Any:
    """Wait in the first attempt of one partition, after some rows, until a copy has begun."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            if number == 5 and batch.column(0)[0].as_py() > 150:
                try:
                    os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    Path(f"{flag}-copied").touch()
                else:
                    deadline = time.monotonic() + 120
                    while not Path(f"{flag}-copied").exists() and time.monotonic() < deadline:
                        time.sleep(0.05)
            yield batch

    return run


@pytest.mark.usefixtures("small_batches")
def test_speculative_copies_of_a_task_change_nothing(spark: Any, tmp_path: Path) -> None:
    out, flag = tmp_path / "out", tmp_path / "slow"
    save(frame_of(spark).mapInArrow(_slow_first(str(flag)), SCHEMA), out)
    assert Path(f"{flag}-copied").exists(), "no copy was run"
    assert_whole(out)


def test_a_bucket_without_and_with_explicit_options(spark: Any, servers: Any) -> None:
    pytest.importorskip("moto")
    url, options = servers["s3"].new_bucket()
    save(frame_of(spark), f"{url}/out")
    explicit = {"store_options": json.dumps(options)}
    with pytest.raises(Exception, match="OptionError"):
        save(frame_of(spark), f"{url}/out", **explicit)
    for path, given in ((f"{url}/out", {}), (f"{url}/other", explicit)):
        if given:
            save(frame_of(spark), path, **given)
            save(frame_of(spark), path, "overwrite", **given)
        found = load(spark, path, **given).orderBy("number").toArrow()
        by_name = sorted(stored(0))
        assert found.select(by_name).to_pylist() == [
            {name: stored(number)[name] for name in by_name} for number in range(200)
        ]
        assert_whole(rs.remote(path, store_options=options))
