"""Readers of files that hold many samples, in a process that has not listed them."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.example import encode_example
from recordsmith.sources import Arrays, Rows, Sample, Shards, Source, Table, WebDataset, open_reader
from recordsmith.sources.files.files_reader import below_common_folder
from recordsmith.stores import as_location

from ..raising import raises
from .source_contract import touch


def _csv(folder: Path, images: ModuleType) -> Source:
    folder.joinpath("rows.csv").write_text("id,x,part\n1,a,train\n2,b,test\n3,c,\n4,d,train\n")
    return Table(folder / "rows.csv", split_column="part")


def _json(folder: Path, images: ModuleType) -> Source:
    with gzip.open(folder / "a.jsonl.gz", "wt") as file:
        file.write('{"x": 1}\n{"x": 2}\n')
    folder.joinpath("b.jsonl.gz").write_bytes(gzip.compress(b'{"x": 0.5, "y": [1]}\n'))
    return Table(folder)


def _images(folder: Path, images: ModuleType) -> Source:
    folder.joinpath("images").mkdir()
    for name in ("1.png", "2.PNG", "3.png"):
        folder.joinpath("images", name).write_bytes(images.encode(images.noise(5, 4), "PNG"))
    folder.joinpath("rows.csv").write_text("id,class\n1,a\n2,b\n3,a\n")
    return Table(folder, table="rows.csv", image_column="id", images="images", label_column="class")


def _tar(folder: Path, images: ModuleType) -> Source:
    folder.joinpath("x.cls").write_text("7")
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        archive.add(folder / "x.cls", "../x.cls")
        archive.add(folder / "x.cls", "y.cls")
    return WebDataset(folder / "a.tar.gz")


def _shards(folder: Path, images: ModuleType) -> Source:
    for name, compression in (("a.tfrecord", None), ("b.tfrecord", "gzip")):
        with rs.ShardWriter(folder / name, compression=compression) as writer:
            for number in range(3):
                writer.write(encode_example({"x": number}))
    return Shards(folder)


def _arrays(folder: Path, images: ModuleType) -> Source:
    pixels = np.arange(4 * 8 * 8, dtype=np.uint8).reshape(4, 8, 8)
    np.savez_compressed(folder / "a.npz", images=pixels, labels=np.arange(4), ids=np.arange(4.0))
    return Arrays(folder)


_SOURCES = [_arrays, _csv, _json, _images, _tar, _shards]


@pytest.fixture(params=_SOURCES, ids=lambda make: make.__name__[1:])
def source(request: Any, tmp_path: Path, images: ModuleType) -> Source:
    make: Callable[[Path, ModuleType], Source] = request.param
    (tmp_path / "given").mkdir()
    return make(tmp_path / "given", images)


def _payload(reader: Any, sample: Sample) -> bytes:
    content = reader.read(sample)
    return content if isinstance(content, bytes) else encode_example(content, reader.kinds())


def test_files_are_opened_once_also_by_many_threads(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = source.list_samples()
    reader: Any = open_reader(listing.reader.to_json())
    opened = []
    real = type(reader)._open
    monkeypatch.setattr(
        type(reader), "_open", lambda self, name: opened.append(name) or real(self, name)
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(reader.read, [listing.samples[0]] * 40))
    assert len(opened) == 1


def test_files_that_changed_since_they_were_listed_are_refused(
    source: Source, tmp_path: Path
) -> None:
    listing = source.list_samples()
    reader = open_reader(listing.reader.to_json())
    for file in (tmp_path / "given").iterdir():
        if file.is_file():
            touch(file)
    with raises(rs.SourceError, match="changed") as caught:
        reader.read(listing.samples[0])
    assert caught.value.path.startswith(str(tmp_path / "given"))


@pytest.mark.parametrize(
    "reference", [None, {}, {"file": "missing", "row": 0}, {"row": 0}, {"file": "../x", "row": 0}]
)
def test_references_from_elsewhere_are_refused(source: Source, reference: Any) -> None:
    reader = source.list_samples().reader
    with raises(rs.OptionError, option="sample", value="x"):
        reader.read(Sample("x", 1, reference=reference))


@pytest.mark.parametrize("row", [-1, 4, 10**9, "0", None])
def test_rows_that_do_not_exist_are_refused(tmp_path: Path, images: ModuleType, row: Any) -> None:
    reader = _csv(tmp_path, images).list_samples().reader
    with raises(rs.OptionError, option="sample", value="x"):
        reader.read(Sample("x", 1, reference={"file": "rows.csv", "row": row}))


def test_rows_of_this_process_cannot_be_read_elsewhere() -> None:
    listing = Rows([{"x": 1}]).list_samples()
    with raises(rs.OptionError, match="only in this process"):
        listing.reader.to_json()


def test_the_common_folder(tmp_path: Path) -> None:
    places = [as_location(tmp_path / name) for name in ("a/b/c.csv", "a/d.csv")]
    folder, names = below_common_folder(places)
    assert names == ["b/c.csv", "d.csv"]
    assert str(folder) == str(tmp_path / "a")
    assert [str(folder / name) for name in names] == list(map(str, places))
