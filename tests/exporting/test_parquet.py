from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..raising import raises


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
    from recordsmith.exporting import arrow_tables

    monkeypatch.setattr(arrow_tables, "_GROUP_ROWS", 4)
    monkeypatch.setattr(arrow_tables, "_GROUP_BYTES", 1000)
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


@pytest.mark.parametrize("format", ["csv", "parquet", "feather", "huggingface"])
def test_without_pyarrow_the_error_names_the_extra(write: Any, tmp_path: Path, format: str) -> None:
    source = write(train=[{"x": 1}])
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import recordsmith as rs\n"
        f"try: rs.export({str(source)!r}, {str(tmp_path / 'out')!r}, {format!r})\n"
        "except rs.MissingExtraError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install '.[arrow]'" in result.stdout
    assert not (tmp_path / "out").exists()


def test_feather_has_the_columns_of_parquet(write: Any, tmp_path: Path, parquet: Any) -> None:
    feather = pytest.importorskip("pyarrow.feather")
    source = write(train=[{"x": n, "t": f"n {n}", "r": list(range(n))} for n in range(9)])
    for name in ("parquet", "feather"):
        rs.export(source, tmp_path / name, name)
    found = feather.read_table(tmp_path / "feather" / "train.feather")
    assert found.equals(parquet.read_table(tmp_path / "parquet" / "train.parquet"))
    assert found["r"].to_pylist() == [list(range(n)) for n in range(9)]


def test_sequences_are_exported(tmp_path: Path, parquet: Any) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(rs.encode_sequence_example({"id": 1}, {"steps": [[1], [2, 3]]}))
    rs.export(tmp_path / "a.tfrecord", tmp_path / "out", "parquet")
    (file,) = (tmp_path / "out").glob("*.parquet")
    assert parquet.read_table(file).to_pylist() == [{"id": 1, "steps": [[1], [2, 3]]}]
