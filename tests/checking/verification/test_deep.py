"""Deep verification: payloads parse and agree, and images match their records."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.checking.schema_file import SchemaFile
from recordsmith.checking.verification import verify_report as verification_report
from recordsmith.dataset import MANIFEST_NAME, records_of

from ...places import IS_ROOT, flip

D = rs.Defect


def _image(kind: str = "JPEG", size: tuple[int, int] = (40, 30), mode: str = "RGB") -> bytes:
    rng = np.random.default_rng(size[0])
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    pixels = rng.integers(0, 255, (size[1], size[0], *channels)).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels, mode).save(stream, kind)
    return stream.getvalue()


def _defects(path: Any, **options: Any) -> list[tuple[rs.Defect, int | None]]:
    assert rs.verify(path).is_good  # only the contents are wrong
    report = rs.verify(path, deep=True, **options)
    return [(error.defect, error.record) for error in report.defects]


def _sample(**changes: Any) -> dict[str, Any]:
    sample = {
        "image/encoded": _image(),
        "image/format": "jpeg",
        "image/height": 30,
        "image/width": 40,
        "image/class/label": 1,
    } | changes
    return {key: value for key, value in sample.items() if value is not None}


def test_good_images_of_all_formats(write, tmp_path: Path) -> None:
    examples = [
        _sample(),
        _sample(**{"image/format": "jpg"}),
        _sample(**{"image/encoded": _image("PNG", mode="RGBA"), "image/format": "PNG"}),
        _sample(**{"image/encoded": _image("GIF", mode="L"), "image/format": ".gif"}),
        _sample(**{"image/encoded": _image("BMP"), "image/format": None}),
        _sample(**{"image/encoded": _image("JPEG", mode="L")}),
    ]
    report = rs.verify(write(tmp_path / "a.tfrecord", examples), deep=True)
    assert report.is_good, report.defects
    assert report.image_count == len(examples)
    assert report.is_deep


@pytest.mark.parametrize("threads", [1, 3])
def test_defects_of_images(write, tmp_path: Path, threads: int) -> None:
    whole, png = _image(), _image("PNG")
    wrong: list[tuple[dict[str, Any], rs.Defect]] = [
        (_sample(**{"image/encoded": whole[: len(whole) // 2]}), D.UNREADABLE_IMAGE),
        (
            _sample(**{"image/encoded": png[: len(png) - 40], "image/format": "png"}),
            D.UNREADABLE_IMAGE,
        ),
        (_sample(**{"image/encoded": b""}), D.UNREADABLE_IMAGE),
        (_sample(**{"image/encoded": b"no image"}), D.UNREADABLE_IMAGE),
        (_sample(**{"image/height": 31}), D.IMAGE_SIZE),
        (_sample(**{"image/height": 40, "image/width": 30}), D.IMAGE_SIZE),
        (_sample(**{"image/encoded": png}), D.IMAGE_FORMAT),
        (_sample(**{"image/channels": 4}), D.IMAGE_SIZE),
    ]
    examples = [example for bad, _ in wrong for example in (_sample(), bad, _sample())]
    path = write(tmp_path / "a.tfrecord", examples)
    report = rs.verify(path, deep=True, threads=threads)
    assert [(error.defect, error.record) for error in report.defects] == [
        (defect, 3 * number + 1) for number, (_, defect) in enumerate(wrong)
    ]
    assert report.image_count == len(examples)
    for error in report.defects:
        assert error.record is not None
        place = records_of(rs.open(path)).locate_record(error.record)
        assert (error.path, error.offset) == (str(place.path), place.offset)
        assert error.feature == "image/encoded"
    assert "swapped" in report.defects[5].remedy


def test_masks_share_the_size_of_their_image(write, tmp_path: Path) -> None:
    mask = "image/segmentation/class/encoded"
    examples = [
        _sample(**{mask: _image("PNG", mode="L")}),
        _sample(**{mask: _image("PNG", (39, 30), mode="L")}),
        _sample(**{mask: b"\x89PNG\r\n\x1a\n"}),
    ]
    assert _defects(write(tmp_path / "a.tfrecord", examples)) == [
        (D.IMAGE_SIZE, 1),
        (D.UNREADABLE_IMAGE, 2),
    ]


def test_images_under_other_keys_and_thumbnails(write, tmp_path: Path) -> None:
    plain = {"image": _image(), "rows": 30, "cols": 40}
    path = write(tmp_path / "a.tfrecord", [plain, {**plain, "cols": 41}])
    assert _defects(path) == [(D.IMAGE_SIZE, 1)]
    small = _sample(**{"image/thumbnail": _image(size=(8, 6))})
    assert _defects(write(tmp_path / "b.tfrecord", [small])) == []


def test_size_of_raw_images(write, tmp_path: Path) -> None:
    raw = _sample(**{"image/encoded": bytes(30 * 40 * 3), "image/format": "raw", "image/depth": 3})
    short = {**raw, "image/encoded": bytes(30 * 40 * 3 - 1)}
    assert _defects(write(tmp_path / "a.tfrecord", [raw, short])) == [(D.IMAGE_SIZE, 1)]


@pytest.mark.parametrize("bad", [0, 7, 1500, 2999])
def test_one_record_with_another_kind(write, tmp_path: Path, bad: int) -> None:
    examples: list[dict[str, Any]] = [{"id": number, "x": 0.5} for number in range(3000)]
    examples[bad]["x"] = 1
    path = write(tmp_path / "a.tfrecord", examples)
    assert _defects(path) == [(D.FEATURE_KIND, bad)]


def test_malformed_payloads(write, tmp_path: Path) -> None:
    good = rs.encode_example({"a": [1, 2, 3], "b": b"some bytes"})
    sequence = rs.encode_sequence_example({"id": 1}, {"steps": [[1], [2]]})
    path = write(tmp_path / "a.tfrecord", [good] * 5 + [good[:-3], sequence, b"\xff\xff"] + [good])
    assert _defects(path) == [
        (D.MALFORMED_EXAMPLE, 5),
        (D.NOT_AN_EXAMPLE, 6),
        (D.NOT_AN_EXAMPLE, 7),
    ]


def test_shards_with_different_kinds(write, tmp_path: Path) -> None:
    for number in range(6):
        value: Any = 1.5 if number == 2 else 1
        name = f"train-{number:05d}-of-00006.tfrecord"
        write(tmp_path / name, [{"score": value, "id": number}] * 3)
    report = rs.verify(tmp_path, deep=True)
    (error,) = report.defects
    assert error.defect is D.FEATURE_KIND
    assert error.path == str(tmp_path / "train-00002-of-00006.tfrecord")
    assert (error.feature, error.found) == ("score", "float")
    assert error.expected == "int64, as in most other shards"


def test_mixed_kinds_in_the_manifest_are_still_a_defect(write, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a-00000-of-00002.tfrecord", [{"x": 1}] * 3)
    write(tmp_path / "in" / "a-00001-of-00002.tfrecord", [{"x": 0.5}] * 2)
    report = rs.edit(tmp_path / "in", tmp_path / "out", add={"y": 1})
    assert any("kind" in notice for notice in report.notices)
    (defect,) = rs.verify(tmp_path / "out", deep=True).defects
    assert defect.defect is rs.Defect.FEATURE_KIND
    assert Path(defect.path or "").name == "a-00001-of-00002.tfrecord"


def test_a_shard_with_another_message_type(write, tmp_path: Path) -> None:
    sequence = rs.encode_sequence_example({"id": 1}, {"steps": [[1], [2]]})
    for number in range(3):
        payload: Any = sequence if number == 1 else {"id": 1}
        write(tmp_path / f"{number}.tfrecord", [payload] * 2)
    report = rs.verify(tmp_path, deep=True)
    (error,) = report.defects
    assert (error.defect, error.path) == (D.NOT_AN_EXAMPLE, str(tmp_path / "1.tfrecord"))
    assert (error.found, error.expected) == ("SequenceExamples", "Examples")
    assert report.to_json()["explanations"]["not-an-example"]["advice"]


def test_a_record_with_another_message_type(write, tmp_path: Path, reference: Any) -> None:
    message = reference.messages().ExampleListWithContext()
    message.examples.add().features.feature["a"].int64_list.value.append(1)
    ranking = message.SerializeToString()
    sequence = rs.encode_sequence_example({"id": 1}, {"steps": [[1], [2]]})
    path = write(tmp_path / "a.tfrecord", [sequence] * 3 + [ranking])
    (error,) = rs.verify(path, deep=True).defects
    assert (error.defect, error.record) == (D.NOT_AN_EXAMPLE, 3)
    assert (error.found, error.expected) == ("a ranking list (ELWC)", "a SequenceExample")


def test_against_the_schema_of_a_manifest(tmp_path: Path, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(tmp_path / "out", {"train": [6, 4], "test": [3]})
    assert rs.verify(folder, deep=True).is_good
    document = json.loads((folder / MANIFEST_NAME).read_bytes())
    features = document["schema"]["features"]
    features["id"]["kind"] = "float"
    features["steps"]["max_length"] = 2
    del features["score"]
    features["more"] = {**features["name"]}
    (folder / MANIFEST_NAME).write_text(json.dumps(document))
    found = rs.verify(folder, deep=True, split="test").defects
    (path,) = folder.glob("test-*")
    assert {error.path for error in found} == {str(path)}
    assert {error.record for error in found} == {0, 1, 2}
    first = [error.defect for error in found if error.record == 1]  # id 11 has three steps
    assert sorted(first) == sorted(
        [D.MISSING_FEATURE, D.FEATURE_KIND, D.FEATURE_SHAPE, D.UNEXPECTED_FEATURE]
    )


def test_sequence_examples(write, tmp_path: Path) -> None:
    good = rs.encode_sequence_example({"id": 1}, {"words": [["a"], ["b", "c"]]})
    empty = rs.encode_sequence_example({"id": 2}, {})
    bad = rs.encode_sequence_example({"id": 2}, {"words": [[1]]})
    path = write(tmp_path / "a.tfrecord", [good, empty, good, bad, good])
    assert _defects(path) == [(D.FEATURE_KIND, 3)]


def test_objects_have_a_value_each(write, tmp_path: Path) -> None:
    """Records may lack a feature of objects, as in files of other programs."""
    keys = [f"image/object/{name}" for name in ("bbox/xmin", "class/label", "attribute/age")]
    counts = [(2, 2, 2), (0, 0, 0), (2, 1, 2), (1, 1, 0), (0, 1, 0), (3, 3, 4)]
    records = []
    for count in counts:
        values = ([0.5] * count[0], [1] * count[1], ["a"] * count[2])
        records.append({key: value for key, value in zip(keys, values, strict=True) if value})
    path = write(tmp_path / "a.tfrecord", records)
    report = rs.verify(path, deep=True)
    found = {(error.record, error.feature) for error in report.defects}
    assert found == {(2, keys[1]), (4, keys[1]), (5, keys[2])}
    assert {error.defect for error in report.defects} == {rs.Defect.FEATURE_SHAPE}
    assert rs.verify(path).is_good


def test_images_in_sequence_examples(write, tmp_path: Path) -> None:
    """Frames and an image of the context; the context stores their size."""
    frame, cut, small = _image(), _image()[:300], _image(size=(39, 30))
    size = {"image/height": 30, "image/width": 40}
    sequences = [
        (size, [[frame], [frame]]),
        (size, [[frame], [], [frame, cut]]),
        (size, [[small], [frame]]),
        (size | {"cover": cut}, [[frame]]),
        ({}, []),
    ]
    payloads = [
        rs.encode_sequence_example({"cover": frame} | context, {"image/encoded": frames})
        for context, frames in sequences
    ]
    path = write(tmp_path / "a.tfrecord", payloads)
    report = rs.verify(path, deep=True)
    assert report.image_count == 5 + 2 + 3 + 2 + 1
    assert [(e.defect, e.record, e.detail.split(":")[0]) for e in report.defects] == [
        (D.UNREADABLE_IMAGE, 1, "feature 'image/encoded', value 2"),
        (D.IMAGE_SIZE, 2, "feature 'image/encoded', value 0"),
        (D.UNREADABLE_IMAGE, 3, "feature 'cover'"),
    ]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_damaged_frames_are_found_too(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path, compression=compression) as writer:
        for number in range(20):
            writer.write_example({"x": number})
    flip(path, path.stat().st_size // 2)
    plain, deep = rs.verify(path), rs.verify(path, deep=True)
    assert not deep.is_good
    assert {error.defect for error in plain.defects} <= {error.defect for error in deep.defects}
    assert "second read" in deep.defects[0].remedy


def test_the_check_stops_at_the_limit_of_defects(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification_report, "MAX_DEFECTS_PER_SHARD", 5)
    path = write(tmp_path / "a.tfrecord", [*[{"a": 1}] * 60, *[{"a": "x"}] * 50])
    report = rs.verify(path, deep=True)
    assert report.defect_count == len(report.defects) == 5
    assert "not checked" in report.unchecked[0]


def test_records_without_bytes_and_files_without_records(write, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [b""] * 5)
    report = rs.verify(path, deep=True)
    assert (report.is_good, report.record_count) == (True, 5)
    rules: Any = {"format": "recordsmith-schema", "features": {"x": {"required": True}}}
    found = rs.verify(path, schema=SchemaFile.from_json(rules)).defects
    assert [(error.defect, error.record) for error in found] == [
        (D.MISSING_FEATURE, position) for position in range(5)
    ]
    mixed = write(tmp_path / "b.tfrecord", [b"", rs.encode_example({"x": 1}), b""])
    assert rs.verify(mixed, deep=True).is_good
    (tmp_path / "c.tfrecord").touch()
    report = rs.verify(tmp_path / "c.tfrecord", deep=True)
    assert report.is_good
    assert [error.defect for error in report.notices] == [D.EMPTY_FILE]


def test_a_dataset_without_records(tmp_path: Path, numbered: SimpleNamespace) -> None:
    folder = numbered.packed(tmp_path / "out", {"train": [0, 0]})
    assert rs.verify(folder).is_good
    assert rs.verify(folder, deep=True).is_good


@pytest.mark.posix
def test_a_pipe_is_read_once(write, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [{"x": number} for number in range(50)])
    pipe = tmp_path / "pipe.tfrecord"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()), daemon=True)
    writer.start()
    report = rs.verify(pipe, deep=True)
    writer.join()
    assert (report.is_good, report.record_count) == (True, 50)


@pytest.mark.posix
@pytest.mark.skipif(IS_ROOT, reason="root may read all files")
def test_unreadable_files(tmp_path: Path, numbered: SimpleNamespace) -> None:
    numbered.write_shard(tmp_path / "a.tfrecord", [1])
    path = numbered.write_shard(tmp_path / "b.tfrecord", [2])
    path.chmod(0)
    report = rs.verify(tmp_path)
    assert [(error.defect, error.path) for error in report.defects] == [
        (D.UNREADABLE_SHARD, str(path))
    ]
    assert report.record_count == 1
    path.chmod(0o600)
    tmp_path.chmod(0)
    with pytest.raises(rs.FileAccessError):
        rs.verify(tmp_path)
    tmp_path.chmod(0o700)
