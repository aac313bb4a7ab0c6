"""Folders of TensorFlow Datasets, written here without it; `tests/interop` compares with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import standard_keys
from recordsmith.dataset.tfds.features import parse_features
from recordsmith.sources import Source, Tfds
from recordsmith.support.errors import CorruptDataError, Defect, OptionError, SourceError

from ..raising import raises
from .source_contract import SourceContract, left_out
from .tfds_folder import (
    document_of,
    features_dict,
    image_feature,
    tensor_feature,
    text_feature,
    write_by_hand,
)


def _write(folder: Path, images: ModuleType) -> Path:
    """A folder with images of two classes, in two splits of two shards."""
    work = folder.parent / f"{folder.name} work"
    pictures = images.make_folder(work / "images", {"ant": 5, "bee": 4})
    rs.pack(rs.ImageFolder(pictures), work / "packed", splits={"train": 0.6, "test": 0.4})
    rs.export(work / "packed", folder, "tfds", shard_size_bytes=2000)
    shutil.rmtree(work)
    return folder


@pytest.fixture
def folder(tmp_path: Path, images: ModuleType) -> Path:
    return _write(tmp_path / "flowers", images)


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        return Tfds(_write(folder, images))

    def test_labels_are_numbers_of_classes(self, source: Source) -> None:
        listing = source.list_samples()
        assert listing.class_names == ("ant", "bee")
        assert {sample.label for sample in listing.samples} == {None}  # listing reads no records


@pytest.mark.parametrize("above", ["name", "data"])
def test_a_dataset_is_found_below_its_folder(folder: Path, tmp_path: Path, above: str) -> None:
    version = tmp_path / "data/config/flowers" if above == "data" else tmp_path / above / "inner"
    for name in ("1.0.0", "0.9.0"):
        shutil.copytree(folder, version / name)
    (version / "0.9.0/features.json").write_text("{}")  # the last version counts
    shutil.rmtree(folder)
    listing = rs.detect(tmp_path / above, "tfds").source.list_samples()
    assert len(listing.samples) == 9
    assert listing.notices[0] == "version 1.0.0 was read, not 0.9.0"
    (others,) = left_out(listing).values()
    assert len(others) == 4
    assert all("/0.9.0/" in path for path in others)
    assert not Tfds(version / "1.0.0").list_samples().notices


@pytest.mark.parametrize("above", [0, 1, 2])
def test_without_features_only_the_records_are_packed(
    folder: Path, tmp_path: Path, above: int
) -> None:
    version = tmp_path / "data/name/1.0.0"
    version.parent.mkdir(parents=True)
    folder.rename(version)
    (version / "features.json").unlink()
    root = [version, *version.parents][above]
    with raises(SourceError, path=root) as refused:
        rs.detect(root).reading.format  # noqa: B018 - it raises
    with raises(OptionError, option="root", value=root) as unread:
        rs.detect(root, "tfds").source.list_samples()
    assert refused.value.remedy == unread.value.remedy
    assert str(version) in refused.value.remedy
    listing = rs.detect(version, "shards").source.list_samples()
    assert len(listing.samples) == 9
    assert {*rs.open(version).splits} == {*listing.splits} == {"train", "test"}


def test_names_that_differ_from_the_document(folder: Path, tmp_path: Path) -> None:
    """They are reported, a glob opens them, and `salvage` recovers all records."""
    for number, shard in enumerate(sorted(folder.glob("*.tfrecord*"))):
        shard.rename(folder / f"shard{number}.tfr")
    for name in ("features.json", None):
        with raises(CorruptDataError, defect=Defect.MISSING_SHARD) as refused:
            rs.open(folder)
        assert refused.value.found.startswith("shard0.tfr, shard1.tfr")
        assert refused.value.expected.endswith("as in dataset_info.json")
        defects = rs.verify(folder).defects
        assert {error.defect for error in defects} == {Defect.MISSING_SHARD}
        assert {error.found for error in defects} == {refused.value.found}
        assert len(rs.open(folder / "*.tfr")) == 9
        report = rs.salvage(folder, tmp_path / f"rescued without {name}")
        assert report.record_count == 9
        assert not report.is_complete
        if name is not None:
            (folder / name).unlink()


@pytest.mark.parametrize("has_features", [True, False])
def test_a_document_without_shards_names_the_splits(folder: Path, has_features: bool) -> None:
    document = json.loads((folder / "dataset_info.json").read_text())
    for split in document["splits"]:
        del split["shardLengths"]
    (folder / "dataset_info.json").write_text(json.dumps(document))
    if not has_features:
        (folder / "features.json").unlink()
    assert {*rs.open(folder).splits} == {"train", "test"}
    assert len(rs.open(folder, split="train")) + len(rs.open(folder, split="test")) == 9


def test_open_names_the_folder_of_the_version(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data/name").mkdir(parents=True)
    version = folder.rename(tmp_path / "data/name/1.0.0")
    with raises(OptionError, option="paths", value=tmp_path / "data") as refused:
        rs.open(tmp_path / "data")
    assert str(version) in refused.value.problem


def _label(count: int) -> dict[str, Any]:
    content = {"numClasses": str(count)}
    return document_of("ClassLabel", "class_label_feature", classLabel=content)


def _grey(**content: Any) -> dict[str, Any]:
    shape = {"dimensions": ["-1", "-1", "1"]}
    return document_of(
        "Image", "image_feature", image={"shape": shape, "dtype": "uint8", **content}
    )


def _objects(**features: Any) -> dict[str, Any]:
    box = {"shape": {"dimensions": ["4"]}, "dtype": "float32"}
    found = {"bbox": document_of("BBoxFeature", "bounding_boxes", boundingBox=box), **features}
    content = {"feature": features_dict(found), "length": "-1"}
    return document_of("Sequence", "sequence_feature", sequence=content)


IMAGE, MASK = "image/encoded", "image/segmentation/class/encoded"
LABEL, OBJECT_LABEL = "image/class/label", "image/object/class/label"


@pytest.mark.parametrize(
    ("features", "supervised", "expected"),
    [
        ({"x": image_feature(), "y": _label(2)}, (), {"x": IMAGE, "y": LABEL}),
        ({"text": text_feature(), "label": _label(2)}, (), {}),
        ({"a": image_feature(), "b": image_feature()}, (), {}),
        ({"a": image_feature(), "b": image_feature()}, ("b", "a"), {"b": IMAGE}),
        ({"a": image_feature(), "image": image_feature()}, (), {"image": IMAGE}),
        (
            {"image": _grey(), "label": _label(2), "other": _label(3)},
            (),
            {"image": IMAGE, "label": LABEL},
        ),
        ({"image": image_feature(), "u": _label(2), "v": _label(3)}, (), {"image": IMAGE}),
        (
            {"image": image_feature(), "u": _label(2), "v": _label(3)},
            ("image", "v"),
            {"image": IMAGE, "v": LABEL},
        ),
        ({"image": image_feature(), "the_mask": _grey()}, (), {"image": IMAGE, "the_mask": MASK}),
        ({"image": image_feature(), "m": _grey(useColormap=True)}, (), {"image": IMAGE, "m": MASK}),
        ({"noisy": _grey(), "clean": _grey()}, ("noisy", "clean"), {"noisy": IMAGE}),
        (
            {
                "image": image_feature(),
                "o": _objects(label=_label(2), is_crowd=tensor_feature("bool", [])),
            },
            (),
            {
                "image": IMAGE,
                "o/bbox": "image/object/bbox",
                "o/label": OBJECT_LABEL,
                "o/is_crowd": "image/object/is_crowd",
            },
        ),
        ({"image": image_feature(), "o": _objects(), "p": _objects()}, (), {"image": IMAGE}),
        (
            {"image": image_feature(), "image/filename": text_feature()},
            (),
            {"image": IMAGE, "image/filename": "image/filename"},
        ),
    ],
)
def test_roles(
    features: dict[str, Any], supervised: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert standard_keys(parse_features(features_dict(features)), supervised) == expected


def test_class_names_of_a_dataset_without_images(tmp_path: Path) -> None:
    features = {"text": text_feature(), "label": _label(2)}
    folder = write_by_hand(tmp_path / "x", features, [{"text": "good", "label": 1}])
    (folder / "label.labels.txt").write_text("neg\npos\n")
    listing = Tfds(folder).list_samples()
    assert listing.class_names == rs.open(folder).class_names == ("neg", "pos")


def test_features_of_old_versions() -> None:
    """The form of TFDS 4.0 to 4.4, with types and contents."""
    prefix = "tensorflow_datasets.core.features."
    document = {
        "type": f"{prefix}features_dict.FeaturesDict",
        "content": {
            "image": {
                "type": f"{prefix}image_feature.Image",
                "content": {"shape": [28, None, 1], "dtype": "uint8", "encoding_format": "png"},
            },
            "label": {
                "type": f"{prefix}class_label_feature.ClassLabel",
                "content": {"num_classes": 10},
            },
            "words": {
                "type": f"{prefix}sequence_feature.Sequence",
                "content": {
                    "feature": {"type": f"{prefix}text_feature.Text", "content": {}},
                    "length": None,
                },
            },
            "by proto": {
                "type": f"{prefix}tensor_feature.Tensor",
                "content": '{"shape": {"dimensions": ["2"]}, "dtype": "int8"}',
                "proto_cls": "tensorflow_datasets.TensorFeature",
            },
        },
    }
    image, label, words, tensor = parse_features(document)
    assert (image.shape, image.dtype) == ((28, None, 1), "uint8")
    assert label.class_count == 10
    assert (words.lengths, words.type) == ((None,), "Text")
    assert (tensor.shape, tensor.dtype) == ((2,), "int8")


def _nested(depth: int) -> dict[str, Any]:
    found = text_feature()
    for _ in range(depth):
        found = features_dict({"a": found})
    return found


@pytest.mark.parametrize(
    "features",
    [
        b"",
        b"[]",
        b"\xff\xfe\x00",
        b'{"a": ' * 1000 + b"1" + b"}" * 1000,
        b"[" * 100_000,
        json.dumps(_nested(300)).encode(),
        json.dumps(features_dict({"a": 3})).encode(),
        json.dumps(features_dict({"a": document_of("Tensor", "x", tensor=[1])})).encode(),
        json.dumps(features_dict({"a": tensor_feature("int8", [2**40])})).encode(),
        json.dumps(features_dict({"a": tensor_feature("int8", [], "lz4")})).encode(),
        json.dumps(
            features_dict({"a": document_of("Sequence", "x", sequence={"length": 3})})
        ).encode(),
        json.dumps(
            features_dict({"a/b": text_feature(), "a": features_dict({"b": text_feature()})})
        ).encode(),
        json.dumps(text_feature()).encode(),
        json.dumps(features_dict({"a": {"pythonClassName": 3}})).encode(),
        json.dumps(features_dict({"a" * 5000: text_feature()})).encode(),  # in each path below it
        b'{"pythonClassName": "a", "pythonClassName": "b"}',
    ],
)
def test_hostile_features_are_refused(folder: Path, features: bytes) -> None:
    (folder / "features.json").write_bytes(features)
    with raises(CorruptDataError, defect=Defect.BROKEN_MANIFEST, path=folder / "features.json"):
        Tfds(folder).list_samples()


def _split(**changes: Any) -> dict[str, Any]:
    return {"name": "train", "shardLengths": ["5"], **changes}


@pytest.mark.parametrize(
    "changes",
    [
        {"splits": {}},
        {"splits": [3]},
        {"splits": [_split(name="../../train")]},
        {"splits": [_split(filepathTemplate="../secret.tfrecord")]},
        {"splits": [_split(filepathTemplate="/etc/{SPLIT}")]},
        {"splits": [_split(filepathTemplate="{SPLIT}//x")]},
        {"splits": [_split(filepathTemplate="{HOME}")]},
        {"splits": [_split(filepathTemplate="{")]},
        {"splits": [_split(filepathTemplate="same", shardLengths=["1", "1"])]},
        {"name": "..\\x"},
        {"name": "../x"},
        {"splits": [_split(shardLengths=["-1"])]},
        {"splits": [_split(shardLengths=["many"])]},
        {"splits": [_split(shardLengths=["9" * 30])]},
        {"splits": [_split(shardLengths=["1"] * 1_000_001)]},
        {"splits": [_split(), _split()]},
        {"supervisedKeys": {"tuple": 3}},
    ],
)
@pytest.mark.parametrize("read", [lambda folder: Tfds(folder).list_samples(), rs.open])
def test_hostile_descriptions_are_refused(
    folder: Path, tmp_path: Path, changes: dict[str, Any], read: Callable[[Path], Any]
) -> None:
    for name in ("secret.tfrecord", "train", "x-train.tfrecord-00000-of-00001"):
        (tmp_path / name).mkdir()  # reading it would raise another error
    document = json.loads((folder / "dataset_info.json").read_bytes()) | changes
    (folder / "dataset_info.json").write_text(json.dumps(document))
    path = folder / "dataset_info.json"
    with raises(CorruptDataError, defect=Defect.BROKEN_MANIFEST, path=path):
        read(folder)


def test_lengths_that_disagree_are_refused(folder: Path) -> None:
    path = folder / "dataset_info.json"
    document = json.loads(path.read_bytes())
    document["splits"][0]["shardLengths"][0] = "7"
    path.write_text(json.dumps(document))
    with raises(CorruptDataError, defect=Defect.RECORD_COUNT, expected="7"):
        Tfds(folder).list_samples()


def test_missing_shards_are_named(folder: Path) -> None:
    first = min(folder.glob("*-train.*"))
    first.unlink()
    with raises(CorruptDataError, defect=Defect.MISSING_SHARD, path=first):
        Tfds(folder).list_samples()
    with raises(CorruptDataError, defect=Defect.MISSING_SHARD, path=first):
        rs.open(folder)
    assert len(rs.open(folder, "test")) == 4


def test_wrong_numbers_of_class_names_are_refused(folder: Path) -> None:
    path = folder / "label.labels.txt"
    path.write_text("ant\n")
    with raises(CorruptDataError, defect=Defect.BROKEN_MANIFEST, path=path, found="1"):
        Tfds(folder).list_samples()


def test_a_dataset_of_others_with_such_a_file_is_opened(folder: Path) -> None:
    """Hugging Face's `save_to_disk` writes a `dataset_info.json` as well."""
    (folder / "features.json").unlink()
    (folder / "dataset_info.json").write_text('{"splits": {"train": {}}}')
    assert len(rs.open(folder)) == 9


