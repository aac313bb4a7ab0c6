"""Datasets as Dask DataFrames, which two worker processes read and write."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ...raising import raises
from ..connector_contract import Check, Connector, ConnectorContract, write_dataset

dask = pytest.importorskip("dask")
pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")

import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

from recordsmith.dask import read, write  # noqa: E402 - needs dask


class _Dask(Connector):
    def read(self, paths: Any, split: str | None = None, **options: Any) -> Any:
        frame = read(paths, split, part_bytes="4kB", **options)
        return pa.Table.from_pandas(frame.compute(), preserve_index=False).sort_by("id")

    def write(
        self, tables: Sequence[Any], out: Any, check: Check | None = None, **options: Any
    ) -> None:
        def passed(part: Any) -> Any:
            if check is not None:
                check(part["id"].tolist())
            return part

        frames = [table.to_pandas(types_mapper=pd.ArrowDtype) for table in tables]
        parts = dd.concat([dd.from_pandas(frame, npartitions=1) for frame in frames])
        write(parts.map_partitions(passed, meta=parts._meta), out, **options)

    def sent(self, path: str) -> bytes:
        return pickle.dumps(read(path))


@pytest.mark.usefixtures("client")
class TestDask(ConnectorContract):
    @pytest.fixture
    def connector(self) -> Connector:
        return _Dask()

    def test_partitions_have_arrow_types(self, folder: Path) -> None:
        sizes = [path.stat().st_size for path in folder.glob("*.tfrecord")]
        frame = read(folder, part_bytes="4kB")
        assert frame.npartitions == sum(-(-size // 4000) for size in sizes)
        assert read(folder, part_bytes="1MB").npartitions == 3
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
            "flag": "int64[pyarrow]",
            "id": "int64[pyarrow]",
            "many": "large_list<item: int64>[pyarrow]",
            "name": "string",
            "raw": "large_binary[pyarrow]",
            "score": "float[pyarrow]",
            "words": "large_list<item: large_string>[pyarrow]",
        }
        with raises(rs.OptionError, option="part_bytes"):
            read(folder, part_bytes="many")

    def test_a_changed_file_is_read_again(self, client: Any, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        with rs.ShardWriter(path) as writer:
            writer.write_columns({"id": range(30)})
        first = client.persist(read(path)["id"])
        assert first.sum().compute() == sum(range(30))
        with rs.ShardWriter(path, overwrite=True) as writer:
            writer.write_columns({"id": range(60)})
        assert read(path)["id"].sum().compute() == sum(range(60))
        assert first.sum().compute() == sum(range(30))


def test_only_needed_columns_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(tmp_path / "out")
    decoded: list[tuple[str, ...]] = []
    original = rs.Dataset.to_arrow

    def noted(dataset: rs.Dataset, columns: Any = None, **options: Any) -> Any:
        decoded.append(tuple(columns))
        return original(dataset, columns, **options)

    frame = read(tmp_path / "out")
    chosen = read(tmp_path / "out", columns=["raw", "id"])
    monkeypatch.setattr(rs.Dataset, "to_arrow", noted)
    with dask.config.set(scheduler="synchronous"):
        assert frame["id"].sum().compute() == sum(range(600))
        assert set(decoded) == {("id",)}
        decoded.clear()
        assert len(read(tmp_path / "out", columns=[])) == 600
        assert set(decoded) == {()}
        decoded.clear()
        assert list(chosen.compute().columns) == ["raw", "id"]
        assert set(decoded) == {("raw", "id")}


def test_a_manifest_needs_no_pass_over_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = pa.table({"id": [*range(100)], "gone": pa.nulls(100, pa.int32())})
    rs.pack(source, tmp_path / "out", shuffle=False)
    monkeypatch.setattr("recordsmith.dataset.view.SchemaSurvey", None)
    monkeypatch.setattr("recordsmith.dataset.shard.read_blocks", None)
    assert str(read(tmp_path / "out", part_bytes="1kB").dtypes["id"]) == "int64[pyarrow]"
    monkeypatch.undo()
    restored = read(tmp_path / "out", restore_types=True)
    with dask.config.set(scheduler="synchronous"):
        assert pa.Table.from_pandas(restored.compute()).to_pylist()[7] == {"id": 7, "gone": None}
        assert str(restored.dtypes["gone"]) == "int32[pyarrow]"


@pytest.mark.usefixtures("client")
def test_columns_of_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "int8": np.arange(4, dtype=np.int8),
        "float64": [0.5, 1.5, np.nan, 2.5],
        "bool": [True, False, True, True],
        "text": ["a", None, "ä", ""],
        "bytes": [b"\xff", b"", None, b"x"],
        "lists": [[1, 2], [], None, [3]],
        "arrays": [np.arange(2.0), np.zeros(0), np.ones(1), np.ones(3)],
        "nothing": [None] * 4,
        "kinds": pd.Categorical(["x", "y", "x", "x"]),
        "time": pd.to_datetime(["2024-01-01"] * 4).astype("datetime64[ms]"),
    })  # fmt: skip
    with_index = frame.set_index(pd.Index([3, 2, 1, 0], name="dropped"))
    out = tmp_path / "out"
    with dask.config.set({"dataframe.convert-string": False}):  # Dask takes bytes for text
        write(dd.from_pandas(with_index, npartitions=3, sort=False), out)
    assert [
        {key: values if key in ("bytes", "kinds", "text") else values.tolist()
         for key, values in sorted(record.items())}
        for record in rs.open(out)
    ] == [
        {"arrays": [0.0, 1.0], "bool": [1], "bytes": [b"\xff"], "float64": [0.5], "int8": [0],
         "kinds": [b"x"], "lists": [1, 2], "text": [b"a"], "time": [1704067200000]},
        {"arrays": [], "bool": [0], "bytes": [b""], "float64": [1.5], "int8": [1],
         "kinds": [b"y"], "lists": [], "time": [1704067200000]},
        {"arrays": [1.0], "bool": [1], "int8": [2],
         "kinds": [b"x"], "text": ["ä".encode()], "time": [1704067200000]},
        {"arrays": [1.0, 1.0, 1.0], "bool": [1], "bytes": [b"x"], "float64": [2.5], "int8": [3],
         "kinds": [b"x"], "lists": [3], "text": [b""], "time": [1704067200000]},
    ]  # fmt: skip


@pytest.mark.usefixtures("client")
def test_unsuitable_columns_are_named_before_any_is_computed(tmp_path: Path) -> None:
    struct = pd.ArrowDtype(pa.struct([("a", pa.int64())]))
    frame = dd.from_pandas(pd.DataFrame({"id": [1]}), npartitions=1)
    meta = frame._meta.assign(bad=pd.Series([], dtype=struct))
    with raises(rs.OptionError, option="columns", match="'bad'"):
        write(frame.map_partitions(lambda _: 1 / 0, meta=meta), tmp_path / "out")
    with raises(rs.OptionError, option="frame"):
        write(pd.DataFrame({"x": [1]}), tmp_path / "out")
    assert not (tmp_path / "out").exists()
