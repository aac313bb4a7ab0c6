"""Tables of any format and library: the same rows give the same records."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract
from .stored import stored_lists

pa = pytest.importorskip("pyarrow")
pq = importlib.import_module("pyarrow.parquet")

_COUNT = 20_000


def _table() -> Any:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(_COUNT),
            "price": rng.integers(0, 10**6, _COUNT) / 64,
            "city": [f'city "{n}",\n{n % 7}' for n in rng.integers(0, 50, _COUNT)],
            "class": [f"c{n}" for n in rng.integers(0, 4, _COUNT)],
        }
    )


def _write_csv(path: Path) -> Path:
    importlib.import_module("pyarrow.csv").write_csv(_table(), path)
    return path


def _write_json(path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in _table().to_pylist()))
    return path


def _write_parquet(path: Path) -> Path:
    pq.write_table(_table(), path, row_group_size=3000)
    return path


def _write_feather(path: Path) -> Path:
    with pa.ipc.new_file(str(path), _table().schema) as writer:
        writer.write_table(_table(), max_chunksize=700)
    return path


def _write_stream(path: Path) -> Path:
    with pa.ipc.new_stream(str(path), _table().schema) as writer:
        writer.write_table(_table(), max_chunksize=700)
    return path


def _duckdb(folder: Path) -> Any:
    pytest.importorskip("duckdb")
    _write_parquet(folder / "given.parquet")
    duckdb: Any = importlib.import_module("duckdb")
    return duckdb.connect().sql(f"select * from '{folder / 'given.parquet'}'")


_FORMATS: dict[str, Callable[[Path], Any]] = {
    "csv": lambda folder: _write_csv(folder / "t.csv"),
    "json": lambda folder: _write_json(folder / "other.jsonl"),
    "feather": lambda folder: _write_feather(folder / "t.feather"),
    "stream": lambda folder: _write_stream(folder / "t.arrows"),
    "pyarrow": lambda _: _table(),
    "reader": lambda _: _table().to_reader(max_chunksize=999),
    "pandas": lambda _: pytest.importorskip("pandas") and _table().to_pandas(),
    "polars": lambda _: pytest.importorskip("polars").from_arrow(_table()),
    "duckdb": _duckdb,
}


@pytest.mark.parametrize("name", _FORMATS)
def test_the_same_rows_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    def pack(table: Any, out: Path) -> Any:
        return rs.pack(
            rs.Table(table, label_column="class"),
            out,
            splits={"train": 0.9, "test": 0.1},
            shards={"train": 3, "test": 1},
        )

    expected = pack(_write_parquet(tmp_path / "rows.parquet"), tmp_path / "expected")
    found = pack(_FORMATS[name](tmp_path), tmp_path / name)
    assert (found.sample_count, found.class_count) == (expected.sample_count, 4)
    for shard in rs.open(tmp_path / "expected").shards:
        assert (tmp_path / name / shard.location.name).read_bytes() == shard.location.read()
    columns = rs.open(tmp_path / name).read_columns()
    order = np.argsort(columns["id"])
    table = _table()
    assert np.array_equal(np.asarray(columns["price"])[order], table["price"].to_numpy())
    cities = [columns["city"][int(at)].decode() for at in order[:500]]
    assert cities == table["city"].to_pylist()[:500]


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> rs.Source:  # noqa: ARG002
        folder.mkdir()
        _write_feather(folder / "t.feather")
        table = _table().slice(0, 50)
        with pa.ipc.new_file(str(folder / "t.feather"), table.schema) as writer:
            writer.write_table(table)
        return rs.Table(folder / "t.feather", label_column="class", group_column="city")


def test_a_stream_that_fails_leaves_no_output(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield from _table().to_batches(max_chunksize=1000)
        raise OSError("the connection was lost")

    reader = pa.RecordBatchReader.from_batches(_table().schema, batches())
    with raises(rs.SourceError, match="from 20000: .*the connection was lost$"):
        rs.pack(rs.Table(reader), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_stream_is_read_once(tmp_path: Path) -> None:
    source = rs.Table(_table().to_reader())
    first = source.list_samples()
    assert source.list_samples() is first
    plan = rs.plan(source, tmp_path / "out", shards=2)
    assert rs.finish(plan, map(rs.run, plan.tasks())).sample_count == _COUNT


def _images(images: ModuleType, count: int) -> list[dict[str, Any]]:
    return [
        {"bytes": images.encode(images.noise(6 + n, 5), "PNG"), "path": f"/data/deep/{n}.png"}
        for n in range(count)
    ]


def _huggingface(path: Path, images: ModuleType, **columns: Any) -> Path:
    """A file as `datasets` writes it: see `_HF_FEATURES` for its metadata."""
    features = {
        "image": {"_type": "Image"},
        "label": {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"},
        "caption": {"dtype": "string", "_type": "Value"},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table(
        {
            "image": pa.array(_images(images, 4), image),
            "label": pa.array([2, 0, -1, 1], pa.int64()),
            "caption": list("abcd"),
        }
        | columns
    )
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_images_and_class_names_of_hugging_face(tmp_path: Path, images: ModuleType) -> None:
    source = rs.Table(_huggingface(tmp_path / "t.parquet", images))
    listing = source.list_samples()
    assert listing.class_names == ("ant", "bee", "cat")
    assert [sample.label for sample in listing.samples] == [2, 0, None, 1]
    given = _images(images, 4)
    rows = [stored_lists(source, sample) for sample in listing.samples]
    assert rows[1] == {
        "image/encoded": [given[1]["bytes"]],
        "image/filename": [b"1.png"],
        "image/format": [b"png"],
        "image/height": [5],
        "image/width": [7],
        "image/class/label": [0],
        "image/class/text": [b"ant"],
        "caption": [b"b"],
    }
    assert "image/class/label" not in rows[2]
    rs.pack(source, tmp_path / "out")
    assert not rs.verify(tmp_path / "out", deep=True).defects
    batch = next(
        iter(rs.Loader(rs.open(tmp_path / "out"), {"image": rs.Image(size=4)}, batch_size=4))
    )
    assert batch["image"].shape == (4, 4, 4, 3)


def test_images_that_are_missing_or_damaged_cost_their_rows(
    tmp_path: Path, images: ModuleType
) -> None:
    given = _images(images, 4)
    given[0]["bytes"], given[1]["bytes"], given[3]["path"] = None, b"words", None
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    path = _huggingface(tmp_path / "t.parquet", images, image=pa.array(given, image))
    source = rs.Table(path)
    samples = source.list_samples().samples
    with raises(rs.SourceError, sample=f"{path}, row 0", match="'image' has no bytes"):
        read_sample(source, samples[0])
    with raises(rs.CorruptDataError, defect=rs.Defect.UNREADABLE_IMAGE, path=f"{path}, row 1"):
        read_sample(source, samples[1])
    assert "image/filename" not in stored_lists(source, samples[3])
    report = rs.pack(rs.Table(path), tmp_path / "out", skip_errors=True)
    assert (report.sample_count, report.skipped_count) == (2, 2)


def test_images_that_are_only_paths(tmp_path: Path, images: ModuleType) -> None:
    """As `datasets` writes what it has loaded from a folder of images."""
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    for name in ("deep/0.png", "1.png"):
        (folder / name).write_bytes(images.encode(images.noise(6, 5), "PNG"))
    (tmp_path / "secret.png").write_bytes(images.encode(images.noise(6, 5), "PNG"))
    paths = [folder / "deep" / "0.png", "1.png", tmp_path / "secret.png", "../secret.png"]
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    given = pa.array([{"bytes": None, "path": str(path)} for path in paths], image)
    path = _huggingface(tmp_path / "t.parquet", images, image=given)
    source = rs.Table(path, image_column="image", images=folder)
    samples = source.list_samples().samples
    found = [stored_lists(source, sample) for sample in samples[:2]]
    assert [row["image/filename"] for row in found] == [[b"deep/0.png"], [b"1.png"]]
    assert found[0]["image/encoded"] == [(folder / "deep" / "0.png").read_bytes()]
    assert found[0]["image/class/text"] == [b"cat"]
    for number in (2, 3):  # not in the folder
        with raises(rs.SourceError, sample=f"{path}, row {number}"):
            read_sample(source, samples[number])
    with raises(rs.SourceError, sample=f"{path}, row 0", match="has no bytes"):
        read_sample(rs.Table(path), samples[0])


def test_several_columns_of_images_and_labels_beyond_the_names(
    tmp_path: Path, images: ModuleType
) -> None:
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    path = _huggingface(tmp_path / "t.parquet", images, mask=pa.array(_images(images, 4), image))
    with raises(rs.SourceError, path=path, match="image, mask"):
        rs.Table(path).list_samples()
    path = _huggingface(tmp_path / "t.parquet", images, label=[0, 1, 2, 3])
    with raises(rs.SourceError, path=path, match="has 3"):
        rs.Table(path).list_samples()


def test_gzip_and_memory_streams(tmp_path: Path) -> None:
    """What `pyarrow` writes compressed is read like any other file."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, _table().schema, options=options) as writer:
        writer.write_table(_table())
    (tmp_path / "t.arrow").write_bytes(sink.getvalue())
    assert rs.pack(rs.Table(tmp_path / "t.arrow"), tmp_path / "out").sample_count == _COUNT
