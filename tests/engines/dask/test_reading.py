"""Datasets as Dask DataFrames, on two worker processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.errors import Defect

from ...raising import raises
from ..zoo_tables import check_file
from .conftest import COUNT, write_examples

dask = pytest.importorskip("dask")
pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")

from recordsmith.dask import read  # noqa: E402 - needs dask


def rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a computed frame; None where a value is missing."""
    return table(frame).to_pylist()  # type: ignore[no-any-return]


def table(frame: Any) -> Any:
    return pa.Table.from_pandas(frame.compute(), preserve_index=False)


def expected(dataset: rs.Dataset, *columns: str) -> list[dict[str, Any]]:
    """The same by pyarrow alone."""
    return dataset.to_arrow(columns or None).read_all().to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("part_bytes", ["4kB", "1MB"])
def test_a_frame_has_the_rows_of_the_dataset(client: Any, folder: Path, part_bytes: str) -> None:
    frame = read(folder, part_bytes=part_bytes)
    sizes = [path.stat().st_size for path in folder.glob("*.tfrecord")]
    assert (
        frame.npartitions == sum(-(-size // 4000) for size in sizes) if part_bytes == "4kB" else 3
    )
    assert rows(frame) == expected(rs.open(folder))
    assert {name: str(dtype) for name, dtype in frame.dtypes.items() if name != "name"} == {
        "id": "int64[pyarrow]",
        "label": "int64[pyarrow]",
        "many": "large_list<item: int64>[pyarrow]",
        "pair": "fixed_size_list<item: float>[2][pyarrow]",
        "raw": "large_binary[pyarrow]",
        "words": "large_list<item: large_string>[pyarrow]",
    }


def test_only_needed_columns_are_decoded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[tuple[str, ...]] = []
    original = rs.Dataset.to_arrow

    def noted(dataset: rs.Dataset, columns: Any = None, **options: Any) -> Any:
        decoded.append(tuple(columns))
        return original(dataset, columns, **options)

    frame = read(folder)
    monkeypatch.setattr(rs.Dataset, "to_arrow", noted)
    with dask.config.set(scheduler="synchronous"):
        total = frame["label"].sum().compute()
        assert set(decoded) == {("label",)}
        decoded.clear()
        assert len(read(folder, columns=[])) == COUNT
        assert set(decoded) == {()}
        chosen = read(folder, columns=["raw", "id"])
        decoded.clear()
        assert list(chosen.compute().columns) == ["raw", "id"]
        assert set(decoded) == {("raw", "id")}
    assert total == sum(row["label"] or 0 for row in expected(rs.open(folder), "label"))


def test_a_manifest_needs_no_pass_over_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = pa.table({"id": [*range(100)], "gone": pa.nulls(100, pa.int32())})
    rs.pack(source, tmp_path / "out", shuffle=False)
    monkeypatch.setattr("recordsmith.dataset.view.SchemaSurvey", None)
    monkeypatch.setattr("recordsmith.dataset.shard.read_blocks", None)
    frame = read(tmp_path / "out", part_bytes="1kB")
    assert str(frame.dtypes["id"]) == "int64[pyarrow]"
    monkeypatch.undo()
    restored = read(tmp_path / "out", restore_types=True)
    with dask.config.set(scheduler="synchronous"):
        assert rows(restored)[7] == {"id": 7, "gone": None}
        assert str(restored.dtypes["gone"]) == "int32[pyarrow]"
        assert table(restored[["gone"]]).schema.field("gone").type == pa.int32()


def test_a_changed_file_is_read_again(client: Any, tmp_path: Path) -> None:
    write_examples(tmp_path, count=30)
    first = client.persist(read(tmp_path)["id"])
    assert first.sum().compute() == sum(range(30))
    for path in tmp_path.glob("*.tfrecord"):
        path.unlink()
    write_examples(tmp_path, count=60)
    assert read(tmp_path)["id"].sum().compute() == sum(range(60))
    assert first.sum().compute() == sum(range(30))


def test_a_lost_worker_is_replaced(
    client: Any, folder: Path, kill_a_worker: Callable[[str], Callable[[], bool]]
) -> None:
    was_killed = kill_a_worker("recordsmith.arrow:ArrowDecoder.finish")
    assert rows(read(folder, part_bytes="4kB")) == expected(rs.open(folder))
    assert was_killed()


def test_from_s3_with_the_credentials_of_the_workers(
    client: Any, s3_workers: str, folder: Path
) -> None:
    for path in folder.glob("*.tfrecord"):
        (rs.remote(s3_workers) / f"in/{path.name}").put(path.read_bytes())
    frame = read(f"{s3_workers}/in", part_bytes="4kB", filter="id >= 100")
    assert b"secret" not in pickle.dumps(frame).lower()
    assert rows(frame) == expected(rs.open(folder))[100:]


def test_damage_is_named_with_its_place(client: Any, tmp_path: Path) -> None:
    write_examples(tmp_path, count=30)
    frame = read(tmp_path)
    path = tmp_path / "train-00001-of-00003.tfrecord"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1  # of the last record
    path.write_bytes(data)
    with raises(rs.CorruptDataError, path=path, record=9, defect=Defect.PAYLOAD_CRC):
        frame.compute()


def test_bad_options(folder: Path) -> None:
    for options, name in [
        ({"columns": ["none"]}, "columns"),
        ({"filter": "labl == 3"}, "where"),
        ({"filter": "label =="}, "where"),
        ({"part_bytes": "many"}, "part_bytes"),
        ({"restore_types": True}, "restore_types"),
    ]:
        with raises(rs.OptionError, option=name):
            read(folder, **options)
    for split, options, name in [
        ("missing", {}, "split"),
        (None, {"store_options": {}}, "store_options"),
    ]:
        with raises(rs.OptionError, option=name):
            read(rs.open(folder), split, **options)
    with raises(rs.OptionError, option="dataset"):
        read(rs.open(folder).shuffle(1))


def test_zoo(zoo: Path, zoo_row: dict[str, Any]) -> None:
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        check_file(zoo_row, lambda: table(read(zoo / zoo_row["file"], part_bytes="100kB")))
