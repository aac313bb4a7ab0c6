"""Tables of any format and library: the same rows give the same records."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources.tables.precision import LOST_DIGITS

from ..raising import raises
from ..reading import read_sample
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


_ROWS: list[dict[str, Any]] = [
    {"x": 1, "part": "val", "who": 7, "y": "cat"},
    {"x": 2, "part": "train", "who": None, "y": "ant"},
    {"x": 3, "part": "train", "who": 7, "y": None},
    {"x": 4, "part": None, "who": 8, "y": "cat"},
]


def _as_csv(path: Path, rows: list[dict[str, Any]]) -> Any:
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    path.write_text("".join(",".join(line) + "\n" for line in [[*rows[0]], *cells]))
    return path


def _as_json(path: Path, rows: list[dict[str, Any]]) -> Any:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _as_parquet(path: Path, rows: list[dict[str, Any]]) -> Any:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


_WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], Any]] = {
    "csv": _as_csv,
    "jsonl": _as_json,
    "parquet": _as_parquet,
    "stream": lambda _, rows: pa.Table.from_pylist(rows),
    "rows": lambda _, rows: rows,
}
_FIRST_NUMBER = {"csv": 2, "jsonl": 1}


def _source(name: str, folder: Path, rows: list[dict[str, Any]], **options: Any) -> rs.Source:
    given = _WRITERS[name](folder / f"t.{name}", rows)
    if name == "rows":
        return rs.Rows(given, **{key.removesuffix("_column"): v for key, v in options.items()})
    return rs.Table(given, **options)


def _place(name: str, row: int) -> str:
    """What ends the place of a row in messages."""
    unit = "line" if name in _FIRST_NUMBER else "row"
    return f"{unit} {_FIRST_NUMBER.get(name, 0) + row}"


@pytest.mark.parametrize("name", _WRITERS)
def test_split_group_and_label(tmp_path: Path, name: str) -> None:
    columns = {"split_column": "part", "group_column": "who", "label_column": "y"}
    source = _source(name, tmp_path, _ROWS, **columns)
    listing = source.list_samples()
    assert (listing.splits, listing.class_names) == (("train", "val"), ("ant", "cat"))
    assert [(s.split, s.group, s.label) for s in listing.samples[:3]] == [
        ("val", "7", 1),
        ("train", None, 0),
        ("train", "7", None),
    ]
    assert any(re.match(r"[12] rows? .*'y'$", notice) for notice in listing.notices)
    row = stored_lists(source, listing.samples[0])  # they stay features
    assert row == {"x": [1], "part": [b"val"], "who": [7], "y": [b"cat"]}
    with pytest.raises(rs.SourceError, match=rf"{_place(name, 3)}.*'part'"):
        read_sample(source, listing.samples[3])


@pytest.mark.parametrize("name", _WRITERS)
@pytest.mark.parametrize("option", ["split_column", "group_column", "label_column", "image_column"])
def test_columns_that_are_missing_or_empty(tmp_path: Path, name: str, option: str) -> None:
    if name == "rows":
        with pytest.raises(rs.SourceError, match=r"no row .* 'z'"):
            _source(name, tmp_path, _ROWS, label_column="z").list_samples()
        return
    with raises(rs.OptionError, option=option, value="z", expected="one of x, part, who, y"):
        _source(name, tmp_path, _ROWS, **{option: "z"}).list_samples()
    if option in ("split_column", "label_column"):
        empty = [{"x": 1, "y": None}, {"x": 2, "y": None}]
        with pytest.raises(rs.RecordsmithError, match="'y'"):
            _source(name, tmp_path, empty, **{option: "y"}).list_samples()


@pytest.mark.parametrize("name", _WRITERS)
@pytest.mark.parametrize(
    ("values", "labels", "names"),
    [
        ([2, 0, 2], [2, 0, 2], ("0", None, "2")),
        ([10, 9, -1], [2, 1, 0], ("-1", "9", "10")),
        (["010", "2x", "010"], [0, 1, 0], ("010", "2x")),
    ],
)
def test_labels(tmp_path: Path, name: str, values: Any, labels: Any, names: Any) -> None:
    listing = _source(
        name, tmp_path, [{"y": value, "x": 1} for value in values], label_column="y"
    ).list_samples()
    assert [sample.label for sample in listing.samples] == labels
    assert listing.class_names == names


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet", "stream"])
def test_regression_targets_are_no_labels(tmp_path: Path, name: str) -> None:
    source = _source(name, tmp_path, [{"y": 0.5}, {"y": 1.5}], label_column="y")
    with pytest.raises(rs.SourceError, match=r"'y' has floats|'y' cannot name"):
        source.list_samples()


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet", "stream"])
@pytest.mark.parametrize("number", [16777217, 9007199254740993, -123456789012345678, 16777217.0])
def test_numbers_that_lose_digits_are_noted(tmp_path: Path, name: str, number: Any) -> None:
    rows = [{"x": 0.5}, {"x": number}, {"x": 33554432.0}]
    if name in ("parquet", "stream") and type(number) is int:
        rows = [{"x": 1}, {"x": number}]
    notices = _source(name, tmp_path, rows, kinds={"x": "float"}).list_samples().notices
    (notice,) = (notice for notice in notices if LOST_DIGITS in notice)
    assert notice == f"1 {LOST_DIGITS}: column 'x', such as {float(number):.17g}"


def test_a_stream_that_fails_leaves_no_output(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        yield from _table().to_batches(max_chunksize=1000)
        raise OSError("the connection was lost")

    reader = pa.RecordBatchReader.from_batches(_table().schema, batches())
    with raises(rs.SourceError, match="from 20000: .*the connection was lost$"):
        rs.pack(rs.Table(reader), tmp_path / "out")
    assert not (tmp_path / "out").exists()


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
    source = rs.Table(path)
    row = stored_lists(source, source.list_samples().samples[1])
    assert row["mask"] == row["image/encoded"] == [_images(images, 4)[1]["bytes"]]
    path = _huggingface(tmp_path / "t.parquet", images, label=[0, 1, 2, 3])
    with raises(rs.SourceError, path=path, match="has 3"):
        rs.Table(path).list_samples()
