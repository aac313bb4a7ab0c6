"""Shards, tar archives and arrays in folders: which reading, by first bytes and not names alone."""

from __future__ import annotations

import tarfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources.archives.detection import find_candidates, refusal
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.layouts import LayoutCandidate
from recordsmith.stores import as_folder, as_location

from ..raising import raises
from .test_arrays import NOISE
from .test_webdataset import tar


def _readings(folder: Path) -> list[LayoutCandidate]:
    return list(find_candidates(FileTree(as_folder(folder))))


def _count(folder: Path, format: str, noun: str) -> int:
    """The samples of the only reading."""
    (reading,) = _readings(folder)
    assert (reading.format, reading.noun) == (format, noun)
    source = rs.detect(folder, reading.format, **reading.options).source
    return len(source.list_samples().samples)


def _tar(path: Path, names: list[str], images: ModuleType, form: int = tarfile.PAX_FORMAT) -> None:
    data = {name: images.jpeg(1) if name.endswith("jpg") else b"1" for name in names}
    tar(path, data, format=form)


@pytest.mark.parametrize("folder", ["", "train"])
@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_shards(tmp_path: Path, folder: str, compression: str | None) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    name = "a.tfrecord.gz" if compression == "gzip" else "a.tfrecord"
    with rs.ShardWriter(tmp_path / folder / name, compression=compression) as writer:
        writer.write(b"x")
    assert _count(tmp_path, "shards", "records") == 1


def test_folders_of_tensorflow_datasets_have_both_documents(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "mnist-train.tfrecord-00000-of-00001") as writer:
        writer.write(b"x")
    (tmp_path / "dataset_info.json").write_text("{}")
    assert [each.format for each in _readings(tmp_path)] == ["shards"]
    (tmp_path / "features.json").write_text("{}")
    assert [each.format for each in _readings(tmp_path)] == ["tfds"]


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "train/a.tar"])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives(tmp_path: Path, images: ModuleType, name: str, form: int) -> None:
    _tar(tmp_path / name, ["1.jpg", "1.cls", "2.jpg", "2.cls"], images, form)
    assert _count(tmp_path, "webdataset", "samples") == 2


def test_class_folders_in_archives_are_refused(tmp_path: Path, images: ModuleType) -> None:
    _tar(tmp_path / "flowers.tar", ["flowers/daisy/1.jpg", "flowers/rose/2.jpg"], images)
    with raises(rs.SourceError, path=tmp_path / "flowers.tar", match="daisy") as caught:
        rs.WebDataset(tmp_path).list_samples()
    assert "Unpack" in caught.value.remedy
    for names in (["a/1.jpg", "a/1.cls", "b/2.jpg", "b/2.cls"], ["a/1.jpg", "a/2.jpg"]):
        _tar(tmp_path / "flowers.tar", names, images)
        assert len(rs.WebDataset(tmp_path).list_samples().samples) == 2


def test_arrays_next_to_images_are_no_reading(tmp_path: Path, images: ModuleType) -> None:
    (tmp_path / "1.png").write_bytes(images.encode(images.noise(5, 4), "PNG"))
    np.save(tmp_path / "features.npy", NOISE)
    assert _readings(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("train_32x32.mat", "scipy"),
        ("a.H5", "h5py"),
        ("train.zip", "Unpack"),
        ("a.7z", "Unpack"),
        ("a.rar", "Unpack"),
        ("b/film.mp4", "ffmpeg"),
        ("model.pkl", "trust"),
    ],
)
def test_files_that_no_source_reads_have_a_way_out(tmp_path: Path, name: str, advice: str) -> None:
    error = refusal(as_folder(tmp_path), ["read me.txt", name])
    assert error is not None
    assert error.path == str(tmp_path / name)
    assert advice in error.remedy
    single = refusal(as_location(tmp_path / name), [Path(name).name])
    assert single is not None
    assert single.path == str(tmp_path / name)
    assert refusal(as_folder(tmp_path), ["a.png", "b.csv"]) is None
