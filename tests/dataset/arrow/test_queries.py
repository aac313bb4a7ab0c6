"""SQL over a dataset: the results of DuckDB on a Parquet file of the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

duckdb: Any = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

from recordsmith.duckdb import query, table  # noqa: E402

from ...raising import raises  # noqa: E402
from ...soak import queries  # noqa: E402


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """Five rows of a, b, c, NaN among the floats, in two splits; the image is the first feature."""
    folder = tmp_path_factory.mktemp("rows")
    nan = float("nan")
    parts = {
        "train": {"a": [1, 2, 3], "b": [10, 20, None], "c": [100, 200, 300], "x": [1.5, nan, None]},
        "test": {"a": [4, 5], "b": [40, 50], "c": [400, 500], "x": [float("inf"), -2.0]},
    }
    for split, columns in parts.items():
        with rs.ShardWriter(folder / f"{split}-00000-of-00001.tfrecord") as writer:
            images = [bytes([255, number]) * 9 for number in columns["a"]]
            writer.write_columns(pa.table({"Image": images, **columns}))
    return rs.open(folder)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ('select sum(y) from (select * from data where c > 100) t("i", x, y)', [(70 + 40,)]),
        ("select sum(q.b) from data p(i, a, b) join data q on p.a = q.a", [(120,)]),
        ("select count(*) from (select a, b from data)", [(5,)]),
        ('select * exclude ("Image") from data where a = 3', [(3, None, 300, None)]),
        ("with t as (select a, b, c from data) select max(a) from t", [(5,)]),
        ("select count(*) from data", [(5,)]),
        ("select count(*) from data where x > 0", [(3,)]),
        ("select a from data where x > 1e9 order by a", [(2,), (4,)]),
        ("select a from data where x <= 'nan' order by a", [(1,), (2,), (4,), (5,)]),
        ("select a from data where x = 'nan' or b is null order by a", [(2,), (3,)]),
        ("select a from data where \"Image\" = '\\xFF\\x04'::blob", []),
        ("select a from data where \"Image\" > '\\xFF\\x04'::blob order by a", [(4,), (5,)]),
        ("select a, a from data where c = 200", [(2, 2)]),
        ("select p.a, q.a from data p, data q where p.b = q.c / 10 and p.x < 0", [(5, 5)]),
        ("select split, count(*), min(position) from records group by all order by 1",
         [("test", 2, 0), ("train", 3, 2)]),
        ("select position, a from records where split = 'train' order by 1 desc limit 1", [(4, 3)]),
        ('select columns(* exclude (file, "Image")) from records where a = 4',
         [("test", 0, 4, 40, 400, float("inf"))]),
        ("select column_name from (describe data)", [("Image",), ("a",), ("b",), ("c",), ("x",)]),
    ],
)  # fmt: skip
def test_directed_queries(rows: rs.Dataset, sql: str, expected: list[Any]) -> None:
    found = query(sql, rows)
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected


@pytest.mark.slow
def test_random_queries_match_those_of_a_file() -> None:
    different: list[str] = []
    outcomes = queries.compare(random.Random(7), 80, different.append)
    assert different == []
    assert outcomes["with rows"] > 40


def test_a_count_decodes_no_feature_and_a_filter_only_its_own(
    rows: rs.Dataset, columns_read: list[Any]
) -> None:
    for sql, columns in (
        ("select count(*) from data", []),
        ("select count(*) from data where c > 100", ["c"]),
        ("select a from data where c > 100", ["a", "c"]),
    ):
        columns_read.clear()
        query(sql, rows)
        assert [found for found in columns_read if found is not None] == [columns]


def test_a_table_in_a_connection_of_the_user(rows: rs.Dataset) -> None:
    with duckdb.connect() as connection:
        connection.register("r", table(rows))
        connection.register("located", table(rows.filter("a > 2"), location=True))
        assert connection.sql("select count(*), sum(b) from r where x > 0").fetchall() == [(3, 70)]
        joined = 'from located join r using (c) where r."Image" is not null order by 2'
        found = connection.sql(f"select file, position, r.a {joined}").fetchall()
    files = [str(shard.location) for shard in rows.shards]
    assert found == [(files[0], 0, 4), (files[0], 1, 5), (files[1], 2, 3)]
    filtered = table(rows).to_table(columns=["a"], filter=pa.dataset.field("c") > 300)
    assert filtered.to_pydict() == {"a": [4, 5]}
    for name in ("count_rows", "sort_by", "replace_schema", "join"):
        with raises(rs.OptionError, option="table"):
            getattr(table(rows), name)("a")
    with raises(rs.OptionError, option="dataset"):
        table("rows")  # type: ignore[arg-type]


def test_locations_get_out_of_the_way_of_features(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        writer.write_columns(pa.table({"Split": [7], "file": [8], "file_": [9]}))
    dataset = rs.open(tmp_path / "rows.tfrecord")
    found = query("select * from records", dataset).to_pylist()
    assert list(found[0]) == ["split_", "file__", "position", "Split", "file", "file_"]
    assert query("select * from data", dataset).to_pylist() == [{"Split": 7, "file": 8, "file_": 9}]


def test_types_are_restored_unless_the_stored_ones_are_requested(tmp_path: Path) -> None:
    given = pa.table({"at": pa.array([10**18 + 1], pa.timestamp("ns")), "d": [0.5]})
    rs.pack(rs.Table(given), tmp_path / "out")
    dataset = rs.open(tmp_path / "out")
    assert query("select * from data", dataset).schema.types == [pa.timestamp("ns"), pa.float64()]
    stored = query('select "at", d from data', dataset, restore_types=False)
    assert stored.schema.types == [pa.int64(), pa.float32()]


def test_duckdb_fetches_and_loads_no_extensions(rows: rs.Dataset) -> None:
    settings = [f"current_setting('auto{verb}_known_extensions')" for verb in ("install", "load")]
    found = query(f"select {', '.join(settings)}", rows)
    assert [column.to_pylist() for column in found.columns] == [[False], [False]]
    for source in ("'http://127.0.0.1:9/x.csv'", "sqlite_scan('a', 'b')"):
        with raises(rs.OptionError, option="sql"):
            query(f"select * from {source}", rows)


def test_damage_is_an_error_with_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write_columns(pa.table({"a": range(100)}))
    dataset = rs.open(path)
    assert dataset.schema.features
    data = bytearray(path.read_bytes())
    data[len(data) * 3 // 4] ^= 1
    path.write_bytes(data)
    with raises(rs.CorruptDataError, path=str(path)) as caught:
        query("select sum(a) from data where a > 3", dataset)
    assert caught.value.record is not None


def test_a_limit_ends_the_reading(rows: rs.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def batches(self: Any, columns: Any = None, **options: Any) -> Any:
        schema = pa.schema([(name, pa.int64()) for name in columns or ["a"]])

        def each() -> Iterator[Any]:
            for number in range(1000):
                made.append(number)
                yield pa.record_batch([pa.array([number] * 5000)] * len(schema), schema=schema)

        return pa.RecordBatchReader.from_batches(schema, each())

    monkeypatch.setattr(rs.Dataset, "to_arrow", batches)
    assert query("select a from data where a >= 3 limit 1", rows).to_pylist() == [{"a": 3}]
    assert len(made) < 500
