"""A record that is not what was declared: the error says which, where, and what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serialized_tensors import serialized

import recordsmith as rs
from recordsmith.format.example.keys import BOX, KEYPOINT_VISIBILITY, KEYPOINT_X, KEYPOINT_Y
from recordsmith.image import encode_mask
from recordsmith.support.errors import CorruptDataError, Defect

MASK = encode_mask(np.eye(6, 5, dtype=np.uint8))
GOOD: dict[str, Any] = {
    "number": 3,
    "point": [0.5, 1.5],
    "list": [1, 2],
    "text": "abc",
    "raw": bytes(8),
    "tensor": serialized([1, 2], "int32"),
    "tensors": [serialized([1])] * 2,
    "pixels": np.arange(12),
    "floats": bytes(48),
    "height": 3,
    "depth": 1,
    "image": MASK,
    "mask": MASK,
    "masks": [MASK] * 2,
    "images": [MASK] * 2,
    **dict(zip(BOX, ([0.25], [0.25], [0.75], [1.0]), strict=True)),
    "classes": [1],
    KEYPOINT_X: [0.25, 0.75],
    KEYPOINT_Y: [0.25, 0.75],
    KEYPOINT_VISIBILITY: [2, 1],
}
BAD_AT = (2, 3)  # the shard, and the record in it
COUNTS = (5, 1, 8, 4)


def unscaled(key: str, dtype: Any) -> rs.Image:
    shape = ("height", 4, "depth")
    return rs.Image(key, 4, channels=1, raw_shape=shape, raw_dtype=dtype)


LIST = rs.Image("images", 8, count="ragged")
OF_BOXES = {"image": rs.Image("image", 8), "boxes": rs.Boxes(labels=None),
            "x": rs.Mask("mask", of="boxes", count="padded")}  # fmt: skip
POINTS = {"boxes": rs.Boxes(labels="classes"), "x": rs.Keypoints(points=2)}
OF_LIST = {"image": LIST, "x": rs.Mask("masks", count="ragged")}

# feature, what one record has instead, defect, words of the error
CASES: list[tuple[Any, dict[str, Any], Defect, str]] = [
    (rs.Scalar("number"), {"number": None}, Defect.MISSING_FEATURE,
     r"'number' is missing.* expected shape \(\)\. Declare a default"),
    (rs.Scalar("number"), {"number": 0.5}, Defect.FEATURE_KIND,
     "'number' .* found float, expected int64"),
    (rs.Scalar("number"), {"number": [1, 2]}, Defect.FEATURE_SHAPE,
     r"'number' .* found 2 values, expected shape \(\)"),
    (rs.Scalar("number", dtype="uint8"), {"number": 256}, Defect.FEATURE_VALUE,
     "'number' .* uint8 .* found 256"),
    (rs.Tensor("point", (2,)), {"point": [1.0]}, Defect.FEATURE_SHAPE,
     r"'point' .* found 1 value, expected shape \(2,\)"),
    (rs.Tensor("point", (2,), dtype="float16"), {"point": [1.0, 1e9]}, Defect.FEATURE_VALUE,
     "'point' .* float16 .* found 1000000000.0"),
    (rs.Ragged("list"), {"list": ["a"]}, Defect.FEATURE_KIND,
     "'list' .* found bytes, expected int64"),
    (rs.Padded("list", 2), {"list": [1, 2, 3]}, Defect.FEATURE_SHAPE,
     "'list' .* found 3 values, expected at most 2"),
    (rs.Bytes("text"), {"text": ["a", "b"]}, Defect.FEATURE_SHAPE,
     r"'text' .* found 2 values, expected shape \(\)"),
    (rs.Text("text"), {"text": b"a\xffb"}, Defect.FEATURE_VALUE,
     r"'text' is not UTF-8.* found b'a\\xffb'"),
    (rs.Text("text", choose="random"), {"text": None}, Defect.FEATURE_VALUE, "no values"),
    (rs.Raw("raw", (2,), "float32"), {"raw": bytes(7)}, Defect.FEATURE_SHAPE,
     r"'raw' .* found 7 bytes, expected 8 bytes for shape \(2,\) of float32"),
    (rs.Serialized("tensor"), {"tensor": serialized(np.zeros(3, "int32"))}, Defect.FEATURE_SHAPE,
     r"'tensor' .* found int32 \[3\], expected int32 \[2\]"),
    (rs.Serialized("tensor", "ragged"), {"tensor": serialized(np.zeros(2, "uint8"))},
     Defect.FEATURE_VALUE, r"'tensor' .* found uint8 \[2\], expected int32"),
    (rs.Serialized("tensors", (1,)), {"tensors": [serialized([1]), serialized([1, 2])]},
     Defect.FEATURE_SHAPE, r"found int64 \[2\]"),
    (rs.Serialized("tensor", (None,)), {"tensor": serialized([1, 2], "int32")[:-1]},
     Defect.FEATURE_VALUE, "'tensor': the bytes are not a serialised tensor"),
    (rs.Stack(["point"], (2,)), {"point": [1.0]}, Defect.FEATURE_SHAPE,
     "'point' .* found 1 value, expected shape"),
    (rs.Stack(["point"], (2,)), {"point": None}, Defect.MISSING_FEATURE, "'point' is missing"),
    (rs.Stack(["point"], (2,)), {"point": [1, 2]}, Defect.FEATURE_KIND, "found int64"),
    (rs.Stack(["list", "point"], (2,), dtype="float16"), {"point": [1.0, 1e9]},
     Defect.FEATURE_VALUE, "'point' .* float16"),
    (unscaled("floats", "float32"), {"floats": bytes(47)}, Defect.FEATURE_SHAPE, "found 47 bytes"),
    (unscaled("floats", "float32"), {"floats": bytes(96), "depth": 2}, Defect.FEATURE_SHAPE,
     "found 2, expected 1"),
    (unscaled("floats", "float32"), {"height": 2**40, "depth": 2**40}, Defect.FEATURE_SHAPE,
     "found 48 bytes"),
    (unscaled("pixels", "uint8"), {"pixels": [0] * 11}, Defect.FEATURE_SHAPE, "found 11 values"),
    (unscaled("pixels", "uint8"), {"pixels": [256] * 12}, Defect.FEATURE_VALUE, "raw_dtype"),
    (unscaled("pixels", "uint16"), {"pixels": [-1] * 12}, Defect.FEATURE_VALUE, "raw_dtype"),
    (unscaled("pixels", "float32"), {"pixels": [2**24 + 1] * 12}, Defect.FEATURE_VALUE,
     "raw_dtype"),
    (LIST, {"images": [MASK, MASK, b"?"]}, Defect.UNREADABLE_IMAGE, "image 2 of 3"),
    (rs.Image("images", 8, count="padded", length=3), {"images": [MASK] * 4},
     Defect.FEATURE_SHAPE, "found 4 images, expected at most 3"),
    (OF_LIST, {"masks": [MASK] * 3}, Defect.FEATURE_SHAPE, "found 3 masks, expected 2"),
    (OF_BOXES, {"mask": [MASK] * 2}, Defect.FEATURE_SHAPE, "found 2 masks, expected 1"),
    (OF_BOXES, {"mask": [encode_mask(np.ones((3, 4), np.uint8))]}, Defect.FEATURE_SHAPE, "4 x 3"),
    (OF_BOXES, {"mask": [b""]}, Defect.UNREADABLE_IMAGE, "mask 0 of 1: .*empty"),
    (OF_BOXES, {"mask": [b"junk"]}, Defect.UNREADABLE_IMAGE, "mask 0 of 1"),
    (OF_BOXES, {"mask": [MASK[:45]]}, Defect.UNREADABLE_IMAGE, "mask 0 of 1"),
    (rs.Boxes(labels="classes"), {"classes": [1, 2]}, Defect.FEATURE_SHAPE,
     "'classes' 2; 1 object, expected one for each box"),
    (rs.Boxes(labels="classes"), {BOX[0]: [7.5]}, Defect.FEATURE_VALUE,
     "'image/object/bbox/ymin' 7.5.*expected fractions"),
    (POINTS, {KEYPOINT_X: [0.1] * 3}, Defect.FEATURE_SHAPE,
     "point/x' 3, .* 1 object, expected 2 points"),
    (POINTS, {KEYPOINT_X: [0.1, 640.0]}, Defect.FEATURE_VALUE, "x 640, y 0.75, visibility 1"),
]  # fmt: skip


def written(folder: Path, changes: dict[str, Any], bad_at: tuple[int, int] = BAD_AT) -> rs.Dataset:
    """Shards of which one record is changed; None takes a feature away."""
    for shard, count in enumerate(COUNTS):
        with rs.ShardWriter(folder / f"{shard}.tfrecord") as writer:
            for number in range(count):
                example = {**GOOD, **(changes if (shard, number) == bad_at else {})}
                example["at"] = sum(COUNTS[:shard]) + number
                kept = {key: value for key, value in example.items() if value is not None}
                writer.write_example(kept)
    return rs.open(folder)


def offset_of(path: Path, number: int) -> int:
    """Where a record's frame begins, counted by the lengths in the file."""
    data, offset = path.read_bytes(), 0
    for _ in range(number):
        offset += int.from_bytes(data[offset : offset + 8], "little") + 16
    return offset


