"""Spark reads datasets with the columns, rows and errors that the library has."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..zoo_tables import check_file

PySparkException = pytest.importorskip("pyspark.errors").PySparkException
pytestmark = pytest.mark.filterwarnings("ignore")

SHARDS, ROWS = 3, 100


def example(number: int) -> dict[str, Any]:
    """A record with one value, several, optional ones, text and bytes."""
    values: dict[str, Any] = {
        "label": number % 7 - 2,
        "name": f"né {number % 13}",
        "raw": bytes([255, number % 256]),
        "items": np.arange(number % 4, dtype=np.float32),
        "tags": [b"\xff"] * (number % 3),
        "pair": np.array([number, -number]),
        "a.b/c`d": number,
    }
    if number % 5 == 0:
        values |= {"maybe": 0.5 * number, "maybe_text": f"{number}"}
    return values


def row(number: int) -> dict[str, Any]:
    """The same as Spark returns it."""
    values = example(number)
    values |= {"items": values["items"].tolist(), "pair": values["pair"].tolist()}
    return {"maybe": None, "maybe_text": None, **values}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Shards without a manifest."""
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(SHARDS):
        with rs.ShardWriter(folder / f"train-{shard:05}-of-{SHARDS:05}.tfrecord") as writer:
            for number in range(shard * ROWS, (shard + 1) * ROWS):
                writer.write_example(example(number))
    return str(folder)


def load(spark: Any, path: str, schema: str | None = None, **options: str) -> Any:
    reader = spark.read.format("recordsmith").options(**options)
    return (reader if schema is None else reader.schema(schema)).load(path)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()


def scanned(frame: Any) -> int:
    """The number of rows that Spark got from recordsmith for a frame that was collected."""
    plan = frame._jdf.queryExecution().executedPlan()
    metrics = plan.collectLeaves().apply(0).metrics()
    return int(metrics.get("numOutputRows").get().value())


def test_rows_are_the_examples_in_order(spark: Any, shards: str) -> None:
    frame = load(spark, shards)
    assert {field.name: field.dataType.simpleString() for field in frame.schema} == {
        "label": "bigint",
        "name": "string",
        "raw": "binary",
        "items": "array<float>",
        "tags": "array<binary>",
        "pair": "array<bigint>",
        "a.b/c`d": "bigint",
        "maybe": "float",
        "maybe_text": "string",
    }
    assert frame.rdd.getNumPartitions() == SHARDS
    assert rows_of(frame) == [row(number) for number in range(SHARDS * ROWS)]


def test_large_shards_are_several_partitions(spark: Any, shards: str) -> None:
    frame = load(spark, shards, partition_size="5kB")
    assert frame.rdd.getNumPartitions() > 2 * SHARDS
    assert rows_of(frame) == [row(number) for number in range(SHARDS * ROWS)]


def test_columns_of_a_stated_schema_have_its_types(spark: Any, shards: str) -> None:
    schema = "maybe double, label int, name binary, pair array<string>, other array<bigint>"
    with pytest.raises(Exception, match="array<string>"):
        load(spark, shards, schema).collect()
    schema = "maybe double, label tinyint, name binary, pair array<int>, other array<bigint>"
    frame = load(spark, shards, schema)
    assert [field.dataType.simpleString() for field in frame.schema] == [
        "double", "tinyint", "binary", "array<int>", "array<bigint>",
    ]  # fmt: skip
    for number, found in enumerate(rows_of(frame)):
        expected = row(number)
        text = expected["name"].encode()
        assert found == {
            **{name: expected[name] for name in ("maybe", "label", "pair")}, "name": text,
            "other": None,
        }  # fmt: skip


