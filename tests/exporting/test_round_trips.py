"""pack(export(x)) equals x, for every format that has a source."""

from __future__ import annotations

import io
import itertools
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import recordsmith as rs
from recordsmith.sources.tables.precision import LOST_DIGITS

_NUMBERS = itertools.count()
NAMES = ("image/filename", "image/source_id")  # the folder in them is that of the layout


def _image(seed: int) -> dict[str, Any]:
    pixels = np.random.default_rng(seed).integers(0, 5, (3, 4 + seed), np.uint8)
    files = []
    for kind in ("png", ("jpeg", "webp", "bmp")[seed]):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, kind)
        files.append(file.getvalue())
    return {
        "image/encoded": [files[1]],
        "image/format": [(b"jpeg", b"webp", b"bmp")[seed]],
        "image/height": np.array([3]),
        "image/width": np.array([4 + seed]),
        "image/segmentation/class/encoded": [files[0]],
        "image/segmentation/class/format": [b"png"],
    }


IMAGES = [_image(seed) for seed in range(3)]


def plain(example: Mapping[str, Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """A decoded example as lists; of names only the last part."""
    features: dict[str, Any] = {}
    for key, value in example.items():
        if key not in without:
            kind = "bytes" if isinstance(value, list) else str(value.dtype)
            features[key] = (kind if len(value) else "", list(value))
    for key in NAMES:
        if key in features:
            features[key] = features[key][1][0].rpartition(b"/")[2]
    return features


def examples_in(path: Any, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    examples = [plain(example, without) for example in rs.open(path)]
    return sorted(examples, key=repr)


def packed(source: Any, tmp_path: Path) -> Path:
    out = tmp_path / f"again-{next(_NUMBERS)}"
    report = rs.pack(source, out)
    assert not [notice for notice in report.notices if "hidden" in notice]  # an export's own note
    return out


def random_boxes(count: int, seed: int) -> dict[str, Any]:
    """Boxes at any float32, at whole pixels, and at the very edges."""
    generator = np.random.default_rng(seed)
    edges = np.sort(generator.random((count, 2, 2), np.float32), axis=1)
    edges[: count // 3] = np.sort(generator.permuted(np.arange(12))[:4].reshape(2, 2), axis=0) / 12
    edges[0] = [[0, 0], [1, 1]]
    labels = generator.integers(1, 4, count)
    return {
        "image/object/bbox/xmin": edges[:, 0, 0],
        "image/object/bbox/ymin": edges[:, 0, 1],
        "image/object/bbox/xmax": edges[:, 1, 0],
        "image/object/bbox/ymax": edges[:, 1, 1],
        "image/object/class/label": labels,
        "image/object/class/text": [("", "Cat", "cat", "ö & <dog>")[label] for label in labels],
    }


def test_image_folder(images: ModuleType, tmp_path: Path) -> None:
    folder = images.make_folder(tmp_path / "flowers", {"Rose": 5, "daisy": 4, "tulip 2": 3})
    rs.pack(rs.ImageFolder(folder), tmp_path / "out", seed=3)
    report = rs.export(tmp_path / "out", tmp_path / "images", "folder")
    assert (report.changed_names, report.problems, report.dropped_features) == ([], [], {})
    again = packed(rs.ImageFolder(tmp_path / "images"), tmp_path)
    assert rs.open(again).class_names == rs.open(tmp_path / "out").class_names
    assert examples_in(again) == examples_in(tmp_path / "out")
    for path in folder.rglob("*.*"):
        exported = tmp_path / "images" / path.relative_to(folder)
        assert exported.read_bytes() == path.read_bytes()


def test_image_folder_of_each_split(images: ModuleType, tmp_path: Path) -> None:
    folder = images.make_folder(tmp_path / "flowers", {"daisy": 8, "rose": 8})
    out = tmp_path / "out"
    rs.pack(rs.ImageFolder(folder), out, splits={"train": 0.5, "val": 0.5}, stratify=True, shards=2)
    rs.export(out, tmp_path / "images", "folder")
    for split in ("train", "val"):
        again = packed(rs.ImageFolder(tmp_path / "images" / split), tmp_path)
        first = sorted(map(repr, map(plain, rs.open(out, split))))
        assert sorted(map(repr, map(plain, rs.open(again)))) == first


def test_image_pairs(images: ModuleType, write: Any, image: Any, tmp_path: Path) -> None:
    source = rs.ImagePairs
    examples = []
    for number, mode in enumerate(("L", "P", "1")):
        mask = images.encode(images.noise(12, 8, seed=number).convert(mode), "PNG")
        more = {
            "image/segmentation/class/encoded": mask,
            "image/segmentation/class/format": "png",
        }
        examples.append(image(f"images/a/{number}.jpg", seed=number, more=more))
    records = write(train=examples)
    report = rs.export(records, tmp_path / "folder", "folder")
    assert (report.changed_names, report.dropped_features) == ([], {})
    assert examples_in(packed(source(tmp_path / "folder"), tmp_path)) == examples_in(records)
    records = write(train=examples[:2], val=examples[2:])
    rs.export(records, tmp_path / "splits", "pairs")
    again = packed(source(tmp_path / "splits"), tmp_path)
    assert examples_in(again) == examples_in(records)
    assert {name: len(part) for name, part in rs.open(again).splits.items()} == {
        "train": 2,
        "val": 1,
    }
    rs.export(records, tmp_path / "voc", "voc")
    assert examples_in(packed(source(tmp_path / "voc"), tmp_path)) == examples_in(records)


MORE_OF_OBJECTS: dict[str, dict[str, tuple[str, Any]]] = {  # kinds, and values by object and image
    "voc": {
        "image/object/difficult": ("int64", lambda k, number: (number + k) % 2),
        "image/object/truncated": ("int64", lambda k, _: k % 2),
        "image/object/view": ("bytes", lambda k, _: "Left" if k % 2 else "Unspecified"),
    },
    "coco": {
        "image/object/is_crowd": ("int64", lambda k, _: k % 2),
        "image/object/area": ("float", lambda k, _: 1.1 * k + 0.3),
        "image/object/id": ("int64", lambda k, number: 1000 * k + 7 * number),
    },
}


@pytest.mark.parametrize(
    ("format", "source"),
    [("voc", rs.Voc), ("coco", rs.Coco), ("yolo", rs.Yolo), ("webdataset", rs.WebDataset)],
)
def test_boxes(
    write: Any,
    image: Any,
    box_features: Any,
    box_kinds: Any,
    tmp_path: Path,
    format: str,
    source: Any,
) -> None:
    """Images with random boxes; the last has none."""
    more = MORE_OF_OBJECTS.get(format, {})
    examples = []
    for number, count in enumerate((7, 1, 3, 0)):
        features = {
            key: [value(k, number) for k in range(count)] for key, (_, value) in more.items()
        }
        features |= random_boxes(count, number) if count else box_features()
        features["image/source_id"] = (
            str(1000 + 7 * number) if format == "coco" else f"{number}.jpg"
        )
        examples.append(image(f"{number}.jpg", seed=number, width=97, height=64, more=features))
    records = write(box_kinds | {key: kind for key, (kind, _) in more.items()}, train=examples)
    out = tmp_path / "out"
    report = rs.export(records, out, format)
    assert (report.changed_names, report.dropped_features, report.problems) == ([], {}, [])
    options = {"label_map": out / "label_map.pbtxt"} if format == "voc" else {}
    assert examples_in(packed(source(out, **options), tmp_path)) == examples_in(records)


ATTRIBUTES: dict[str, Any] = {
    "bytes": lambda draw: draw.choice(["", "7", "true", "\xfc \U0001f600 '\"\n"]),
    "int64": lambda draw: draw.choice([0, -(2**63) + 1, 2**53 + 1]),
    "float": lambda draw: float(np.float32(draw.choice([2.0, 0.1, -1e-30, 3e38]))),
}


@pytest.mark.parametrize("count", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_captions_and_attributes(
    write: Any, image: Any, box_features: Any, box_kinds: Any, tmp_path: Path, count: int
) -> None:
    """Random captions, alone or with boxes, and random attributes of the objects."""
    for seed in range(count):
        draw = random.Random(seed)
        counts = [draw.randrange(4) for _ in range(draw.randint(1, 4))]
        names = {f"image/object/attribute/{n} \xfc": kind for n, kind in enumerate(ATTRIBUTES)}
        names = {key: kind for key, kind in names.items() if draw.random() < 0.5 and any(counts)}
        has_boxes, has_captions = draw.choice([(True, True), (True, False), (False, True)])
        kinds = {"image/caption": "bytes"} if has_captions else {}
        kinds |= box_kinds | names if has_boxes else {}
        examples = []
        for number, objects in enumerate(counts):
            more = {"image/source_id": str(number)}
            if has_captions:
                texts = ["a", '\xfc \\ "', "", "x\ny", "\U0001f600"]
                more["image/caption"] = draw.choices(texts, k=draw.randrange(6) or not number)
            if has_boxes:
                more |= random_boxes(objects, seed) if objects else box_features()
                for key, kind in names.items():
                    more[key] = [ATTRIBUTES[kind](draw) for _ in range(objects)]
                    if kind == "bytes" and objects:
                        more[key][0] = "first"
            examples.append(image(f"{number}.jpg", seed=number, width=9, height=8, more=more))
        records = write(kinds, train=examples)
        out = tmp_path / f"out-{seed}"
        report = rs.export(records, out, "coco")
        assert (report.dropped_features, report.problems) == ({}, [])
        again = packed(rs.Coco(out), tmp_path)
        more_of_coco = tuple(MORE_OF_OBJECTS["coco"])
        assert examples_in(again, more_of_coco) == examples_in(records)


def test_coco_with_instance_masks(
    write: Any, image: Any, box_features: Any, images: ModuleType, tmp_path: Path
) -> None:
    source = rs.Coco
    generator = np.random.default_rng(1)
    masks = [(generator.random((8, 12)) < share).astype(np.uint8) for share in (0.5, 0.1, 1)]
    more = box_features(*[(0.0, 0.25, 0.5, 1.0)] * 3) | {
        "image/source_id": "1",
        "image/object/is_crowd": [0, 1, 0],
        "image/object/area": [1.0, 2.0, 3.0],
        "image/object/id": [30, 10, 2**53 + 1],
        "image/object/mask": [images.encode(Image.fromarray(mask), "PNG") for mask in masks],
    }
    records = write(train=[image("a.jpg", more=more)])
    assert rs.export(records, tmp_path / "out", "coco").dropped_features == {}
    again = packed(source(tmp_path / "out", object_masks="instance"), tmp_path)
    (first,), (second,) = list(rs.open(records)), list(rs.open(again))
    without = ("image/object/mask",)
    assert plain(second, without) == plain(first, without)  # type: ignore[arg-type]
    found: Any = second["image/object/mask"]
    decoded = [np.asarray(Image.open(io.BytesIO(data))) for data in found]
    assert all(np.array_equal(one, other) for one, other in zip(decoded, masks, strict=True))


def rows(count: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(5)
    return [
        {
            "id": number,
            "large": -(2**63) + number,
            "score": float(np.float32(generator.random())),
            "whole": float(number),
            "code": f"{number:03d}",
            "text": ('a, "b"', "ä\nö", "", "NaN-ish")[number % 4],
        }
        for number in range(count)
    ]


def test_csv_of_scalars(write: Any, tmp_path: Path) -> None:
    source = rs.Table
    records = write(train=rows(20))
    rs.export(records, tmp_path / "out", "csv")
    again = packed(source(tmp_path / "out" / "train.csv"), tmp_path)
    assert examples_in(again) == examples_in(records)


def test_parquet(write: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = rs.Table
    examples = [
        row
        | {
            "pair": [0.5, number / 3],
            "ragged": list(range(number % 4)),
            "words": ["a", "b\0"][: number % 3],
            "binary": bytes(range(number)),
        }
        for number, row in enumerate(rows(20))
    ]
    for row in examples[5:8]:
        del row["id"]
    records = write({"ragged": "int64", "words": "bytes"}, train=examples)
    rs.export(records, tmp_path / "out", "parquet")
    again = packed(source(tmp_path / "out" / "train.parquet"), tmp_path)
    assert examples_in(again) == examples_in(records)


def same(one: Any, other: Any) -> bool:
    """The same bits; all NaN count as one, as JSON has no others."""
    if isinstance(one, list) or isinstance(other, list):
        return bool(one == other)
    bits = [value[value == value].tobytes() for value in (one, other)]  # noqa: PLR0124
    nans = [np.isnan(value).tolist() for value in (one, other)]
    return one.dtype == other.dtype and bits[0] == bits[1] and nans[0] == nans[1]


texts = st.text(max_size=6).map(str.encode)
marked = st.sampled_from([b'{"base64": "/w=="}', b'{"base64":"YQ=="}', b'["a"]', b"null", b"\xff"])
integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.sampled_from([-0.0, 3.4028234663852886e38, 1.401298464324817e-45, 16777216.0, 0.1])
floats = st.one_of(st.floats(width=32), numbers)
values = {
    "bytes": st.lists(st.one_of(st.binary(max_size=6), texts, marked), max_size=3),
    "int64": st.lists(integers, max_size=3).map(lambda items: np.array(items, np.int64)),
    "float": st.lists(floats, max_size=3).map(lambda items: np.array(items, np.float32)),
}
KEYS = ("image/filename", "image/class/label", "image/encoded", "image/source_id", "jpg", "txt",
        "image/segmentation/class/encoded", "json")  # fmt: skip


@st.composite
def any_examples(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records of any features, each of one kind; some with an image and its mask."""
    keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=4), st.just("b\udcff"))
    kinds = draw(st.dictionaries(keys, st.sampled_from(list(values)), max_size=6))
    kinds |= {key: "bytes" for key in kinds if key.endswith("encoded")}
    examples = []
    for seed in range(draw(st.integers(1, 3))):
        chosen = draw(st.sets(st.sampled_from(sorted(kinds)))) if kinds else set()
        example = {key: draw(values[kinds[key]]) for key in sorted(chosen)}
        if draw(st.booleans()):
            example |= IMAGES[seed]
            if draw(st.booleans()):
                example["image/encoded"] = example["image/encoded"] * draw(st.sampled_from([0, 2]))
        examples.append(example)
    return examples


@pytest.mark.slow
@settings(max_examples=50)
@given(any_examples())
def test_webdataset_of_any_features(examples: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with rs.ShardWriter(path / "records.tfrecord") as writer:
            for example in examples:
                writer.write_example(example)
        rs.export(path / "records.tfrecord", path / "out", "webdataset")
        report = rs.pack(rs.WebDataset(path / "out"), path / "again", shuffle=False)
        first, again = list(rs.open(path / "records.tfrecord")), list(rs.open(path / "again"))
    assert len(again) == len(first)
    assert LOST_DIGITS not in report.notes
    for one, other in zip(first, again, strict=True):
        assert list(other) == list(one)
        assert [key for key in one if not same(one[key], other[key])] == []
