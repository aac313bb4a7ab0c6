"""Verify compares shards with the manifest: swapped, copied and extra shards, label maps."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import recordsmith as rs
from recordsmith.dataset import label_map_to_bytes
from recordsmith.stores import Location, PlaceLike

from ...raising import raises

D = rs.Defect


def _found(path: PlaceLike) -> list[tuple[rs.Defect, str]]:
    return [(error.defect, Path(error.path or "").name) for error in rs.verify(path).defects]


def test_three_shards_swapped_in_a_circle(place: Location, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(place, {"train": [4, 5, 6]})
    one, two, three = (folder / "train-*").glob()
    data = [path.read() for path in (one, two, three)]
    for path, content in zip((two, three, one), data, strict=True):
        path.put(content)
    report = rs.verify(folder)
    assert [error.defect for error in report.defects] == [D.SWAPPED_SHARD] * 3
    for error, name in zip(report.defects, (three.name, one.name, two.name), strict=True):
        assert name in error.problem
    assert report.record_count == 15


def test_a_dataset_and_a_shard_without_a_manifest(
    place: Location, numbered: SimpleNamespace
) -> None:
    """Only the shards of the dataset have manifest entries."""
    folder = numbered.packed(place / "in", {"train": [4, 5]})
    other = numbered.write_shard(place / "other.tfrecord", [7])
    report = rs.verify([folder, other])
    assert (report.is_good, report.record_count) == (True, 10)
    one, two = (folder / "train-*").glob()
    first, second = one.read(), two.read()
    one.put(second)
    two.put(first)
    report = rs.verify([folder, other])
    assert [(error.defect, error.path) for error in report.defects] == [
        (D.SWAPPED_SHARD, str(one)),
        (D.SWAPPED_SHARD, str(two)),
    ]


def test_unlisted_shards(place: Location, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(place, {"train": [4, 5], "test": [1]})
    for name in (
        "train-00002-of-00003.tfrecord",  # of another version
        "train-00001-of-00002.tfrecords",  # another extension
        "validation-00000-of-00001.tfrecord",  # of an unknown split: not part of the dataset
        "notes.txt",
    ):
        (folder / name).put((folder / "train-00000-of-00002.tfrecord").read())
    (folder / "train-00003-of-00004.txt").put(b"text\n")
    (folder / "train-00003-of-00004.tfrecord" / "below").put(b"")
    assert _found(folder) == [
        (D.EXTRA_SHARD, "train-00001-of-00002.tfrecords"),
        (D.EXTRA_SHARD, "train-00002-of-00003.tfrecord"),
    ]
    defects = rs.verify(folder, split="train").defects
    assert [(error.found, error.expected) for error in defects] == [("", ""), ("3", "2")]
    assert rs.verify(folder, split="test").is_good


@pytest.mark.parametrize("splits", [{}, {"train": []}])
def test_a_manifest_that_lists_no_shard(
    place: Location, numbered: SimpleNamespace, splits: dict[str, list[object]]
) -> None:
    folder = numbered.packed(place, {"train": [4, 5]})
    path = folder / "dataset.json"
    path.put(json.dumps({**json.loads(path.read()), "splits": splits, "records": 0}).encode())
    assert _found(folder) == [
        (D.EXTRA_SHARD, "train-00000-of-00002.tfrecord"),
        (D.EXTRA_SHARD, "train-00001-of-00002.tfrecord"),
    ]


def test_two_sets_of_shards_without_a_manifest(place: Location, numbered: SimpleNamespace) -> None:
    for count in (2, 3):
        for number in range(count):
            numbered.write_shard(place / f"train-{number:05d}-of-{count:05d}.tfrecord", [number])
    numbered.write_shard(place / "test-00000-of-00001.tfrecord", [1])
    assert _found(place) == [
        (D.EXTRA_SHARD, "train-00000-of-00002.tfrecord"),
        (D.EXTRA_SHARD, "train-00001-of-00002.tfrecord"),
    ]


def test_the_label_map_must_name_the_same_classes(
    place: Location, numbered: SimpleNamespace
) -> None:
    folder = numbered.packed(place, {"train": [2]})
    path = folder / "label_map.pbtxt"
    path.put(label_map_to_bytes(numbered.class_names))
    assert rs.verify(folder).is_good
    for text in (label_map_to_bytes(("daisy", "other")), b"no label map {", b""):
        path.put(text)
        assert _found(folder) == [(D.LABELS, "label_map.pbtxt")]


@pytest.mark.parametrize(
    ("actual", "listed"), [("none", "gzip"), ("gzip", "none"), ("zlib", "gzip")]
)
def test_a_wrong_compression_in_the_manifest(
    place: Location, numbered: SimpleNamespace, actual: str, listed: str
) -> None:
    folder = numbered.packed(place, {"train": [4, 5]}, actual)
    path = folder / "dataset.json"
    assert rs.verify(folder).is_good
    path.put(json.dumps({**json.loads(path.read()), "compression": listed}).encode())
    assert _found(folder) == [(D.BROKEN_MANIFEST, "dataset.json")]
    assert rs.verify(folder).defects[0].found == listed
    shard = (folder / "train-00000*").glob()[0]  # a damaged shard does not blame the manifest
    path.put(json.dumps({**json.loads(path.read()), "compression": actual}).encode())
    shard.put(b"\x1f\x8b\x08" + shard.read()[3:-1] + b"?")
    assert D.BROKEN_MANIFEST not in [defect for defect, _ in _found(folder)]


@pytest.mark.parametrize("total", [0, 10, -1, "9"])
def test_a_wrong_total_in_the_manifest(
    place: Location, numbered: SimpleNamespace, total: object
) -> None:
    folder = numbered.packed(place, {"train": [4, 5]})
    path = folder / "dataset.json"
    document = json.loads(path.read())
    path.put(json.dumps({**document, "records": total}).encode())
    assert _found(folder) == [(D.BROKEN_MANIFEST, "dataset.json")]
    assert len(rs.open(folder)) == 9
    del document["records"]
    path.put(json.dumps(document).encode())
    assert rs.verify(folder).is_good


def test_a_truncated_shard_also_has_the_wrong_size(
    place: Location, numbered: SimpleNamespace
) -> None:
    folder = numbered.packed(place, {"train": [4, 5]})
    path = folder / "train-00000-of-00002.tfrecord"
    path.put(path.read()[:-7])
    assert [defect for defect, _ in _found(folder)] == [D.TRUNCATED_PAYLOAD, D.SHARD_SIZE]


@pytest.mark.posix
def test_symbolic_links(tmp_path: Path, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(tmp_path / "set", {"train": [2]})
    (folder / "train-00007-of-00009.tfrecord").symlink_to("train-00007-of-00009.tfrecord")
    (folder / "train-00008-of-00009.tfrecord").symlink_to("nowhere")
    assert rs.verify(folder).is_good
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    numbered.write_shard(foreign / "a.tfrecord", [1])
    (foreign / "b.tfrecord").symlink_to("b.tfrecord")
    assert rs.verify(foreign).is_good
    with raises(rs.FileAccessError, path=foreign / "b.tfrecord"):
        rs.verify(foreign / "b.tfrecord")


@pytest.mark.parametrize("count", [4, 6])
def test_a_schema_of_other_records(place: Location, numbered: SimpleNamespace, count: int) -> None:
    folder = numbered.packed(place, {"train": [5]})
    path = folder / "dataset.json"
    document = json.loads(path.read())
    document["schema"]["records"] = count
    for feature in document["schema"]["features"].values():
        feature["present"] = min(count, feature["present"])
    path.put(json.dumps(document).encode())
    (error,) = rs.verify(folder).defects
    assert (error.defect, error.path) == (D.BROKEN_MANIFEST, str(path))
    assert (error.found, error.expected) == (str(count), "5")
