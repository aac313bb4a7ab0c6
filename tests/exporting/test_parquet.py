from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..raising import raises
from ..repeating_engine import RepeatingEngine


@pytest.fixture
def parquet() -> Any:
    return pytest.importorskip("pyarrow.parquet")


def test_columns_are_typed_by_the_schema(
    write: Any, image: Any, tmp_path: Path, parquet: Any
) -> None:
    import pyarrow as pa

    examples = [
        image(
            "a.jpg",
            more={"score": 0.1, "many": [1, 2], "one": [1], "words": ["ö"], "gap": 5, "e": []},
        ),
        image(
            "b.jpg",
            seed=1,
            more={"score": 7.0, "many": [], "one": [], "words": ["a", "b"], "e": []},
        ),
    ]
    rs.export(
        write({"many": "int64", "one": "int64"}, train=examples, val=examples[1:]),
        tmp_path / "out",
        "parquet",
    )
    found = parquet.read_table(tmp_path / "out" / "train.parquet")
    types = {field.name: field.type for field in found.schema}
    assert types["image/encoded"] == pa.large_binary()
    assert types["image/height"] == pa.int64()
    assert types["score"] == pa.float32()
    assert types["many"] == pa.large_list(pa.int64())
    assert types["words"] == pa.large_list(pa.large_string())
    assert types["gap"] == pa.int64()
    rows = found.to_pylist()
    assert [row["image/encoded"] for row in rows] == [e["image/encoded"] for e in examples]
    assert [row["image/filename"] for row in rows] == ["a.jpg", "b.jpg"]
    assert [np.float32(row["score"]) for row in rows] == [np.float32(0.1), 7]
    assert [row["many"] for row in rows] == [[1, 2], []]
    assert [row["words"] for row in rows] == [["ö"], ["a", "b"]]
    assert [row["one"] for row in rows] == [[1], []]
    assert [row["gap"] for row in rows] == [5, None]
    assert parquet.read_table(tmp_path / "out" / "val.parquet").num_rows == 1


def test_rows_are_written_in_groups(
    tmp_path: Path, parquet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recordsmith.exporting.formats import parquet as module

    monkeypatch.setattr(module, "_GROUP_ROWS", 4)
    monkeypatch.setattr(module, "_GROUP_BYTES", 1000)
    sizes = [1, 1, 1, 1, 1, 600, 600, 1, 1]
    for n, size in enumerate(sizes):  # each shard is read at once
        with rs.ShardWriter(tmp_path / f"train-{n:05d}-of-00009.tfrecord") as writer:
            writer.write_example({"n": n, "data": bytes(size)})
    rs.export(tmp_path, tmp_path / "out", "parquet")
    found = parquet.ParquetFile(tmp_path / "out" / "train.parquet")
    groups = [found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)]
    assert groups == [4, 3, 2]
    assert found.read().column("n").to_pylist() == list(range(9))


def test_values_of_several_kinds(write: Any, tmp_path: Path, parquet: Any) -> None:
    with raises(rs.OptionError, option="format", value="parquet", match="'x' has different kinds"):
        rs.export(write(train=[{"x": 1}, {"x": "a"}]), tmp_path / "out", "parquet")


@pytest.mark.parametrize("format", ["parquet", "feather", "huggingface"])
def test_records_without_features(write: Any, tmp_path: Path, format: str) -> None:
    with pytest.raises(rs.OptionError, match="no features"):
        rs.export(write(train=[{}, {}]), tmp_path / "out", format)
    assert not (tmp_path / "out").exists()


def test_without_pyarrow_the_error_names_the_extra(write: Any, tmp_path: Path) -> None:
    source = write(train=[{"x": 1}])
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import recordsmith as rs\n"
        "for name in ('csv', 'parquet', 'feather', 'huggingface'):\n"
        f"    try: rs.export({str(source)!r}, {str(tmp_path / 'out')!r}, name)\n"
        "    except rs.MissingExtraError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.count("pip install 'recordsmith[arrow]'") == 4
    assert not (tmp_path / "out").exists()


