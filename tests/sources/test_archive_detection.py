"""Shards, tar archives and arrays in folders: which reading, by first bytes and not names alone."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources.archives.detection import find_candidates
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.layouts import LayoutCandidate
from recordsmith.stores import as_folder

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


@pytest.mark.parametrize("folder", ["", "train"])
def test_shards(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    with rs.ShardWriter(tmp_path / folder / "a.tfrecord") as writer:
        writer.write(b"x")
    assert _count(tmp_path, "shards", "records") == 1


def test_folders_of_tensorflow_datasets_have_both_documents(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "mnist-train.tfrecord-00000-of-00001") as writer:
        writer.write(b"x")
    (tmp_path / "dataset_info.json").write_text("{}")
    assert [each.format for each in _readings(tmp_path)] == ["shards"]
    (tmp_path / "features.json").write_text("{}")
    assert [each.format for each in _readings(tmp_path)] == ["tfds"]


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0a' * 32}\nsize 12345\n"


@pytest.mark.parametrize(
    "name",
    [
        "train.record",
        "a.json",
        "labels.csv",
        "data/t.parquet",
        "labels/0.txt",
        "0.xml",
        "data.yaml",
    ],
)
def test_pointers_of_git_lfs(tmp_path: Path, images: ModuleType, name: str) -> None:
    """In the place of labels they are refused, not skipped, in a folder and as a file."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(POINTER)
    with_images = name != "train.record"
    if with_images:
        (tmp_path / "0.jpg").write_bytes(images.jpeg(1))
    for root in (tmp_path, *([path] if path.suffix in (".csv", ".json", ".parquet") else [])):
        with raises(rs.SourceError, path=path) as caught:
            _ = rs.detect(root).reading
        assert "git lfs pull" in caught.value.remedy
    if with_images:
        assert len(rs.detect(tmp_path, "files").source.list_samples().samples) == 1
    path.write_text(POINTER.replace("version", "versions"))
    if with_images and name != "labels/0.txt":
        assert rs.detect(tmp_path).readings


def test_class_folders_in_archives_are_refused(tmp_path: Path, images: ModuleType) -> None:
    jpeg = images.jpeg(1)
    archive = tar(tmp_path / "flowers.tar", dict.fromkeys(["a/daisy/1.jpg", "a/rose/2.jpg"], jpeg))
    with raises(rs.SourceError, path=archive, match="daisy") as caught:
        rs.WebDataset(tmp_path).list_samples()
    assert "Unpack" in caught.value.remedy
    for names in (["a/1.jpg", "a/1.cls", "b/2.jpg", "b/2.cls"], ["a/1.jpg", "a/2.jpg"]):
        tar(archive, {name: jpeg if name.endswith("jpg") else b"1" for name in names})
        assert len(rs.WebDataset(tmp_path).list_samples().samples) == 2


def test_arrays_next_to_images_are_no_reading(tmp_path: Path, images: ModuleType) -> None:
    (tmp_path / "1.png").write_bytes(images.encode(images.noise(5, 4), "PNG"))
    np.save(tmp_path / "features.npy", NOISE)
    assert _readings(tmp_path) == []


@pytest.mark.parametrize(
    ("head", "advice"),
    [
        (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(90), "scipy"),
        (b"\x89HDF\r\n\x1a\n" + bytes(90), "h5py"),
        (b"PK\x03\x04\x14" + bytes(90), "Unpack"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(90), "Unpack"),
        (b"\0\0\0\x20ftypisom" + bytes(90), "ffmpeg"),
        (b"\x80\x04\x95" + bytes(90), "trust"),
    ],
)
def test_files_that_no_source_reads_have_a_way_out(
    tmp_path: Path, head: bytes, advice: str
) -> None:
    path = tmp_path / "b/data.bin"
    path.parent.mkdir()
    path.write_bytes(head)
    (tmp_path / "read me.txt").write_text("words")
    for place in (tmp_path, path):
        with raises(rs.SourceError, path=path) as caught:
            rs.detect(place)
        assert advice in caught.value.remedy
