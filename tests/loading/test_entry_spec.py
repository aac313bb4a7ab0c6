"""What is told of the entries of batches is what they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import ShardWriter

FEATURES: dict[str, Any] = {
    "image": rs.Image("image", size=(8, 6), dtype="float32", layout="CHW"),
    "free": rs.Image("image", fit="pad"),
    "patches": rs.Patches((4, 5), 3, key="image", layout="CHW"),
    "boxes": rs.Boxes(("top", "left", "bottom", "right"), labels=None, of="patches"),
    "points": rs.Keypoints(("left", "top", "seen"), "patches", points=1),
    "list": rs.Image("list", size=(3, 2), count="ragged"),
    "list_room": rs.Image("list", fit="pad", count="padded", length=7),
    "id": rs.Scalar("id"),
    "corner": rs.Tensor("corner", (2,), dtype="float16"),
    "stack": rs.Stack(["id", "id"], (), dtype="int32"),
    "label": rs.Label("name", class_names=[f"n{number}" for number in range(5)]),
    "labels": rs.Label("words", "ragged", class_names=["a"]),
    "one": rs.OneHot("id", 5),
    "hot": rs.MultiHot("many", 5, dtype="bool", stored="numbers"),
    "many": rs.Ragged("many"),
    "padded": rs.Padded("many"),
    "room": rs.Padded("many", 9),
    "name": rs.Bytes("name"),
    "words": rs.Bytes("words", "ragged"),
    "title": rs.Text("name"),
    "texts": rs.Text("words", "ragged"),
    "raw": rs.Raw("raw", (2, 2), "uint8"),
    "at": rs.Position(),
}
SPECS = {
    "image": ("numbers", "float32", (3, 8, 6), False),
    "free": ("numbers", "uint8", (None, None, 3), False),
    "free_sizes": ("numbers", "int64", (2,), False),
    "patches": ("numbers", "uint8", (3, 3, 4, 5), False),
    "patches_offsets": ("numbers", "int64", (3, 2), False),
    "boxes": ("numbers", "float32", (3, None, 4), False),
    "boxes_lengths": ("numbers", "int64", (3,), False),
    "points": ("numbers", "float32", (3, None, 1, 2), False),
    "points_visible": ("numbers", "int64", (3, None, 1), False),
    "list": ("numbers", "uint8", (None, 3, 2, 3), True),
    "list_room": ("numbers", "uint8", (7, None, None, 3), False),
    "list_room_sizes": ("numbers", "int64", (7, 2), False),
    "list_room_lengths": ("numbers", "int64", (), False),
    "id": ("numbers", "int64", (), False),
    "corner": ("numbers", "float16", (2,), False),
    "stack": ("numbers", "int32", (2,), False),
    "label": ("numbers", "int64", (), False),
    "labels": ("numbers", "int64", (None,), True),
    "one": ("numbers", "float32", (5,), False),
    "hot": ("numbers", "bool", (5,), False),
    "many": ("numbers", "int64", (None,), True),
    "padded": ("numbers", "int64", (None,), False),
    "padded_lengths": ("numbers", "int64", (), False),
    "room": ("numbers", "int64", (9,), False),
    "room_lengths": ("numbers", "int64", (), False),
    "name": ("bytes", None, (), False),
    "words": ("bytes", None, (None,), True),
    "title": ("text", None, (), False),
    "texts": ("text", None, (None,), True),
    "raw": ("numbers", "uint8", (2, 2), False),
    "at": ("numbers", "int64", (), False),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, images: Any) -> rs.Dataset:
    folder = tmp_path_factory.mktemp("specs")
    with ShardWriter(folder / "a.tfrecord") as writer:
        for number in range(5):
            writer.write_example(
                {
                    "image": images.jpeg(number, 7 + number, 9),
                    "list": [images.jpeg(number, 7, 9)] * number,
                    "id": number,
                    "corner": [1.0, 2.0],
                    "many": list(range(number)),
                    "name": f"n{number}",
                    "words": ["a"] * number,
                    "raw": bytes(4),
                    **{side: [0.0] * number for side in ("top", "left")},
                    **{side: [1.0] * number for side in ("bottom", "right")},
                    "seen": [2] * number,
                }
            )
    return rs.open(folder)


def unchanged(what: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    return what


def told(specs: Any) -> dict[str, Any]:
    return {
        name: (spec.kind, spec.dtype and spec.dtype.name, spec.shape[1:], spec.is_ragged)
        for name, spec in specs.items()
    }


def test_every_feature_has_its_spec(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, FEATURES, batch_size=2)
    assert told(loader.spec()) == SPECS
    assert {spec.shape[0] for spec in loader.spec().values()} == {None}
    assert loader.state_dict() == loader.state_after(0), "nothing was read"
    batches = list(loader)
    for name, spec in loader.spec().items():
        for batch in batches:
            entry = batch[name]
            if spec.is_ragged:
                assert isinstance(entry, rs.RaggedArray) or spec.kind == "text"
                continue
            assert len(entry.shape) == len(spec.shape)
            assert all(a in (None, b) for a, b in zip(spec.shape, entry.shape, strict=True))
            assert spec.dtype is None or spec.dtype == entry.dtype


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"last_batch": "drop"}, 2),
        ({"last_batch": "pad"}, 2),
        ({"last_batch": "drop", "filter": bool}, None),
        ({"last_batch": "drop", "skip_errors": 1}, None),
        ({"last_batch": "drop", "map_examples": unchanged}, 2),
        ({"last_batch": "drop", "map_batches": unchanged}, None),
    ],
)
def test_the_batch_size_is_told_where_it_never_differs(
    dataset: rs.Dataset, options: Any, size: int | None
) -> None:
    loader = rs.Loader(dataset, {"id": "id"}, batch_size=2, **options)
    assert loader.spec()["id"].shape == (size,)


def test_what_maps_make_is_looked_at(dataset: rs.Dataset) -> None:
    def changed(batch: dict[str, Any], generator: Any) -> dict[str, Any]:
        return {"twice": np.stack([batch["id"]] * 2, 1).astype(np.int16), "words": batch["texts"]}

    def first_is_empty(example: dict[str, Any]) -> bool:
        return bool(example["id"] >= 2)

    features = {"id": FEATURES["id"], "texts": FEATURES["texts"]}
    loader = rs.Loader(
        dataset, features, batch_size=2, map_batches=changed, filter=first_is_empty
    )  # fmt: skip
    assert told(loader.spec()) == {
        "twice": ("numbers", "int16", (2,), False),
        "words": ("text", None, (None,), True),
    }
    assert loader.epoch == 0
    nothing = rs.Loader(dataset[:0], features, batch_size=2, map_batches=changed)
    assert list(nothing.spec()) == ["id", "texts"]


def test_pixels_lie_where_frameworks_take_them_without_a_copy(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, {"image": FEATURES["image"]}, batch_size=1, epochs=4)
    assert not any(batch["image"].ctypes.data % 64 for batch in loader)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"batch_size": 2},
            r"has 1 of the 2 records of a step; pass last_batch='drop'",
        ),
        ({"batch_size": 1, "world_size": 3}, "has 2 of the 3 records"),
        ({"batch_size": 5, "skip_errors": 1}, "skip_errors.* removes rows"),
        ({"batch_size": 5, "filter": bool}, "filter.* removes rows"),
        ({"batch_size": 5}, None),
        ({"batch_size": 2, "last_batch": "drop"}, None),
        ({"batch_size": 2, "last_batch": "pad"}, None),
    ],
)
def test_why_batches_may_be_shorter(dataset: rs.Dataset, options: Any, words: str | None) -> None:
    loader = rs.Loader(dataset, {"id": "id"}, **options)
    if words is None:
        assert not loader.session.shorter_batches
        assert {len(batch["id"]) for batch in loader} == {loader.batch_size}
    else:
        assert re.search(words, loader.session.shorter_batches)
