"""Pack: from images to a complete dataset."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import LABELS_NAME, MANIFEST_NAME, read_manifest
from recordsmith.sources import Listing, Note, Sample, ignore_note
from recordsmith.stores import Location

from ...places import contents
from ...sources import drawn_folders
from .flower_jobs import OPTIONS, SPLITS, Meddling, is_done_or_nothing

# -- what comes out ------------------------------------------------------------------------------


def test_every_image_is_in_the_dataset_once(flowers: Path, place: Location) -> None:
    report = rs.pack(rs.ImageFolder(flowers), place / "out", **OPTIONS)
    dataset: Any = rs.open(place / "out")
    found = {example["image/filename"][0].decode(): example for example in dataset}
    paths = sorted(path for path in flowers.rglob("*.*"))
    assert len(dataset) == len(found) == len(paths) == 21
    for path in paths:
        example = found[path.relative_to(flowers).as_posix()]
        label = dataset.class_names.index(path.parent.name)
        assert example["image/encoded"] == [path.read_bytes()]
        assert example["image/class/text"] == [path.parent.name.encode()]
        assert example["image/class/label"].tolist() == [label]
    assert (report.sample_count, report.class_count, report.shard_count) == (21, 3, 4)
    assert report.splits == {"train": 13, "validation": 8}
    assert report.bytes_in == sum(path.stat().st_size for path in paths)
    assert report.bytes_out == sum(path.size() for path in (place / "out" / "*.tfrecord").glob())
    assert (report.is_new, report.skipped, report.notices) == (True, [], ())
    assert json.loads(json.dumps(report.to_json()))["samples"] == 21


def test_manifest_describes_the_dataset(flowers: Path, place: Location) -> None:
    rs.pack(rs.ImageFolder(flowers), place, **OPTIONS)
    manifest = read_manifest(place)
    assert manifest is not None
    assert list(manifest.splits) == list(SPLITS)
    assert manifest.class_names == ("daisy", "rose", "tulip")
    assert manifest.provenance["options"]["seed"] == 3
    text = (place / MANIFEST_NAME).read().decode()
    assert str(place) not in text  # no paths of this machine
    assert str(flowers) not in text
    for shards in manifest.splits.values():
        for shard in shards:
            assert (place / shard.file).size() == shard.size_bytes
            assert len(rs.open(place / shard.file)) == shard.record_count
    assert manifest.schema == rs.open(place / "*.tfrecord").schema
    assert rs.verify(place).is_good


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_bytes_do_not_depend_on_threads(
    flowers: Path, place: Location, undisturbed: dict[str, bytes], threads: int
) -> None:
    rs.pack(rs.ImageFolder(flowers), place, **OPTIONS, threads=threads)
    assert contents(place) == undisturbed


@pytest.mark.parametrize("error", [KeyboardInterrupt(), rs.SourceError("no"), RuntimeError("no")])
def test_interrupted_while_images_are_encoded_ahead(
    flowers: Path, place: Location, error: BaseException
) -> None:
    def stop() -> None:
        raise error

    options = {**OPTIONS, "image_options": rs.ImageOptions(store="png")}
    with pytest.raises(type(error)):
        rs.pack(Meddling(flowers, 9, stop), place, **options, threads=4)
    assert is_done_or_nothing(place) or not place.store.can_rename
    rs.pack(rs.ImageFolder(flowers), place, **options)
    assert rs.verify(place).record_count == 21


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed(flowers: Path, place: Location, compression: str) -> None:
    folders = [place / name for name in "ab"]
    for threads, folder in enumerate(folders, 1):
        rs.pack(
            rs.ImageFolder(flowers), folder, **OPTIONS, compression=compression, threads=threads
        )
    assert contents(folders[0]) == contents(folders[1])
    rs.pack(rs.ImageFolder(flowers), place / "plain", **OPTIONS)
    plain = rs.open(place / "plain")
    assert list(rs.open(folders[0]).records()) == list(plain.records())
    assert rs.inspect(folders[0]).compression == compression
    assert rs.verify(folders[0]).is_good


def test_odd_images_keep_their_bytes(tmp_path: Path, images: ModuleType) -> None:
    odd = images.odd()
    (tmp_path / "in" / "a").mkdir(parents=True)
    for name, data in odd.items():
        (tmp_path / "in" / "a" / name).write_bytes(data)
    rs.pack(rs.ImageFolder(tmp_path / "in"), tmp_path / "out")
    dataset: Any = rs.open(tmp_path / "out")
    assert len(dataset) == len(odd)
    for example in dataset:
        data = odd[example["image/filename"][0].decode().partition("/")[2]]
        kind, height, width = images.size_by_pillow(data)
        assert example["image/encoded"] == [data]
        assert example["image/format"] == [kind.encode()]
        assert example["image/height"].tolist() == [height]
        assert example["image/width"].tolist() == [width]


def test_progress_counts_samples(flowers: Path, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rs.pack(
        rs.ImageFolder(flowers),
        tmp_path,
        **OPTIONS,
        threads=4,
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 21) for done in range(1, 22)]


# -- sources of other kinds ----------------------------------------------------------------------


class Rows:
    """A source without images and classes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def list_samples(self) -> Listing:
        return Listing(tuple(Sample(str(number), 8) for number in range(self.count)), self)

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:  # noqa: ARG002
        return {"id": int(sample.name), "boxes": [0.5] * (int(sample.name) % 3)}

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "Rows"}

    def kinds(self) -> Mapping[str, Any]:
        return {"boxes": "float"}

    def to_json(self) -> dict[str, Any]:
        return {}


