"""Packing into a folder that is not empty, or in which another job is running."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import MANIFEST_NAME
from recordsmith.stores import Location, PlaceLike, as_folder

from ...places import contents
from ...raising import raises
from .flower_jobs import OPTIONS, Meddling


def _versions(folder: PlaceLike) -> dict[str, str]:
    """The version of each object."""
    return {str(location): location.info().version for location in as_folder(folder).list()}


# -- an existing dataset ------------------------------------------------------------------------


def test_rerun_of_a_finished_job_changes_nothing(flowers: Path, tmp_path: Path) -> None:
    first = rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    before = _versions(tmp_path)
    again = rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, threads=1)
    assert _versions(tmp_path) == before
    assert (first.is_new, again.is_new) == (True, False)
    assert first.to_json() | {"is_new": False} == again.to_json()


@pytest.mark.parametrize("harm", ["missing", "cut"])
def test_rerun_detects_a_damaged_dataset(
    flowers: Path, place: Location, undisturbed: dict[str, bytes], harm: str
) -> None:
    rs.pack(rs.ImageFolder(flowers), place, **OPTIONS)
    path = (place / "*.tfrecord").glob()[1]
    path.delete() if harm == "missing" else path.put(path.read()[:10])
    try:
        report = rs.pack(rs.ImageFolder(flowers), place, **OPTIONS)
    except (rs.CorruptDataError, rs.OptionError):
        return  # an error is as good as packing again
    assert report.is_new
    assert contents(place) == undisturbed


def test_image_changed_in_place_is_packed_with_overwrite(
    tmp_path: Path, images: ModuleType
) -> None:
    """The same name and size, other pixels."""
    root = images.make_folder(tmp_path / "in", {"a": 1})
    (path,) = root.rglob("*.*")
    bmps = [images.encode(images.noise(4, 4, seed=seed), "BMP") for seed in (1, 2)]
    for bmp in bmps:
        path.write_bytes(bmp)
        rs.pack(rs.ImageFolder(root), tmp_path / "out", overwrite=True)
        example: Any = rs.open(tmp_path / "out")[0]
        assert example["image/encoded"] == [bmp]


@pytest.mark.parametrize(
    "other", [{"seed": 4}, {"shards": 1}, {"splits": {"a": 0.5, "b": 0.5}}, {"compression": "gzip"}]
)
def test_other_dataset_is_refused_and_unchanged(
    flowers: Path, place: Location, other: dict[str, Any]
) -> None:
    rs.pack(rs.ImageFolder(flowers), place, **OPTIONS)
    before = _versions(place)
    with pytest.raises(rs.OptionError, match="21 records") as caught:
        rs.pack(rs.ImageFolder(flowers), place, **OPTIONS | other)
    assert (caught.value.option, caught.value.value) == ("out", f"{str(place)!r:.80}")
    assert "overwrite=True" in str(caught.value)
    assert _versions(place) == before


def test_overwrite_replaces_and_removes_the_old_shards(
    flowers: Path, place: Location, undisturbed: dict[str, bytes]
) -> None:
    (place / "precious.txt").put(b"words")
    rs.pack(rs.ImageFolder(flowers), place, shards=5, splits={"x": 0.5, "train": 0.5})
    report = rs.pack(rs.ImageFolder(flowers), place, **OPTIONS, overwrite=True)
    assert report.is_new
    assert contents(place) == undisturbed | {"precious.txt": b"words"}


def test_failed_overwrite_leaves_the_old_dataset(
    flowers: Path, spoiled: tuple[Path, list[str]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rs.pack(rs.ImageFolder(flowers), out, **OPTIONS)
    before = contents(out)
    with pytest.raises(rs.SourceError):
        rs.pack(rs.ImageFolder(spoiled[0]), out, overwrite=True)
    assert contents(out) == before
    assert len(rs.open(out)) == 21


@pytest.mark.parametrize(
    "name", ["train-00000-of-00002.tfrecord", "train-00007-of-00010.tfrecord", "labels.txt"]
)
def test_foreign_files_are_replaced_only_with_overwrite(
    flowers: Path, place: Location, undisturbed: dict[str, bytes], name: str
) -> None:
    (place / name).put(b"precious")
    with raises(rs.OptionError, value=place, match=name) as caught:
        rs.pack(rs.ImageFolder(flowers), place, **OPTIONS)
    assert caught.value.option == "out"
    assert contents(place) == {name: b"precious"}
    rs.pack(rs.ImageFolder(flowers), place, **OPTIONS, overwrite=True)
    assert contents(place) == undisturbed


def test_notes_of_other_jobs_remove_nothing(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """The files to remove in a note are ignored, unless it is of this job and they are shards."""
    names = ["thesis.doc", "old.tfrecord"]
    (tmp_path / ".recordsmith").mkdir()
    note = tmp_path / ".recordsmith" / "begun.json"
    note.write_text(json.dumps({"fingerprint": "another", "removed": names}))
    for name in names:
        (tmp_path / name).write_bytes(b"precious")
    with raises(rs.OptionError, option="out", value=tmp_path, match=r"old\.tfrecord"):
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    assert set(names) <= set(os.listdir(tmp_path))
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, overwrite=True)
    assert contents(tmp_path) == undisturbed | {"thesis.doc": b"precious"}


@pytest.mark.parametrize(
    "renamed", [{"old.tfrecord": "thesis.doc"}, {"thesis.doc": "new.tfrecord"}]
)
def test_foreign_notes_of_an_append_rename_only_shards(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], renamed: dict[str, str]
) -> None:
    (tmp_path / ".recordsmith").mkdir()
    manifest = json.loads(undisturbed["dataset.json"])
    note = {"fingerprint": "another", "base": "earlier", "renamed": renamed}
    manifest["provenance"]["fingerprint"] = "another"
    for name, document in (("begun.json", note), ("dataset.json.partial", manifest)):
        (tmp_path / ".recordsmith" / name).write_text(json.dumps(document))
    for name in ("thesis.doc", "old.tfrecord"):
        (tmp_path / name).write_text(f"precious {name}")
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS, overwrite=True)
    assert (tmp_path / "thesis.doc").read_text() == "precious thesis.doc"
    assert (tmp_path / "old.tfrecord").read_text() == "precious old.tfrecord"


@pytest.mark.posix
def test_jobs_do_not_follow_links(flowers: Path, tmp_path: Path) -> None:
    """A job would remove files with names like its own from the target of the link."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.partial").touch()
    out = tmp_path / "out"
    out.mkdir()
    (out / ".recordsmith").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(rs.OptionError, match="symbolic link"):
        rs.pack(rs.ImageFolder(flowers), out)
    assert os.listdir(tmp_path / "elsewhere") == ["thesis.partial"]


