from __future__ import annotations

import base64
import json
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        found: dict[str, bytes] = {}
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            assert member.name not in found
            found[member.name] = file.read()
        return found


def test_members_of_a_sample_share_a_key(
    write: Any, image: Any, images: ModuleType, tmp_path: Path
) -> None:
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    masked = {"image/segmentation/class/encoded": mask, "image/segmentation/class/format": "png"}
    examples = [
        image("cat/a.b.jpg", more={"image/class/label": 3, "image/class/text": "cat"} | masked),
        image(None, seed=1, more={"many": [1, 2], "score": 0.1, "raw": b"\xff", "e": []}),
        {"text": "no image"},
        {},
    ]
    report = rs.export(write({"e": "int64"}, train=examples), tmp_path / "out", "webdataset")
    assert (report.dropped_features, report.problems) == ({}, [])
    found = members(tmp_path / "out" / "train-000000.tar")
    documents = {name: json.loads(found.pop(name)) for name in list(found) if "json" in name}
    assert found == {
        "cat/a_b.jpg": examples[0]["image/encoded"],
        "cat/a_b.mask.png": mask,
        "cat/a_b.cls": b"3",
        "000001.jpg": examples[1]["image/encoded"],
    }
    assert documents == {
        "cat/a_b.json": {"image/class/text": "cat", "image/filename": "cat/a.b.jpg"},
        "000001.json": {
            "many": [1, 2],
            "score": 0.1,
            "e": [],
            "raw": {"base64": base64.b64encode(b"\xff").decode()},
            "image/filename": None,
            "recordsmith/empty": {"e": "int64"},
        },
        "000002.json": {"text": "no image"},
        "000003.json": {},
    }
    assert [change.file for change in report.changed_names] == ["cat/a_b"]


def test_headers_have_no_owner_and_time(write: Any, image: Any, tmp_path: Path) -> None:
    rs.export(write(train=[image("ö" * 60 + "/" + "x" * 120)]), tmp_path / "out", "webdataset")
    with tarfile.open(tmp_path / "out" / "train-000000.tar") as archive:
        for member in archive:
            assert (member.mtime, member.uid, member.gid) == (0, 0, 0)
            assert (member.uname, member.gname, member.mode) == ("", "", 0o644)


def test_shards_have_the_requested_size(write: Any, image: Any, tmp_path: Path) -> None:
    examples = [image(f"{n}.jpg", seed=n) for n in range(9)]
    source = write(train=examples, val=examples[:1])
    rs.export(source, tmp_path / "out", "webdataset", shard_size_bytes=10_000)
    shards = sorted((tmp_path / "out").glob("*.tar"))
    assert [path.name for path in shards][:2] == ["train-000000.tar", "train-000001.tar"]
    assert shards[-1].name == "val-000000.tar"
    names = [name for path in shards[:-1] for name in members(path) if name.endswith(".jpg")]
    assert names == [f"{n}.jpg" for n in range(9)]
    assert max(path.stat().st_size for path in shards) <= 10_240


@pytest.mark.parametrize("name", ["é" * 200, "d" * 120 + "/" + "n" * 130, "x" * 245, "a/" * 140])
def test_names_of_members_have_at_most_255_bytes(
    write: Any, image: Any, images: ModuleType, tmp_path: Path, name: str
) -> None:
    """Also where a name comes again and gets a number; such archives are unpacked on any system."""
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    more = {"image/segmentation/class/encoded": mask, "image/segmentation/class/format": "png"}
    examples = [image(f"{name}x.jpg", seed=seed, more=more) for seed in range(12)]
    source = write(train=examples)
    rs.export(source, tmp_path / "out", "webdataset")
    found = members(tmp_path / "out" / "train-000000.tar")
    assert len(found) == 3 * len(examples)
    assert max(len(name.encode()) for name in found) <= 255
    rs.pack(rs.WebDataset(tmp_path / "out"), tmp_path / "again")
    names = [example["image/filename"] for example in rs.open(tmp_path / "again")]
    assert names == [[f"{name}x.jpg".encode()]] * len(examples)