@pytest.mark.parametrize("format_", ["array_record", "riegeli"])
def test_other_file_formats_are_refused(folder: Path, format_: str) -> None:
    path = folder / "dataset_info.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"fileFormat": format_}))
    with raises(SourceError, path=path):
        Tfds(folder).list_samples()


def test_features_of_unknown_type_are_named(tmp_path: Path) -> None:
    features = {
        "a": document_of("Video", "video_feature", video={}),
        "b": {"pythonClassName": "my.project.Thing"},
        "c": text_feature(),
    }
    folder = write_by_hand(tmp_path / "x", features, [{"c": "text"}])
    with raises(SourceError, problems=("a is a Video", "b is a Thing")):
        Tfds(folder).list_samples()


@pytest.mark.parametrize(
    ("feature", "record", "defect"),
    [
        (text_feature(), {}, Defect.MISSING_FEATURE),
        (text_feature(), {"a": 3}, Defect.FEATURE_KIND),
        (tensor_feature("float32", [2]), {"a": [1.0]}, Defect.FEATURE_SHAPE),
        (tensor_feature("float32", [-1, 2]), {"a": [1.0]}, Defect.FEATURE_SHAPE),
        (tensor_feature("float32", [2], "bytes"), {"a": b"1234567"}, Defect.FEATURE_VALUE),
        (tensor_feature("float32", [-1], "bytes"), {"a": b"1234567"}, Defect.FEATURE_VALUE),
        (tensor_feature("float32", [2], "zlib"), {"a": b"no zlib"}, Defect.FEATURE_VALUE),
        (tensor_feature("float32", [2], "zlib"), {"a": b"x\x9c"}, Defect.FEATURE_VALUE),
        (image_feature(), {"a": b"no image"}, Defect.UNREADABLE_IMAGE),
    ],
)
def test_records_that_do_not_match_are_refused(
    tmp_path: Path, feature: dict[str, Any], record: dict[str, Any], defect: Defect
) -> None:
    folder = write_by_hand(tmp_path / "x", {"a": feature}, [record])
    listing = Tfds(folder).list_samples()
    path = folder / "x-train.tfrecord-00000-of-00001"
    with raises(CorruptDataError, defect=defect, path=path, record=0):
        listing.reader.read(listing.samples[0])


def test_a_record_that_changed_is_refused(folder: Path) -> None:
    listing = Tfds(folder).list_samples()
    path = folder / listing.samples[0].name.partition("/")[0]
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with raises(CorruptDataError, defect=Defect.PAYLOAD_CRC, path=path):
        listing.reader.read(listing.samples[0])


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with raises(OptionError, option="root"):
        Tfds(tmp_path).list_samples()


def test_verify_compares_the_number_of_records_with_the_document(tmp_path: Path) -> None:
    folder = write_by_hand(tmp_path / "x", {"a": text_feature()}, [{"a": "x"}, {"a": "y"}])
    assert not rs.verify(folder).defects
    with rs.ShardWriter(folder / "x-train.tfrecord-00000-of-00001", overwrite=True) as writer:
        writer.write_example({"a": "x"})
    (defect,) = rs.verify(folder).defects
    assert (defect.defect, defect.found, defect.expected) == ("record-count-mismatch", "1", "2")
    (folder / "x-train.tfrecord-00000-of-00001").write_bytes(b"")
    assert [defect.found for defect in rs.verify(folder).defects] == ["0"]