def _readers() -> dict[str, Any]:
    """Functions that read a Parquet file as a list of rows, by the name of their package."""

    def by_datasets(path: Path) -> Any:
        datasets = pytest.importorskip("datasets")
        cache = str(path.parent / "cache")
        return list(datasets.Dataset.from_parquet(str(path), cache_dir=cache))

    def by_duckdb(path: Path) -> Any:
        found = pytest.importorskip("duckdb").read_parquet(str(path))
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def by_pandas(path: Path) -> Any:
        import pyarrow as pa

        frame = pytest.importorskip("pandas").read_parquet(path, dtype_backend="pyarrow")
        return pa.Table.from_pandas(frame).to_pylist()

    return {
        "pyarrow": lambda path: pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist(),
        "pandas": by_pandas,
        "polars": lambda path: pytest.importorskip("polars").read_parquet(path).to_dicts(),
        "duckdb": by_duckdb,
        "datasets": by_datasets,
    }


@pytest.mark.parametrize("reader", ["pyarrow", "pandas", "polars", "duckdb", "datasets"])
@pytest.mark.parametrize("format", ["parquet", "huggingface"])
def test_every_library_reads_lists_that_are_all_empty(
    write: Any, tmp_path: Path, format: str, reader: str
) -> None:
    rows = [{"empty": [], "n": 1}, {"empty": [], "n": 2}, {"n": 3}]
    rs.export(write({"empty": "int64"}, train=rows), tmp_path / "out", format)
    found = _readers()[reader](tmp_path / "out" / "train.parquet")
    assert [row["empty"] for row in found] == [[], [], None]
    assert [row["n"] for row in found] == [1, 2, 3]


@pytest.mark.parametrize("format", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("engine", [None, RepeatingEngine()])
def test_exports_have_the_types_of_the_table(
    tmp_path: Path, parquet: Any, format: str, engine: Any
) -> None:
    import pyarrow as pa
    from pyarrow import csv, feather

    table = pa.table(
        {
            "when": pa.array([1_000_000, None, 3], pa.timestamp("us")),
            "day": pa.array([1, 2, None], pa.date32()),
            "whole": pa.array([123456790528.0, 0.5, 3.0], pa.float64()),
            "yes": [True, None, False],
            "word": pa.array(["a", "b, c", "a"]).dictionary_encode(),
        }
    )
    rs.pack(rs.Table(table), tmp_path / "out", shuffle=False)
    rs.export(tmp_path / "out", tmp_path / "typed", format, engine=engine)
    rs.export(tmp_path / "out", tmp_path / "stored", format, restore_types=False, engine=engine)
    reads = {"parquet": parquet.read_table, "feather": feather.read_table, "csv": csv.read_csv}
    found, stored = (
        reads[format](next((tmp_path / name).glob(f"*.{format}"))).select(table.schema.names)
        for name in ("typed", "stored")
    )
    if format == "csv":  # its reader finds other units of time
        assert [str(t).partition("[")[0] for t in found.schema.types] == [
            *("timestamp", "date32", "double", "bool", "string")
        ]
        found = found.cast(
            pa.schema(
                [field for field in table.schema if field.name != "word"]
                + [pa.field("word", pa.string())]
            )
        )
    assert found.to_pylist() == table.to_pylist()
    if format == "parquet":
        assert found.schema.types == table.schema.types
    assert stored["when"].to_pylist() == [1_000_000, None, 3]
    assert stored["yes"].to_pylist() == [1, None, 0]


def test_types_that_are_not_there_or_not_possible(write: Any, tmp_path: Path) -> None:
    records = write(train=[{"x": 1}])
    with raises(rs.OptionError, option="restore_types", value=True):
        rs.export(records, tmp_path / "out", "csv", restore_types=True)
    with raises(rs.OptionError, option="restore_types", value=False):
        rs.export(records, tmp_path / "out", "webdataset", restore_types=False)
