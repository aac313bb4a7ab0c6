"""Folders for TensorFlow Datasets, by their documents; `tests/interop` loads them with TFDS."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import decode_image, decode_mask
from recordsmith.support.errors import OptionError, SourceError

from ..raising import raises
from ..repeating_engine import RepeatingEngine
from .conftest import BOX_KINDS, boxes


def _features(folder: Path) -> dict[str, Any]:
    """Each feature of `features.json`: the name of its class and its content."""

    def parsed(document: dict[str, Any]) -> Any:
        content = dict(document)
        name = content.pop("pythonClassName").rpartition(".")[2]
        (value,) = content.values()
        if name == "FeaturesDict":
            return {key: parsed(item) for key, item in value["features"].items()}
        if name in ("Sequence", "Dataset"):
            item = parsed(value["feature"])
            return [item] if name == "Sequence" else {"of each step": item}
        shape = tuple(map(int, value.get("shape", {}).get("dimensions", ())))
        found = name, shape, value.get("dtype")
        return (*found, "optional") if value.get("optional") else found

    return parsed(json.loads((folder / "features.json").read_bytes()))  # type: ignore[no-any-return]


TABLE: dict[str, tuple[list[Any], Any]] = {  # values of three records, and the feature
    "one": ([1, 2, 3], ("Scalar", (), "int64")),
    "float": ([0.5, 2.5, 3.0], ("Scalar", (), "float32")),
    "text": (["a", "é", ""], ("Text", (), None)),
    "three": ([[1, 2, 3]] * 3, ("Tensor", (3,), "int64")),
    "two texts": ([["a", "b"]] * 3, ("Tensor", (2,), "string")),
    "list": ([[1], [1, 2], []], [("Scalar", (), "int64")]),
    "texts": ([["a"], ["b", "c"], []], [("Text", (), None)]),
    "missing": ([1, None, 3], ("Tensor", (), "int64", "optional")),
    "missing pair": ([None, [0.5, 1.5], None], ("Tensor", (2,), "float32", "optional")),
    "missing list": ([[1], None, [1, 2]], [("Scalar", (), "int64")]),
}


def test_the_type_of_a_feature_follows_from_its_values(write: Any, tmp_path: Path) -> None:
    examples = [
        {key: values[n] for key, (values, _) in TABLE.items() if values[n] is not None}
        for n in range(3)
    ]
    kinds = {"list": "int64", "texts": "bytes"}
    report = rs.export(write(kinds, train=examples), tmp_path / "out", "tfds")
    assert _features(tmp_path / "out") == {key: feature for key, (_, feature) in TABLE.items()}
    missing = [problem.partition(" is missing")[0] for problem in report.problems]
    assert sorted(missing) == ["'missing list'", "'missing pair'", "'missing'"]
    again = list(rs.open(tmp_path / "out"))
    assert [record.get("missing") for record in again] == [[1], None, [3]]


def test_features_without_values_are_left_out_and_reported(write: Any, tmp_path: Path) -> None:
    report = rs.export(write(train=[{"x": 1, "empty": []}] * 2), tmp_path / "out", "tfds")
    assert _features(tmp_path / "out") == {"x": ("Scalar", (), "int64")}
    assert [problem.partition(" has")[0] for problem in report.problems] == ["'empty'"]


def test_images_classes_and_objects(
    write: Any, image: Any, images: ModuleType, tmp_path: Path
) -> None:
    masks = [images.encode(images.noise(12, 8, mode), "PNG") for mode in ("P", "L", "1")]
    examples = [
        image(
            f"{n}.jpg",
            seed=n,
            more={
                "image/class/label": n % 2,
                "image/class/text": "ab"[n % 2],
                "image/segmentation/class/encoded": masks[n],
                "image/segmentation/class/format": "png",
                "image/object/area": [2.0] * n,
                **boxes(*[(0.1, 0.2, 0.3, 0.4)] * n, label=1, name="b"),
            },
        )
        for n in range(3)
    ]
    folder = write({**BOX_KINDS, "image/object/area": "float"}, train=examples)
    (folder / "labels.txt").write_text("0:a\n1:b\n")
    report = rs.export(folder, tmp_path / "out", "tfds")
    assert (report.problems, report.dropped_features) == ([], {})
    out = tmp_path / "out"
    assert _features(out) == {
        "image": ("Image", (-1, -1, 3), "uint8"),
        "image/filename": ("Text", (), None),
        "label": ("ClassLabel", (), None),
        "mask": ("Image", (-1, -1, 1), "uint8"),
        "objects": [
            {
                "area": ("Scalar", (), "float32"),
                "bbox": ("BBoxFeature", (4,), "float32"),
                "label": ("ClassLabel", (), None),
            }
        ],
    }
    assert (out / "label.labels.txt").read_text() == "a\nb\n"
    assert (out / "objects-label.labels.txt").read_text() == "a\nb\n"
    info = json.loads((out / "dataset_info.json").read_bytes())
    (split,) = info["splits"]
    assert (info["name"], split["name"], split["shardLengths"]) == ("dataset", "train", ["3"])
    for n, record in enumerate(rs.open(out)):
        assert record["image"] == [examples[n]["image/encoded"]]
        assert record["objects/bbox"].tolist() == np.float32([0.2, 0.1, 0.4, 0.3] * n).tolist()
        assert np.array_equal(decode_mask(record["mask"][0]), decode_mask(masks[n]))


def test_raw_pixels_become_png(write: Any, image: Any, images: ModuleType, tmp_path: Path) -> None:
    rs.pack(
        rs.ImageFolder(images.make_folder(tmp_path / "images", {"a": 2})),
        tmp_path / "raw",
        image_options=rs.ImageOptions(store="raw"),
        shuffle=False,
    )
    rs.export(tmp_path / "raw", tmp_path / "out", "tfds")
    assert _features(tmp_path / "out").keys() == {"image", "image/filename", "label"}
    for before, after in zip(rs.open(tmp_path / "raw"), rs.open(tmp_path / "out"), strict=True):
        assert bytes(decode_image(after["image"][0]).tobytes()) == before["image/encoded"][0]


def test_images_that_tensorflow_cannot_decode_are_skipped(
    write: Any, image: Any, images: ModuleType, tmp_path: Path
) -> None:
    webp = images.encode(images.noise(8, 8), "WEBP")
    folder = write(train=[image("a.jpg"), {"image/encoded": webp}, {"image/encoded": b"?"}])
    with raises(SourceError, records=(1, 2)):
        rs.export(folder, tmp_path / "out", "tfds")
    report = rs.export(folder, tmp_path / "out", "tfds", skip_errors=True)
    assert (report.record_count, report.skipped_positions) == (1, [1, 2])


@pytest.mark.parametrize("value", [3, 0.5, "a.jpg", [], ["a", "b"]])
def test_other_features_called_image(write: Any, tmp_path: Path, value: Any) -> None:
    rs.export(write(train=[{"image": value, "x": 1}]), tmp_path / "out", "tfds")
    assert "Image" not in str(_features(tmp_path / "out"))
    assert next(iter(rs.open(tmp_path / "out")))["x"] == [1]


def test_depths_that_differ_are_refused(write: Any, images: ModuleType, tmp_path: Path) -> None:
    encoded = [images.encode(images.noise(8, 8, mode), "PNG") for mode in ("L", "I;16")]
    with pytest.raises(OptionError):
        rs.export(write(train=[{"image/encoded": e} for e in encoded]), tmp_path / "out", "tfds")
    assert not (tmp_path / "out").exists()
    rs.export(write(train=[{"image/encoded": encoded[1]}]), tmp_path / "out", "tfds")
    assert _features(tmp_path / "out") == {"image": ("Image", (-1, -1, 1), "uint16")}


@pytest.mark.parametrize(
    ("kinds", "channels", "loses_alpha"),
    [
        (["PNG L", "PNG L"], 1, False),
        (["PNG RGB", "JPEG L"], 3, False),
        (["PNG RGB", "PNG RGBA"], 4, False),
        (["PNG L", "PNG LA"], 4, False),
        (["JPEG RGB", "PNG RGBA"], 3, True),
    ],
)
def test_channels_that_tensorflow_decodes_to(
    write: Any, tmp_path: Path, kinds: list[str], channels: int, loses_alpha: bool
) -> None:
    examples = []
    for kind in kinds:
        format_name, mode = kind.split()
        out = io.BytesIO()
        Image.new(mode, (8, 8)).save(out, format_name)
        examples.append({"image/encoded": out.getvalue()})
    folder = write(train=examples[:1], test=examples[1:])
    report = rs.export(folder, tmp_path / "out", "tfds", engine=RepeatingEngine())
    assert _features(tmp_path / "out") == {"image": ("Image", (-1, -1, channels), "uint8")}
    assert len(report.problems) == loses_alpha


def test_classes_without_names_are_refused(write: Any, image: Any, tmp_path: Path) -> None:
    folder = write(train=[image("a.jpg", more={"image/class/label": n}) for n in (1, 2)])
    (folder / "labels.txt").write_text("0:a\n1:b\n")
    with raises(SourceError, records=(1,)):
        rs.export(folder, tmp_path / "out", "tfds")


def test_two_features_of_one_path_are_refused(write: Any, image: Any, tmp_path: Path) -> None:
    folder = write(train=[image("a.jpg", more={"image": 3})])
    with raises(OptionError, value="image"):
        rs.export(folder, tmp_path / "out", "tfds")


def _episode(images: ModuleType, length: int, **more: Any) -> dict[str, Any]:
    return {
        "steps/observation/image": [images.jpeg(n) for n in range(length)],
        "steps/observation/state": [0.5] * 3 * length,
        "steps/action": [0.5] * 2 * length,
        "steps/reward": [0.5] * length,
        "steps/is_first": [1] + [0] * (length - 1),
        "steps/language_instruction": ["open it"] * length,
        "episode_metadata/file_path": "a",
        **more,
    }


def test_episodes_get_the_features_of_rlds(write: Any, images: ModuleType, tmp_path: Path) -> None:
    lists = {"steps/x/ragged_flat_values": [1], "steps/x/ragged_row_lengths_0": [0, 1, 0]}
    empty = {"steps/empty": []}
    episodes = [_episode(images, 4, **empty), _episode(images, 3, **lists, **empty)]
    report = rs.export(write({"steps/empty": "int64"}, train=episodes), tmp_path / "out", "tfds")
    assert _features(tmp_path / "out") == {
        "steps": {
            "of each step": {
                "observation": {
                    "image": ("Image", (-1, -1, 3), "uint8"),
                    "state": ("Tensor", (3,), "float32"),
                },
                "action": ("Tensor", (2,), "float32"),
                "reward": ("Scalar", (), "float32"),
                "is_first": ("Scalar", (), "bool"),
                "language_instruction": ("Text", (), None),
            }
        },
        "episode_metadata": {"file_path": ("Text", (), None)},
    }
    assert report.dropped_features == dict.fromkeys(lists, 1)
    assert report.problems == ["'steps/empty' has no values and is left out"]
    rs.pack(rs.Tfds(tmp_path / "out"), tmp_path / "again", shuffle=False)
    again = list(rs.open(tmp_path / "again"))
    assert [len(record["steps/action"]) for record in again] == [8, 6]
    assert again[0]["steps/observation/image"] == episodes[0]["steps/observation/image"]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"steps/reward": [0.5] * 4}, SourceError),  # of three steps
        ({"steps/is_first": []}, SourceError),
        ({"steps/observation/image": ["WEBP"] * 3}, SourceError),
        ({"steps/action": [0.5] * 9}, OptionError),  # three in a step, two in the others
        ({"steps/action": None}, OptionError),
        ({"steps/reward/of": [0.5] * 3}, OptionError),
    ],
)
def test_steps_that_rlds_cannot_hold_are_refused(
    write: Any, images: ModuleType, tmp_path: Path, more: dict[str, Any], error: type[Exception]
) -> None:
    episodes = [_episode(images, 4), _episode(images, 3, **more)]
    if episodes[1]["steps/observation/image"] == ["WEBP"] * 3:
        webp = images.encode(images.noise(8, 8), "WEBP")
        episodes[1]["steps/observation/image"] = [webp] * 3
    if "steps/reward/of" in more:
        episodes[0]["steps/reward/of"] = [0.5] * 4
    with pytest.raises(error):
        rs.export(write(train=episodes), tmp_path / "out", "tfds")
    assert not (tmp_path / "out").exists()


def test_steps_that_differ_between_tasks_are_refused(
    write: Any, images: ModuleType, tmp_path: Path
) -> None:
    episodes = [_episode(images, 3), _episode(images, 3, **{"steps/action": [0.5] * 9})]
    folder = write(train=episodes[:1], test=episodes[1:])
    with raises(OptionError, match="2 values in the steps of some episodes, 3 in others"):
        rs.export(folder, tmp_path / "out", "tfds", engine=RepeatingEngine())


def test_shards_have_equal_numbers_of_records(write: Any, tmp_path: Path) -> None:
    folder = write(train=[{"x": n} for n in range(100)], test=[{"x": -1}])
    rs.export(folder, tmp_path / "out", "tfds", shard_size_bytes=700)
    info = json.loads((tmp_path / "out/dataset_info.json").read_bytes())
    lengths = {split["name"]: split["shardLengths"] for split in info["splits"]}
    assert lengths["test"] == ["1"]
    assert len(lengths["train"]) > 3
    assert {int(length) for length in lengths["train"]} <= {
        100 // len(lengths["train"]) + n for n in (0, 1)
    }
    dataset = rs.open(tmp_path / "out", "train")
    assert [int(record["x"][0]) for record in dataset] == list(range(100))


def test_a_selection_in_another_order(write: Any, tmp_path: Path) -> None:
    folder = write(train=[{"x": n} for n in range(9)], test=[{"x": n} for n in range(9, 12)])
    chosen = rs.open(folder).select([11, 3, 0, 10, 3])
    rs.export(chosen, tmp_path / "out", "tfds")
    found = rs.open(tmp_path / "out")
    assert set(found.splits) == {"train", "test"}
    for split, part in found.splits.items():
        assert [r["x"] for r in part] == [r["x"] for r in chosen.splits[split]]
