"""The types of Arrow tables as Spark has them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pytest

from recordsmith.writing import begin_table, finish_table, write_table_part

from ...raising import raises

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")

import recordsmith as rs  # noqa: E402 - needs pyspark
from recordsmith.spark.source import RecordsmithSource  # noqa: E402 - needs pyspark

MOMENT_UTC = dt.datetime(2024, 2, 29, 12, 30, 1, tzinfo=dt.UTC)
MOMENT = MOMENT_UTC.replace(tzinfo=None)
DAY, TIME, SPAN = dt.date(2024, 2, 29), dt.time(1, 2, 3), dt.timedelta(seconds=3)
UNITS = ("s", "ms", "us", "ns")
UUID_BYTES = bytes(range(16))
TYPES = [
    *((getattr(pa, f"uint{bits}")(), name, 2 ** min(bits, 63) - 1)
      for bits, name in ((8, "smallint"), (16, "int"), (32, "bigint"), (64, "bigint"))),
    *((pa.timestamp(unit), "timestamp_ntz", MOMENT) for unit in UNITS),
    *((pa.timestamp(unit, "Europe/Berlin"), "timestamp", MOMENT_UTC) for unit in UNITS),
    *((pa.duration(unit), "interval day to second", SPAN) for unit in UNITS),
    *((kind, "time(6)", TIME)
      for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
    (pa.date32(), "date", DAY),
    (pa.date64(), "date", DAY),
    (pa.bool_(), "boolean", True),
    (pa.float16(), "float", 1.5),
    (pa.float64(), "double", 1.5),
    *((kind(), "string", "né") for kind in (pa.string, pa.large_string, pa.string_view)),
    *((kind(), "binary", b"\xff") for kind in (pa.binary, pa.large_binary, pa.binary_view)),
    (pa.decimal128(5, 2), "decimal(5,2)", decimal.Decimal("1.50")),
    (pa.decimal256(38, 2), "decimal(38,2)", decimal.Decimal("1.50")),
]  # fmt: skip
LISTS = (pa.list_, pa.large_list, lambda of: pa.list_(of, 1), pa.list_view)
SCALARS = [
    *TYPES,
    (pa.dictionary(pa.int8(), pa.uint8()), "smallint", 255),
    (pa.dictionary(pa.int8(), pa.string()), "string", "né"),
]


def write(folder: Path, **columns: Any) -> str:
    job = begin_table(folder / "out")
    finish_table(job, [write_table_part(job, 0, [pa.table(columns)])])
    return str(folder / "out")


def read(path: str) -> tuple[dict[str, str], dict[str, list[Any]]]:
    """The types and values that Spark gets."""
    source = RecordsmithSource({"path": path, "restore_types": "true"})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    types = {field.name: field.dataType.simpleString() for field in schema}
    return types, pa.Table.from_batches(batches).to_pydict()


@pytest.mark.parametrize(("kind", "name", "value"), SCALARS, ids=str)
def test_restored_types(tmp_path: Path, kind: Any, name: str, value: Any) -> None:
    types, values = read(write(tmp_path, x=pa.array([value, None], kind)))
    assert types == {"x": name}
    assert values == {"x": [value, None]}


@pytest.mark.parametrize("of", LISTS)
@pytest.mark.parametrize(("kind", "name", "value"), TYPES, ids=str)
def test_restored_types_of_lists(tmp_path: Path, of: Any, kind: Any, name: str, value: Any) -> None:
    types, values = read(write(tmp_path, x=pa.array([[value], None], of(kind))))
    assert types == {"x": f"array<{name}>"}
    assert values == {"x": [[value], None]}


def test_restored_extension_types(tmp_path: Path) -> None:
    tensors = pa.array([[1.5, 2.5]], pa.list_(pa.float32(), 2))
    path = write(
        tmp_path,
        id=pa.ExtensionArray.from_storage(pa.uuid(), pa.array([UUID_BYTES], pa.binary(16))),
        x=pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), (2,)), tensors),
    )
    types, values = read(path)
    assert types == {"id": "binary", "x": "array<float>"}
    assert values == {"id": [UUID_BYTES], "x": [[1.5, 2.5]]}


def test_digits_of_times_that_spark_lacks_are_cut_off(tmp_path: Path) -> None:
    array = pa.array([1_234_567_890], pa.timestamp("ns"))
    _, values = read(write(tmp_path, x=array))
    assert values == {"x": [dt.datetime.fromisoformat("1970-01-01T00:00:01.234567")]}


def test_decimals_that_spark_lacks_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, x=pa.array([decimal.Decimal("1.50")], pa.decimal256(39, 2)))
    with raises(rs.OptionError, option="restore_types", value="x"):
        RecordsmithSource({"path": path, "restore_types": "true"}).schema()
    assert RecordsmithSource({"path": path}).schema()["x"].dataType.simpleString() == "string"


def test_spark_gets_the_types(spark: Any, tmp_path: Path) -> None:
    columns = {f"c{number}": pa.array([value, None], kind)
               for number, (kind, _, value) in enumerate(SCALARS)}  # fmt: skip
    reader = spark.read.format("recordsmith").option("restore_types", "true")
    found = reader.load(write(tmp_path, **columns))
    expected = [[value, None] for _, _, value in SCALARS]
    assert [*found.toArrow().to_pydict().values()] == expected