def test_any_source_can_be_packed(tmp_path: Path) -> None:
    report = rs.pack(Rows(30), tmp_path, shards=4)
    assert report.class_count is None
    assert not (tmp_path / LABELS_NAME).exists()
    dataset = rs.open(tmp_path)
    assert dataset.class_names is None
    columns = dataset.read_columns()
    ids = np.asarray(columns["id"])
    assert sorted(ids.tolist()) == list(range(30))
    for number, boxes in zip(ids, columns["boxes"], strict=True):
        assert len(boxes) == number % 3
    # an empty list keeps its kind
    assert dataset.schema.features["boxes"].kind == "float"
    assert all(example["boxes"].dtype == np.float32 for example in dataset)  # type: ignore[call-overload,union-attr]


def test_features_that_cannot_be_encoded_stop_the_job(tmp_path: Path) -> None:
    class Wrong(Rows):
        def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:  # noqa: ARG002
            return {"id": {sample.name: "a dict is no feature"}}

    with pytest.raises(rs.OptionError, match="'id'"):
        rs.pack(Wrong(5), tmp_path / "out", skip_errors=True)
    assert contents(tmp_path / "out") == {}


@pytest.mark.posix
def test_output_path_must_be_a_folder(flowers: Path, tmp_path: Path) -> None:
    source = rs.ImageFolder(flowers)
    (tmp_path / "file").write_bytes(b"precious")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(rs.OptionError) as caught:
        rs.pack(source, tmp_path / "file")
    assert (caught.value.option, caught.value.expected) == ("out", "a folder")
    reasons = {"loop": errno.ELOOP, "x" * 300: errno.ENAMETOOLONG, "file/x": errno.ENOTDIR}
    for name, number in reasons.items():
        with pytest.raises(rs.FileAccessError) as refused:
            rs.pack(source, tmp_path / name)
        assert (refused.value.errno, refused.value.operation) == (number, "write")
        assert refused.value.path == str(tmp_path / name)
    assert (tmp_path / "file").read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ({"a/1.jpg": "photo", "b/2.jpg": "photo", "rows.csv": "x,y\n1,2\n"}, ""),
        (
            {
                "{1-4}.jpg": "photo",
                "images.csv": "image,label\n1.jpg,a\n2.jpg,b\n3.jpg,a\n4.jpg,b\n",
                "rows.csv": "x,y\n1,2\n",
            },
            "without a column of images",
        ),
    ],
    ids=["class folders", "table of images"],
)
def test_tables_that_are_not_packed_are_noticed(
    tmp_path: Path, names: dict[str, str], why: str
) -> None:
    root = drawn_folders.write(tmp_path / "in", names)
    report = rs.pack(root, tmp_path / "out")
    (line,) = report.account["left_out"]
    assert (line["noun"], line["first"]) == ("table", ["rows.csv"])
    (notice,) = report.notices
    assert why in notice
    assert "pass its path" in notice