@pytest.mark.parametrize(
    "change",
    [
        {"notes": 5},
        {"notes": {"x": {"count": "y", "places": 5}}},
        {"records": "7"},
        {"records": 1e300},
        {"skipped": [["a", 1]]},
        {"schema": None},
        {"crc32c": None},
        {"file": "../../x"},
    ],
    ids=str,
)
def test_invalid_notes_of_completed_shards_are_ignored(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], change: dict[str, Any]
) -> None:
    """The shard is written again, and the dataset is correct."""
    note = {
        "fingerprint": json.loads(undisturbed["dataset.json"])["provenance"]["fingerprint"],
        "was_reused": False,
        "versions_hash": None,
        "file": "train-00000-of-00002.tfrecord",
        **dict.fromkeys(("records", "size_bytes", "crc32c", "bytes_in"), 0),
        "schema": {"payload": "Example", "records": 0, "features": {}},
        "skipped": [],
        "notes": {},
    }
    for folder, document in (("note", note | change), ("list", [note]), ("text", "x")):
        internal = tmp_path / folder / ".recordsmith"
        internal.mkdir(parents=True)
        (internal / f"{note['file']}.done").write_text(json.dumps(document))
        (internal / f"{note['file']}.partial").touch()
        rs.pack(rs.ImageFolder(flowers), tmp_path / folder, **OPTIONS)
        assert contents(tmp_path / folder) == undisturbed


def test_broken_manifest_is_reported_and_can_be_overwritten(
    flowers: Path, place: Location, undisturbed: dict[str, bytes]
) -> None:
    (place / MANIFEST_NAME).put(b"{")
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.pack(rs.ImageFolder(flowers), place, **OPTIONS)
    assert caught.value.defect is rs.Defect.BROKEN_MANIFEST
    rs.pack(rs.ImageFolder(flowers), place, **OPTIONS, overwrite=True)
    assert contents(place) == undisturbed


# -- two jobs ----------------------------------------------------------------------------------


def test_second_job_in_the_same_folder_is_refused(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    refused = []

    def pack_too() -> None:
        for overwrite in (False, True):
            with raises(rs.FileAccessError, operation="write", errno=errno.EBUSY) as caught:
                rs.pack(rs.ImageFolder(flowers), tmp_path, seed=9, overwrite=overwrite)
            refused.append(str(tmp_path) in str(caught.value))

    rs.pack(Meddling(flowers, 5, pack_too), tmp_path, **OPTIONS)
    assert refused == [True, True]
    assert contents(tmp_path) == undisturbed


@pytest.mark.posix
def test_job_that_finds_a_finished_dataset_after_waiting_for_the_lock(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It checked the folder before the other job finished, but must not overwrite."""
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock

    def be_late(*arguments: Any) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", be_late)
    with raises(rs.OptionError, option="out", value=tmp_path, match="another dataset"):
        rs.pack(rs.ImageFolder(flowers), tmp_path, seed=9)
    assert contents(tmp_path) == undisturbed
