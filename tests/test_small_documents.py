"""Whatever reads a small document gives up on one that cannot be meant: 8 GB, and none is read.

Who read it all would be killed, or take minutes. The files have a length, and take no space.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import read_begun_note, read_label_map, read_labels, read_manifest
from recordsmith.dataset.shard_index import index_locations, load_index
from recordsmith.sources.boxes.annotation import AnnotationFile
from recordsmith.sources.boxes.formats.voc import parse
from recordsmith.sources.boxes.yolo_files import read_data_file
from recordsmith.sources.files.name_files import read_lines
from recordsmith.stores import EXPORT_NOTE, as_folder, as_location
from recordsmith.stores.folders import _read_note
from recordsmith.writing.building.shards import done_location, load_result

from .raising import raises


def huge(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(1 << 33)
    return path


def edit(path: Path, numbered: SimpleNamespace) -> None:
    numbered.write_shard(path.parent / "in" / "a.tfrecord", [0, 1])
    rs.edit(path.parent / "in" / "a.tfrecord", path.parent / "out", recode={"id": path})


def verify(path: Path, numbered: SimpleNamespace) -> None:
    numbered.write_shard(path.parent / "in" / "a.tfrecord", [0, 1])
    rs.verify(path.parent / "in" / "a.tfrecord", schema=path)


READERS: dict[str, Callable[[Path, SimpleNamespace], Any]] = {
    "table.csv": edit,
    "table.json": edit,
    "schema.json": verify,
    "labels.txt": lambda path, _: read_labels(as_folder(path.parent)),
    "label_map.pbtxt": lambda path, _: read_label_map(path),
    ".recordsmith/begun.json": lambda path, _: read_begun_note(as_folder(path.parent.parent)),
    "a.xml": lambda path, _: list(parse(AnnotationFile(as_location(path), "a.xml"))),
    "data.yaml": lambda path, _: read_data_file(as_location(path), "data.yaml"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_document_without_end_is_refused(
    name: str, tmp_path: Path, numbered: SimpleNamespace
) -> None:
    (tmp_path / "in").mkdir()
    path = huge(tmp_path / name)
    with raises(rs.FileAccessError, operation="read", errno=errno.EFBIG) as caught:
        READERS[name](path, numbered)
    assert caught.value.path.endswith(name)


def test_a_list_may_be_long_but_no_line_of_it(tmp_path: Path) -> None:
    with raises(
        rs.FileAccessError,
        path=tmp_path / "list.txt",
        operation="read",
        errno=errno.EFBIG,
    ):
        read_lines(as_location(huge(tmp_path / "list.txt")))
    path = tmp_path / "images.txt"
    with open(path, "w", newline="") as file:  # 270 MB, and nothing to hold
        file.writelines([f"{' ' * 999_999}\r\n"] * 270)
        file.write("name")
    assert read_lines(as_location(path)) == [(271, "name")]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
@given(data=st.lists(st.sampled_from([b"a", b" ", b"\r", b"\n", b"\x85", b"\xc3\xa9", b"\xff"])))
def test_lines_end_as_in_any_system(
    tmp_path_factory: pytest.TempPathFactory, mark: bytes, data: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes(mark + b"".join(data))
    text = b"".join(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    expected = [(n, line.strip()) for n, line in enumerate(lines, 1) if line.strip()]
    assert read_lines(as_location(path)) == expected


def test_a_manifest_without_end_is_a_broken_one(tmp_path: Path, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(tmp_path / "out", {"train": [3]})
    huge(folder / "dataset.json")
    with raises(
        rs.CorruptDataError,
        defect="broken-manifest",
        path=tmp_path / "out/dataset.json",
        match=r"broken-manifest.*larger than",
    ):
        read_manifest(folder)
    found = rs.verify(folder).defects
    assert [str(defect.defect) for defect in found] == ["broken-manifest"]


def test_notes_without_end_are_passed_over(tmp_path: Path, numbered: SimpleNamespace) -> None:
    shard = numbered.write_shard(tmp_path / "a.tfrecord", [0, 1])
    huge(Path(index_locations(shard)[0]))
    assert load_index(shard) is None
    assert len(rs.open(shard)) == 2
    huge(done_location(tmp_path, "a.tfrecord"))
    folder = as_folder(tmp_path)
    assert load_result(folder, "plan", lambda: None, "a.tfrecord", trusting=True) is None
    huge(tmp_path / EXPORT_NOTE)
    assert not _read_note(folder / EXPORT_NOTE)["entries"]
