"""Existing TFRecord files as a source: the same payloads, the same splits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.format.example import encode_example
from recordsmith.sources import Rows, Shards, Source

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract

SPLITS = {"train": 0.5, "test": 0.5}


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        rs.pack(Rows({"x": n, "t": "é" * n} for n in range(20)), folder, splits=SPLITS, shards=2)
        return Shards(folder)


def _write(path: Path, payloads: list[bytes], compression: str | None = None) -> Path:
    with rs.ShardWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    return path


def _payloads(source: Shards) -> list[bytes]:
    return [read_sample(source, sample) for sample in source.list_samples().samples]


def test_payloads_pass_through_untouched(tmp_path: Path) -> None:
    payloads = [b"", b"no example", encode_example({"x": 1}), b"\xff" * 3_000_000, b"last"]
    path = _write(tmp_path / "data.tfrecord", payloads)
    source = Shards(path)
    assert _payloads(source) == payloads
    samples = source.list_samples().samples
    assert [sample.size_bytes for sample in samples] == list(map(len, payloads))
    assert [s.name for s in samples] == [f"data.tfrecord/{n:07d}" for n in range(len(payloads))]
    assert source.root is None


def test_repacked_with_other_options(tmp_path: Path, images: ModuleType) -> None:
    folder = images.make_folder(tmp_path / "images", {"a": 7, "b": 5})
    rs.pack(rs.ImageFolder(folder), tmp_path / "one", splits=SPLITS, shards=2)
    source = Shards(tmp_path / "one")
    listing = source.list_samples()
    assert listing.class_names == ("a", "b")
    assert listing.splits == ("train", "test")
    assert {sample.label for sample in listing.samples} == {None}
    counts = [sum(s.split == name for s in listing.samples) for name in listing.splits]
    assert counts == [len(rs.open(tmp_path / "one", split=name)) for name in listing.splits]
    rs.pack(source, tmp_path / "two", shards=1)
    assert sorted(rs.open(tmp_path / "two").records()) == sorted(
        rs.open(tmp_path / "one").records()
    )
    assert rs.open(tmp_path / "two").class_names == ("a", "b")
    with raises(rs.OptionError, option="out", value=tmp_path / "one", match="source folder"):
        rs.pack(source, tmp_path / "one", overwrite=True)


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train.tfrecord", "test.tfrecord"], ("test", "train")),
        (["a-00000-of-00001.tfrecord", "b-00000-of-00001.tfrecord"], ("a", "b")),
        (["part1.tfrecord", "part2.tfrecord"], ()),
        (["train.tfrecord", "other.tfrecord"], ("other", "train")),
        (["part1.tfrecord", "part2.tfrecord", "val.tfrecord"], ("train", "val")),
        (["train.tfrecord"], ()),
    ],
)
def test_splits_by_names(tmp_path: Path, names: list[str], splits: tuple[str, ...]) -> None:
    for name in names:
        _write(tmp_path / name, [name.encode()] * 2)
    listing = Shards(tmp_path).list_samples()
    assert listing.splits == splits
    for sample in listing.samples:
        told = sample.name.partition("-")[0].partition(".")[0]
        assert sample.split == (("train" if told[:4] == "part" else told) if splits else None)


def test_lists_globs_and_files_of_one_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        _write(tmp_path / folder / "x.tfrecord", [folder.encode()])
    for paths in ([tmp_path / "a" / "x.tfrecord", str(tmp_path / "b")], f"{tmp_path}/*/x.tfrecord"):
        source = Shards(paths)  # type: ignore[arg-type]
        names = [sample.name for sample in source.list_samples().samples]
        assert names == ["a/x.tfrecord/0000000", "b/x.tfrecord/0000000"]
        assert _payloads(source) == [b"a", b"b"]
        assert str(tmp_path) not in str(source.describe())
    with raises(rs.OptionError, option="paths", match="more than once"):
        Shards([tmp_path / "a", tmp_path / "a"]).list_samples()


def _flipped(data: bytes) -> bytes:
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


@pytest.mark.parametrize("damage", [lambda data: data[:-3], _flipped])
def test_damage_is_reported_as_by_the_dataset(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = _write(
        tmp_path / "x.tfrecord",
        [np.random.default_rng(n).bytes(50) for n in range(20)],
    )
    path.write_bytes(damage(path.read_bytes()))

    def defect(read: Callable[[], Any]) -> Any:
        with pytest.raises(rs.CorruptDataError) as caught:
            read()
        assert caught.value.path == str(path)
        return caught.value.defect

    found = defect(lambda: _payloads(Shards(path)))
    assert found == defect(lambda: list(rs.open(path).records()))


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards_have_a_way_out(tmp_path: Path, compression: str) -> None:
    path = _write(tmp_path / "x.tfrecord", [b"a", b"b"], compression)
    with raises(rs.SourceError, path=path, match=compression) as caught:
        Shards(path).list_samples()
    assert "--compression none" in caught.value.remedy
    rs.reshard(path, tmp_path / "out", compression="none")
    assert _payloads(Shards(tmp_path / "out")) == [b"a", b"b"]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(rs.FileAccessError) as caught:
        Shards(tmp_path / "missing").list_samples()
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.path == str(tmp_path / "missing")
    with raises(rs.OptionError, option="paths", value=tmp_path, match="no TFRecord file"):
        Shards(tmp_path).list_samples()
    (tmp_path / "empty.tfrecord").touch()
    with pytest.raises(rs.SourceError, match=r"empty\.tfrecord"):
        Shards(tmp_path / "empty.tfrecord").list_samples()
