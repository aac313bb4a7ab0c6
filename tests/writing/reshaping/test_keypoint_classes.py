"""The keypoints of classes are carried by jobs that rewrite records; other ones are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import KeypointClass, KeypointClasses

from ...keypoints import random_coco, set_keypoint_classes
from ...raising import raises

LABEL = "image/object/class/label"
POINTS = [f"image/object/keypoint/{key}" for key in ("x", "y", "visibility", "num")]
PERSON = KeypointClass(("nose", "left eye", "right eye"), ((0, 1), (0, 2)), ((1, 2),))
HAND = KeypointClass(("thumb",))
CLASSES = {1: PERSON, 2: HAND}
BARE = KeypointClass(PERSON.names)


def make(folder: Path, classes: KeypointClasses = CLASSES) -> Path:
    """A dataset of one object with three keypoints."""
    values: list[Any] = [[0.5] * 3, [0.5] * 3, [2] * 3, [3]]
    example = {LABEL: [1], **dict(zip(POINTS, values, strict=True))}
    with rs.ShardWriter(folder.parent / f"{folder.name}.tfrecord") as writer:
        writer.write_example(example)
    rs.reshard(folder.parent / f"{folder.name}.tfrecord", folder)
    set_keypoint_classes(folder, classes)
    return folder


def test_carried(tmp_path: Path) -> None:
    old, new = make(tmp_path / "old"), tmp_path / "new"

    def kept(**edits: Any) -> KeypointClasses:
        rs.edit(old, new, overwrite=True, **edits)
        return rs.open(new).keypoint_classes

    assert kept(add={"a": 1}) == CLASSES
    assert kept(recode={LABEL: {1: 7, 2: 1}}) == {7: PERSON, 1: HAND}
    assert kept(recode={LABEL: {1: 2}}) == {2: PERSON}
    assert kept(drop=POINTS) == {}
    with raises(rs.OptionError, option="recode"):
        kept(recode={LABEL: {1: 2, 2: 2}})
    rs.reshard(old, new, shards=1, overwrite=True)
    assert rs.open(new).keypoint_classes == CLASSES
    rs.pack(rs.Shards(old), tmp_path / "packed")
    assert rs.open(tmp_path / "packed").keypoint_classes == CLASSES
    (shard,) = old.glob("*.tfrecord")
    shard.write_bytes(shard.read_bytes() + b"\0")
    rs.salvage(old, tmp_path / "salvaged")
    assert rs.open(tmp_path / "salvaged").keypoint_classes == CLASSES


JOINED: list[tuple[KeypointClasses, KeypointClasses | None]] = [
    ({}, CLASSES),
    ({1: BARE}, CLASSES),
    ({3: BARE}, {**CLASSES, 3: BARE}),
    ({1: PERSON._replace(names=("nose", "right eye", "left eye"))}, None),
    ({1: PERSON._replace(skeleton=((0, 1),))}, None),
    ({1: PERSON._replace(flip_pairs=())}, None),
    ({2: HAND}, None),  # its objects have one keypoint
]


@pytest.mark.parametrize(("added", "expected"), JOINED)
def test_joined(tmp_path: Path, added: KeypointClasses, expected: KeypointClasses | None) -> None:
    """By several paths, `reshard` and `append`; what one of them lacks is completed."""
    old, more = make(tmp_path / "old"), make(tmp_path / "more", added)
    assert rs.open([old, more]).keypoint_classes == (expected or {})
    if expected is None:
        for job, to in ((rs.reshard, tmp_path / "new"), (rs.append, old)):
            with raises(rs.OptionError, match="keypoints"):
                job([old, more] if job is rs.reshard else more, to)
        assert len(rs.open(old)) == 1
        return
    rs.reshard([old, more], tmp_path / "new")
    assert rs.open(tmp_path / "new").keypoint_classes == expected
    rs.append(more, old)
    assert (len(rs.open(old)), rs.open(old).keypoint_classes) == (2, expected)


def test_like(tmp_path: Path) -> None:
    """Classes get the numbers of the dataset, and so do their keypoints."""
    random_coco(tmp_path / "old", 3, keypoints=["a", "b"], skeleton=[[1, 2]])
    rs.pack(rs.Coco(tmp_path / "old"), tmp_path / "out")
    for names, is_same in ((["a", "b"], True), (["b", "a"], False), (["a", "b", "c"], False)):
        folder = tmp_path / "".join(names)
        random_coco(folder, 3, keypoints=names, skeleton=[], id=9)
        if is_same:
            rs.pack(rs.Coco(folder), tmp_path / "new", like=tmp_path / "out")
        else:
            with raises(rs.OptionError, match="keypoints"):
                rs.pack(rs.Coco(folder), tmp_path / "new", like=tmp_path / "out", overwrite=True)
    known = rs.open(tmp_path / "new").keypoint_classes
    assert known == rs.open(tmp_path / "out").keypoint_classes
    assert known == {1: KeypointClass(("a", "b"), ((0, 1),))}
    set_keypoint_classes(tmp_path / "new", {**known, 7: known[1]})  # a class without a name
    rs.pack(rs.Shards(tmp_path / "new"), tmp_path / "again", like=tmp_path / "out")
    assert rs.open(tmp_path / "again").keypoint_classes == {**known, 7: known[1]}
    set_keypoint_classes(tmp_path / "new", known)
    rs.append(tmp_path / "new", tmp_path / "out")


def test_described(tmp_path: Path) -> None:
    """By `inspect` and `card`, where names are no markup."""
    names = ("nose", "a|b`<script>")
    folder = make(tmp_path / "old", {1: KeypointClass(names, ((0, 1),))})
    summary = rs.inspect(folder)
    assert "2 keypoints of class 1: nose, a|b`<script>" in summary.content().notes
    assert summary.to_json()["keypoint_classes"]["1"]["names"] == names
    assert "keypoint_classes" not in rs.inspect(tmp_path / "old.tfrecord").to_json()
    (line,) = [line for line in rs.card(folder).readme.splitlines() if "joined" in line]
    assert line.startswith("Keypoints of class 1, from 0: `nose`, <code>")
    assert line.endswith("; joined: 0-1")
    assert "<script>" not in line
    assert "rs.Keypoints()" in rs.reader_code(folder, "tf")
