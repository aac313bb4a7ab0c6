"""Options that are invalid, alone or together, are refused by name when an object is made."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs
from recordsmith.dataset.opening import _EXPLAINED as OPEN
from recordsmith.format.example.keys import BOX
from recordsmith.loading.features.images.image import _EXPLAINED as IMAGES
from recordsmith.loading.loader import _EXPLAINED as LOADER
from recordsmith.writing.packing.pack import _EXPLAINED as PACK

IMAGE = {"size": 4}
CROP = {"size": 4, "fit": "random-crop"}
FLOATS = {"size": 4, "dtype": "float32"}
PAD = {"fit": "pad"}
UNSCALED = {"size": 4, "raw_shape": (3, 4, 3), "raw_dtype": "float32"}
PATCHES = {"size": 8, "count": 1}
KEY = {"key": "k"}
TENSOR = {"key": "k", "shape": (2,)}
STACK = {"keys": ["a", "b"], "shape": (2,)}
RAW = {"key": "k", "shape": (2,), "dtype": "uint8"}

NOT_NUMBERS = ("no such type", "S3", object, "datetime64[s]", 5)
STEPS = {"feature": rs.Scalar("k")}
FEATURES: list[tuple[Any, dict[str, Any], str, list[dict[str, Any]]]] = [
    # a class, options that are valid, the option that is refused, and the options of each call
    (rs.Image, IMAGE, "key", [{"key": 224}]),
    (rs.Image, {}, "size", [{"size": size} for size in (0, True, (4, 5, 3), (4.0, 5), 65_000)]),
    (rs.Image, PAD, "size", [{"size": 4}]),
    (rs.Image, IMAGE, "fit", [{"fit": "squeeze"}, {"fit": np.array([1, 2])}]),
    (rs.Image, IMAGE, "channels", [{"channels": 2}, {"channels": True}]),
    (rs.Image, IMAGE, "dtype", [{"dtype": "float16"}]),
    (rs.Image, IMAGE, "layout", [{"layout": "NHWC"}]),
    (rs.Image, IMAGE, "flip", [{"flip": True}]),
    (rs.Image, IMAGE, "exact", [{"exact": "yes"}]),
    (rs.Image, IMAGE, "mean", [{"mean": 0.5}]),
    (rs.Image, FLOATS, "mean", [{"mean": (1, 2)}, {"mean": "abc"}]),
    (rs.Image, IMAGE, "std", [{"std": 0.5, "dtype": "uint16"}]),
    (rs.Image, FLOATS, "std", [{"std": (1, 0, 1)}, {"std": float("nan")}]),
    (rs.Image, FLOATS, "mean", [{"mean": 123}, {"mean": (0.5, 103.5, 0.5), "std": 0.2}]),
    (rs.Image, IMAGE, "shorter_side", [{"shorter_side": 8}]),
    (rs.Image, IMAGE, "shorter_side", [{"fit": "center-crop", "shorter_side": 3}]),
    (rs.Image, PAD, "shorter_side", [{"shorter_side": 0}]),
    (rs.Image, IMAGE, "longer_side", [{"fit": "center-crop", "longer_side": 8}]),
    (rs.Image, IMAGE, "crop_area", [{"crop_area": (0.1, 1)}]),
    (rs.Image, CROP, "crop_area", [{"crop_area": (0, 1)}, {"crop_area": (0.5, 1.1)}]),
    (rs.Image, IMAGE, "crop_ratio", [{"crop_ratio": (0.1, 1)}]),
    (rs.Image, CROP, "crop_ratio", [{"crop_ratio": (2, 1)}, {"crop_ratio": 1}]),
    (rs.Image, IMAGE, "interpolation", [{"interpolation": "bilinear"}]),
    (rs.Image, IMAGE | {"interpolation": "area"}, "interpolation",
     [{"exact": True}, {"fit": "crop-or-pad"}]),
    (rs.Image, PAD, "interpolation", [{"interpolation": "area"}]),
    (rs.Image, IMAGE, "raw_dtype", [{"raw_dtype": "uint16"}]),
    (rs.Image, IMAGE, "raw_dtype", [{"raw_shape": (3, 4, 3), "raw_dtype": "int32"}]),
    (rs.Image, IMAGE, "count", [{"count": "some"},
                                {"count": "ragged", "raw_shape": ("h", "w", 3)}]),
    (rs.Image, IMAGE, "length", [{"count": "ragged", "length": 3},
                                 {"count": "padded", "too_long": "cut"},
                                 {"count": "padded", "length": -1}]),
    (rs.Image, UNSCALED, "dtype", [{"dtype": dtype} for dtype in ("uint8", "uint16", "float64")]),
    (rs.Image, UNSCALED, "channels", [{"channels": channels} for channels in (1, 4, "3")]),
    (rs.Patches, PATCHES | UNSCALED, "channels", [{"channels": 1}]),
    (rs.Mask, {}, "raw_dtype", [{"raw_shape": (3, 4), "raw_dtype": "float32"}]),
    (rs.Image, IMAGE, "raw_shape", [{"raw_shape": (3,)}, {"raw_shape": (0, 4)}]),
    (rs.Image, IMAGE, "raw_shape", [{"raw_shape": ("height",)}, {"raw_shape": "hwc"}]),
    (rs.Image, IMAGE, "max_pixels", [{"max_pixels": 0}]),
    (rs.Patches, PATCHES, "size", [{"size": size} for size in (None, 0, (3, 4, 5))]),
    (rs.Patches, PATCHES, "count", [{"count": count} for count in (0, 1.5, 70_000)]),
    (rs.Patches, PATCHES, "small", [{"small": "crop"}]),
    (rs.Patches, PATCHES, "channels", [{"channels": 2}]),
    (rs.Patches, PATCHES, "raw_shape", [{"raw_shape": (3,)}]),
    (rs.Mask, {}, "dtype", [{"dtype": "float32"}]),
    (rs.Mask, {}, "fill", [{"fill": 256}, {"fill": -1}]),
    (rs.Mask, {}, "fit", [{"fit": "squeeze"}]),
    (rs.Mask, {}, "size", [{"fit": "contain"}, {"size": 4, "fit": "pad"}]),
    (rs.Mask, {}, "of", [{"of": "image", "size": 4}]),
    (rs.Mask, {}, "raw_shape", [{"raw_shape": ("h", "w", 3)}]),
    (rs.Mask, {}, "raw_dtype", [{"raw_dtype": "uint16"}]),
    (rs.Mask, {}, "max_pixels", [{"max_pixels": "many"}]),
    (rs.Mask, {}, "values", [{"values": values} for values in (
        [255, 1], {1.0: 1}, {-1: 1}, {65536: 1}, {True: 1}, {1: 256}, {1: -1}, {1: "a"},
    )]),
    (rs.Boxes, {}, "keys", [{"keys": keys} for keys in (BOX[:3], ("a", "a", "b", "c"), "abcd")]),
    (rs.Boxes, {}, "order", [{"order": "xy"}]),
    (rs.Boxes, {}, "unit", [{"unit": "inch"}]),
    (rs.Boxes, {}, "min_visible", [{"min_visible": 1.5}, {"min_visible": "0"}]),
    (rs.Boxes, {}, "length", [{"length": -1}, {"too_long": "cut"}]),
    (rs.Boxes, {}, "fill", [{"fill": None}]),
    (rs.Boxes, {}, "label_fill", [{"label_fill": 0.5}]),
    (rs.Boxes, {}, "corners", [{"corners": "yes"}]),
    (rs.Keypoints, {}, "keys", [{"keys": keys} for keys in (("x", "y"), ("x", "y", "y"), "xyv")]),
    (rs.Keypoints, {}, "unit", [{"unit": "inch"}]),
    (rs.Keypoints, {}, "count", [{"count": 3}]),
    (rs.Keypoints, {}, "points", [{"points": points} for points in (0, 1.5, 1 << 17)]),
    (rs.Keypoints, {}, "outside", [{"outside": "drop"}]),
    (rs.Keypoints, {}, "flip_pairs", [{"flip_pairs": pairs} for pairs in (
        [0, 2, 1], 3, "ab", [(1, 2, 3)], [(1, 1)], [(1, 2), (2, 3)], [(-1, 2)], [(0.0, 1)],
    )]),
    *((feature, KEY, "dtype", [{"dtype": dtype} for dtype in NOT_NUMBERS])
      for feature in (rs.Scalar, rs.Padded, rs.Ragged)),
    (rs.Tensor, TENSOR, "dtype", [{"dtype": dtype} for dtype in NOT_NUMBERS]),
    (rs.Stack, STACK, "keys", [{"keys": keys} for keys in ("abc", [], [1], None)]),
    (rs.Stack, STACK, "shape", [{"shape": shape} for shape in ([2], "ragged", (-1,), None)]),
    (rs.Stack, STACK, "layout", [{"layout": "last"}]),
    (rs.Stack, STACK, "dtype", [{"dtype": "S3"}]),
    (rs.Stack, STACK, "default", [{"dtype": "uint8", "default": -1}]),
    (rs.Padded, KEY, "length", [{"length": length} for length in (-1, 2.5, "3", True)]),
    (rs.Padded, KEY, "length", [{"too_long": "cut"}]),
    (rs.Padded, KEY, "default", [{"length": 1, "default": [1, 2]}]),
    (rs.Padded, KEY, "too_long", [{"length": 3, "too_long": "drop"}]),
    (rs.Padded, KEY, "fill", [{"fill": fill, "dtype": dtype} for fill, dtype in (
        (0.5, "int64"), (300, "uint8"), (-1, "uint16"), ("0", None), (1e6, "float16"),
        (None, None), (2, "bool"), (2049, "float16"), (2**53 + 1, "float64"), (2**64, None),
    )]),
    (rs.Steps, STEPS, "feature", [{"feature": feature} for feature in (
        "k", rs.Position(), rs.Present("k"), rs.Steps(rs.Scalar("k")), rs.Boxes(), rs.Mask("k"),
        rs.Image("k", 8, count=2), rs.Image("k", 8, raw_shape=("h", "w", 3)),
    )]),
    (rs.Steps, STEPS, "feature", [{"feature": rs.Scalar("k", default=1)}]),
    (rs.Steps, STEPS, "length", [{"length": length} for length in (-1, 2.5, "longest", True)]),
    (rs.Steps, STEPS, "length", [{"too_long": "cut"}, {"length": "ragged", "too_long": "cut"}]),
    (rs.Steps, STEPS, "length", [{"feature": rs.Ragged("k"), "length": 2}]),
    (rs.Steps, STEPS, "too_long", [{"length": 3, "too_long": "drop"}]),
    (rs.Steps, STEPS, "frames", [{"frames": frames} for frames in (0, 1.5, True, 1 << 17)]),
    (rs.Steps, STEPS, "frames", [{"frames": 2, "length": 3}, {"choose": "random"}]),
    (rs.Steps, STEPS, "choose", [{"frames": 2, "choose": "all"}]),
    *((feature, KEY, option, [{option: value} for value in values])
      for feature in (rs.OneHot, rs.MultiHot)
      for option, values in {
          "classes": (0, 2.5, True, "3"), "stored": ("list", 3), "dtype": NOT_NUMBERS,
          "class_names": ("cat", 3, [1, 2]),
      }.items()),
    (rs.OneHot, KEY, "classes", [{"stored": "vector"}]),
    (rs.MultiHot, KEY, "classes", [{"stored": "vector"}]),
    (rs.OneHot, KEY | {"classes": 3}, "default", [{"default": value} for value in (3, -2, 0.5)]),
    (rs.Label, KEY, "default", [{"default": value} for value in (2**31, "cat", True)]),
    (rs.Raw, RAW, "dtype", [{"dtype": dtype} for dtype in (*NOT_NUMBERS[:4], None)]),
    (rs.Raw, RAW, "default", [{"default": default} for default in (256, 0.5, [1, 2])]),
    (rs.Raw, RAW, "shape", [{"shape": shape} for shape in (
        [2], 2, (-1,), ("a",), "ragged", (2.0,), None,
    )]),
    (rs.BlockShuffle, {}, "size", [{"size": size} for size in (0, 1.5, True)]),
    (rs.BlockShuffle, {}, "window", [{"window": 0}]),
    (rs.BucketBySize, {}, "window", [{"window": 0}]),
    (rs.BucketBySize, {}, "group", [{"group": 0}]),
    (rs.BucketBySize, {}, "by", [{"by": by} for by in (
        [[1], [2]], [[1], [2, 3]], ["a"], 3, [1.0, float("nan")],
    )]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "valid", "option", "calls"), FEATURES)
def test_features_and_orders(
    kind: Any, valid: dict[str, Any], option: str, calls: list[dict[str, Any]]
) -> None:
    for options in calls:
        with raises(rs.OptionError, option=option):
            kind(**valid | options)


LOADERS: dict[str, list[dict[str, Any]]] = {
    "batch_size": [{"batch_size": size} for size in (0, 2.5, None, True, "8", 4.0, 2**31)],
    "rank": [{"rank": 2, "world_size": 2}, {"rank": -1}, {"rank": 0.5}],
    "world_size": [{"world_size": 0}, {"world_size": 10**30}],
    "worker": [{"worker": 1}],
    "worker_count": [{"worker_count": 0}],
    "last_batch": [
        {"last_batch": "all"},
        {"last_batch": np.array([1, 2])},
        {"last_batch": "drop", "batch_size": 6, "world_size": 2},
    ],
    "threads": [{"threads": threads} for threads in (-1, "two", True)],
    "prefetch": [{"prefetch": -1}, {"prefetch": 1.0}],
    "seed": [{"seed": seed} for seed in ("x", None, 1.5, 2**64, True)],
    "skip_errors": [{"skip_errors": -1}, {"skip_errors": 0.1}],
    "epochs": [{"epochs": 0}],
    "shuffle": [{"shuffle": 1}, {"shuffle": "yes"}],
    "buckets": [{"buckets": 64}],
    "by": [{"buckets": rs.BucketBySize(by=[1, 2, 3])}],
    "dataset": [{"dataset": "folder"}, {"dataset": None}, {"dataset": []}],
    "shape": [{"features": {"x": rs.Tensor("id", None)}}],  # type: ignore[arg-type]
    "features": [
        *({"features": features} for features in ({}, [rs.Scalar("id")], ["id", "id"], "id")),
        *({"features": {"x": feature}} for feature in (rs.Scalar(["id"]), rs.Scalar("it"), 5)),  # type: ignore[arg-type]
        {"features": {3: rs.Scalar("id")}},
    ],
    "filter": [{"filter": 3}, {"filter": lambda: True}],
    "map_examples": [{"map_examples": lambda: 1}],
    "map_batches": [{"map_batches": lambda a, b, c: (a, b, c)}],
}


@pytest.fixture(scope="module")
def dataset(small: Any, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return small.write_shards(tmp_path_factory.mktemp("options"), [10])  # type: ignore[no-any-return]


@pytest.mark.parametrize("option", LOADERS)
def test_loaders(dataset: rs.Dataset, option: str) -> None:
    plain = {"dataset": dataset, "features": {"id": "id"}, "batch_size": 4}
    for options in LOADERS[option]:
        with raises(rs.OptionError, option=option):
            rs.Loader(**{**plain, **options})


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_weights_of_a_mix(dataset: rs.Dataset, weight: Any) -> None:
    with raises(rs.OptionError, option="parts"):
        rs.Mix([(dataset, 1), (dataset, weight)])


def test_mixes(small: Any, dataset: rs.Dataset, tmp_path: Any) -> None:
    for parts in ([], [dataset, dataset], [(dataset, 1), (dataset[:0], 1)]):
        with raises(rs.OptionError, option="parts"):
            rs.Mix(parts)  # type: ignore[arg-type]
    with raises(rs.OptionError, option="parts"):
        rs.Mix([(dataset, 1), (dataset, 1e-6)], length=19)
    for length in (0, 1.5, 2**31 + 1):
        with raises(rs.OptionError, option="length"):
            rs.Mix([(dataset, 1)], length=length)  # type: ignore[arg-type]
    zipped = small.write_shards(tmp_path / "z", [2], ["gzip"])
    with raises(rs.OptionError, option="dataset"):
        small.loader(rs.Mix([(dataset, 1), (zipped, 1)]), batch_size=1)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("drop_last drop_remainder", "last_batch='drop'"),
        ("num_workers num_parallel_calls max_workers persistent_workers", "threads"),
        ("pin_memory", "recordsmith.torch.batches"),
        ("prefetch_factor prefetch_buffer_size", "prefetch"),
        ("collate_fn", "map_batches"),
        ("sampler", "rs.Weighted"),
        ("batch_sampler", "rs.BucketBySize"),
        ("transform map map_func", "map_examples"),
        ("generator worker_init_fn", "seed"),
        ("repeat num_epochs", "epochs"),
        ("shuffle_buffer buffer_size", "shuffle=True"),
        ("num_replicas num_shards", "world_size"),
        ("shard_index", "rank"),
        ("dtype size", "rs.Image"),
        ("batch_sise", "batch_size"),
    ],
)
def test_options_of_other_libraries_name_ours(dataset: rs.Dataset, given: str, named: str) -> None:
    for name in given.split():
        with raises(rs.OptionError, option=name) as caught:
            rs.Loader(dataset, batch_size=4, **{name: 1})  # type: ignore[arg-type]
        assert named in caught.value.remedy


@pytest.mark.parametrize(
    ("function", "explained"),
    [(rs.Loader, LOADER), (rs.open, OPEN), (rs.pack, PACK), (rs.Image, IMAGES)],
)
def test_explained_options_are_not_ours_but_name_ours(
    function: Any, explained: dict[str, str]
) -> None:
    known = inspect.signature(function).parameters
    for names, remedy in explained.items():
        assert known.keys().isdisjoint(names.split())
        assert {*re.findall(r"^Pass (?!it\b|threads to)(\w+)", remedy)} <= known.keys()


def test_an_unknown_option_without_a_similar_one(dataset: rs.Dataset) -> None:
    with raises(rs.OptionError, option="zyx", remedy=""):
        rs.Loader(dataset, batch_size=4, zyx=1)  # type: ignore[call-arg]


def test_unknown_options_of_images_name_ours() -> None:
    for name, named in {"resize": "size", "normalize": "float32", "flipp": "'flip'"}.items():
        with raises(rs.OptionError, option=name) as caught:
            rs.Image(**{name: 1})  # type: ignore[arg-type]
        assert named in caught.value.remedy


def test_options_without_their_names(dataset: rs.Dataset) -> None:
    with pytest.raises(rs.OptionError, match="by name, such as batch_size="):
        rs.Loader(dataset, None, 8)  # type: ignore[misc, call-arg]
    with pytest.raises(rs.OptionError, match=r"rs\.open\('out'\)"):
        rs.Dataset("out")  # type: ignore[arg-type]