def loader_of(dataset: rs.Dataset, feature: Any, **options: Any) -> rs.Loader:
    """The schema is not known, and the first records that are looked at are good ones."""
    features = feature if isinstance(feature, dict) else {"x": feature}
    features = {**features, "at": rs.Scalar("at")}
    return rs.Loader(dataset, features, batch_size=4, **options)


@pytest.fixture(autouse=True)
def _look_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    from recordsmith.loading.order import inputs

    monkeypatch.setattr(inputs, "PREVIEW_COUNT", 4)


@pytest.mark.parametrize(("feature", "changes", "defect", "words"), CASES)
@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_error_says_which_record(
    tmp_path: Path, feature: Any, changes: Any, defect: Defect, words: str, threads: int,
    *, shuffle: bool,
) -> None:  # fmt: skip
    dataset = written(tmp_path, changes)
    with loader_of(dataset, feature, threads=threads, shuffle=shuffle, skip_errors=1) as loader:
        kept = list(loader)
        ats = sorted(at for batch in kept for at in batch["at"].tolist())
        assert ats == [*range(9), *range(10, sum(COUNTS))]
        assert len({str(row) for batch in kept for row in batch["x"].tolist()}) == 1, "all are GOOD"
        assert [fault.defect for fault in loader.skipped] == [defect]
    with loader_of(dataset, feature, threads=threads, shuffle=shuffle) as loader:
        with pytest.raises(CorruptDataError, match=words) as caught:
            list(loader)
        assert loader.skipped == []
    error, path = caught.value, tmp_path / f"{BAD_AT[0]}.tfrecord"
    assert (error.defect, error.path, error.record) == (defect, str(path), BAD_AT[1])
    assert error.offset == offset_of(path, BAD_AT[1])
    feature = feature["x"] if isinstance(feature, dict) else feature
    key = feature.keys[-1] if isinstance(feature, rs.Stack) else getattr(feature, "key", None)
    key = feature.keys[0] if isinstance(feature, rs.Keypoints) else key
    if isinstance(feature, rs.Boxes):  # of several features
        key = "classes" if defect == Defect.FEATURE_SHAPE else None
    assert error.feature == key
    assert f"{path}, record {BAD_AT[1]}, byte {error.offset}: {defect}" in str(error)


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_positions_find_the_records_again(tmp_path: Path, threads: int, *, shuffle: bool) -> None:
    dataset = written(tmp_path, {})[3:16]
    features = {"position": rs.Position(), "at": "at", "text": rs.Text("text"),
                "list": rs.Ragged("list")}  # fmt: skip
    with rs.Loader(dataset, features, batch_size=4, threads=threads, shuffle=shuffle,
                   filter=lambda example: example["at"] % 3 > 0) as loader:  # fmt: skip
        seen = list(loader)
    positions = np.concatenate([batch["position"] for batch in seen])
    assert positions.dtype == np.int64
    ats = [at for batch in seen for at in batch["at"].tolist()]
    assert sorted(ats) == [at for at in range(3, 16) if at % 3]
    assert [dataset[at]["at"].tolist()[0] for at in positions.tolist()] == ats  # type: ignore[union-attr, index]
    assert {len(batch["text"]) for batch in seen} == {len(batch["at"]) for batch in seen}
    assert all(batch["list"].tolist() == [[1, 2]] * len(batch["at"]) for batch in seen)