def test_a_stated_schema_reads_no_records_for_the_plan(spark: Any, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_columns({"x": [1, 2, 3]})
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    data[-3] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    with pytest.raises(
        Exception, match=r":\s+recordsmith\.errors\.CorruptDataError: .*payload-crc"
    ):
        load(spark, str(tmp_path))
    frame = load(spark, str(tmp_path), "x bigint")
    assert frame.columns == ["x"]
    with pytest.raises(
        Exception, match=r":\s+recordsmith\.errors\.CorruptDataError: .*payload-crc"
    ):
        frame.collect()


def test_where_reads_the_records_that_match(spark: Any, shards: str) -> None:
    frame = load(spark, shards, where="label == 3 and has(maybe)", partition_size="5kB")
    found = frame.collect()
    expected = [number for number in range(SHARDS * ROWS) if number % 35 == 5]
    assert [one["a.b/c`d"] for one in found] == expected
    assert scanned(frame) == len(expected)


CONDITIONS = [
    ("label = 3", True),
    ("label <=> 3", True),
    ("label <> 3", True),
    ("label > 1 and label <= 3", True),
    ("label >= 2 and name < 'né 2'", True),
    ("label in (-2, 4)", True),
    ("label not in (-2, 4)", True),
    ("`a.b/c``d` < 20", True),
    ("name = 'né 7'", True),
    ("name <> 'né 7'", True),
    ("maybe_text > '2'", True),
    ("maybe_text <> '20'", True),
    ("maybe_text not in ('20', '30')", True),
    ("name like 'né 1%'", True),
    ("name like '%2'", True),
    ("raw = X'FF05'", True),
    ("label = 3 and maybe > 1", True),
    ("maybe > 2.0", False),
    ("maybe is null", False),
    ("maybe_text is null", False),
    ("maybe_text is not null", False),
    ("not (maybe_text like '2%')", False),
    ("name like '%é 1%'", False),
    ("label = 1 or name = 'né 7'", False),
    ("label % 2 = 1", False),
    ("size(items) = 2", False),
    ("items = array(0f, 1f)", False),
]


@pytest.mark.parametrize(("condition", "is_pushed"), CONDITIONS)
def test_pushed_filters_change_no_result(
    spark: Any, shards: str, condition: str, is_pushed: bool
) -> None:
    expected = load(spark, shards).filter(condition).toArrow()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = load(spark, shards, push_filters="true").filter(condition)
        assert frame.toArrow() == expected
        frame.collect()
        assert (scanned(frame) < SHARDS * ROWS) == is_pushed
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_sequence_examples_are_nested_arrays(spark: Any, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for count in (2, 0, 1):
            steps = [np.arange(step, dtype=np.int64) for step in range(count)]
            lists = {"steps": steps} if count else {}
            writer.write(rs.encode_sequence_example({"id": count}, lists))
    expected = [
        {"id": 2, "steps": [[], [0]]},
        {"id": 0, "steps": None},
        {"id": 1, "steps": [[]]},
    ]
    frame = load(spark, str(tmp_path))
    assert frame.schema["steps"].dataType.simpleString() == "array<array<bigint>>"
    assert rows_of(frame) == expected
    assert rows_of(load(spark, str(tmp_path), "steps array<array<bigint>>, id int")) == [
        {"steps": found["steps"], "id": found["id"]} for found in expected
    ]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"colums": "label"}, "columns"),
        ({"columns": "labl"}, "labl"),
        ({"columns": '["a"'}, "columns"),
        ({"where": "label =="}, "where"),
        ({"where": "not labl == 3"}, "labl"),
        ({"partition_size": "0"}, "partition_size"),
        ({"push_filters": "1"}, "push_filters"),
        ({"restore_types": "true"}, "Arrow types"),
        ({"store_options": "{"}, "store_options"),
        ({"split": "test"}, "test"),
    ],
)
def test_invalid_options_are_named(
    spark: Any, shards: str, options: dict[str, str], named: str
) -> None:
    with pytest.raises(Exception, match=r":\s+recordsmith\.errors\.OptionError: .*" + named):
        load(spark, shards, **options).collect()


@pytest.mark.parametrize(
    ("schema", "named"),
    [("label string", "label"), ("x map<string, int>", "'x'"), ("x struct<a: int>", "'x'")],
)
def test_invalid_schemas_are_named(spark: Any, shards: str, schema: str, named: str) -> None:
    with pytest.raises(Exception, match=r":\s+recordsmith\.errors\.OptionError: .*" + named):
        load(spark, shards, schema).collect()


def test_files_of_others(spark: Any, zoo_row: dict[str, Any], zoo: Path, tmp_path: Path) -> None:
    def read() -> Any:
        try:
            return load(spark, str(zoo / zoo_row["file"])).toArrow()
        except PySparkException as error:
            if "recordsmith.errors.NotAnExampleError: " in str(error):
                raise rs.NotAnExampleError("other", "Examples") from None
            if "recordsmith.errors.CorruptDataError: " in str(error):
                raise rs.CorruptDataError(rs.Defect.NOT_A_TFRECORD, str(error)) from None
            raise

    check_file(zoo_row, read)


def test_a_bucket_without_and_with_explicit_options(spark: Any, servers: Any, shards: str) -> None:
    pytest.importorskip("moto")
    url, options = servers["s3"].new_bucket()
    for path in sorted(Path(shards).glob("*.tfrecord")):
        rs.remote(f"{url}/shards/{path.name}", store_options=options).put(path.read_bytes())
    expected = [row(number) for number in range(SHARDS * ROWS)]
    assert rows_of(load(spark, f"{url}/shards")) == expected
    explicit = load(spark, f"{url}/shards", store_options=json.dumps(options))
    assert rows_of(explicit) == expected


def test_nothing_that_travels_has_options_of_the_environment(
    servers: Any, shards: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("moto")
    from pyspark.sql.types import LongType, StructType

    from recordsmith.spark import RecordsmithSource

    url, options = servers["s3"].new_bucket()
    for path in sorted(Path(shards).glob("*.tfrecord")):
        rs.remote(f"{url}/{path.name}", store_options=options).put(path.read_bytes())
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    source = RecordsmithSource({"path": url})
    reader = source.reader(StructType().add("label", LongType()))
    parts = reader.partitions()
    assert len(parts) == SHARDS
    sent = pickle.dumps((source, reader, parts))
    assert options["secret_access_key"].encode() not in sent
    _, reader, parts = pickle.loads(sent)
    assert sum(len(batch) for part in parts for batch in reader.read(part)) == SHARDS * ROWS
