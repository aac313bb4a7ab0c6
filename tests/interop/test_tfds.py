"""TensorFlow Datasets reads what recordsmith writes, and the other way around."""

from __future__ import annotations

import io
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

from ..repeating_engine import RepeatingEngine
from . import tfds_data


@pytest.fixture(scope="module")
def tfds(tf: Any) -> Any:
    return pytest.importorskip("tensorflow_datasets", exc_type=ImportError)


@pytest.fixture(scope="module")
def written(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with every type of feature, in two splits of two shards."""
    table = tfds_data.all_features(tfds)
    features = {name: feature for name, (feature, _) in table.items()}
    values = [{name: value(n) for name, (_, value) in table.items()} for n in (0, 1, 2, 3, 4)]
    return tfds_data.write(
        tfds,
        tmp_path_factory.mktemp("tfds"),
        features,
        {"train": values[:3], "test": values[3:]},
        supervised_keys=("image", "label"),
    )


@pytest.fixture(scope="module")
def episodes(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    features, records = tfds_data.episodes(tfds, [5, 2, 7, 4])
    return tfds_data.write(tfds, tmp_path_factory.mktemp("rlds"), features, {"train": records})


def _export(source: Path, tmp_path: Path) -> Path:
    rs.pack(rs.Tfds(source), tmp_path / "packed", shuffle=False)
    report = rs.export(tmp_path / "packed", tmp_path / "out", "tfds")
    assert (report.problems, report.dropped_features) == ([], {})
    return tmp_path / "out"


def _export_on_engine(source: Path, tmp_path: Path) -> Path:
    rs.pack(rs.Tfds(source), tmp_path / "packed", shards=2, shuffle=False)
    report = rs.export(tmp_path / "packed", tmp_path / "out", "tfds", engine=RepeatingEngine())
    assert (report.problems, report.dropped_features) == ([], {})
    assert len([*(tmp_path / "out").glob("*.tfrecord*")]) == 4
    return tmp_path / "out"


def _export_unpacked(source: Path, tmp_path: Path) -> Path:
    rs.export(source, tmp_path / "out", "tfds", shard_size_bytes=4000)
    return tmp_path / "out"


@pytest.mark.slow
@pytest.mark.parametrize("way", [_export, _export_on_engine, _export_unpacked])
def test_every_feature_survives_a_round_trip(
    tfds: Any, written: Path, tmp_path: Path, way: Any
) -> None:
    out = way(written, tmp_path)
    for split in ("train", "test"):
        expected = tfds_data.load(tfds, written, split)
        assert tfds_data.load(tfds, out, split) == expected
    before, after = (tfds.builder_from_directory(str(folder)).info for folder in (written, out))
    assert repr(after.features) == repr(before.features)
    assert after.supervised_keys == before.supervised_keys
    for path in (["label"], ["mask"], ["objects", "label"]):
        label, same = after.features, before.features
        for name in path:
            label, same = label[name], same[name]
        assert label.names == same.names


def test_episodes_survive_a_round_trip(tfds: Any, episodes: Path, tmp_path: Path) -> None:
    out = _export(episodes, tmp_path)
    assert tfds_data.load(tfds, out, "train") == tfds_data.load(tfds, episodes, "train")


def test_values_are_those_that_tfds_reads(tfds: Any, written: Path, tmp_path: Path) -> None:
    rs.pack(rs.Tfds(written.parent), tmp_path / "packed", shuffle=False)
    dataset = rs.open(tmp_path / "packed")
    assert dataset.class_names == ("cat", "dog")
    names = {-1: b"", 0: b"cat", 1: b"dog"}
    for split in ("train", "test"):
        loaded = tfds.builder_from_directory(str(written)).as_dataset(split=split)
        expected = list(tfds.as_numpy(loaded))
        records = list(dataset.splits[split])
        assert len(records) == len(expected)
        for record, values in zip(records, expected, strict=True):
            assert np.array_equal(_pixels(record["image/encoded"]), values["image"])
            assert np.array_equal(_pixels(record["image16"])[..., None], values["image16"])
            mask = _pixels(record["image/segmentation/class/encoded"])
            assert np.array_equal(mask[..., None], values["mask"])
            assert record["image/height"].tolist() == [values["image"].shape[0]]
            assert record["image/class/label"].tolist() == [values["label"]]
            assert record["image/class/text"] == [names[values["label"]]]
            assert record["image/filename"] == [values["file_name"]]
            sides = [
                record[f"image/object/bbox/{side}"] for side in ("ymin", "xmin", "ymax", "xmax")
            ]
            assert np.array_equal(np.stack(sides, 1), values["objects"]["bbox"].reshape(-1, 4))
            labels = record["image/object/class/label"].tolist()
            assert labels == values["objects"]["label"].tolist()
            assert record["image/object/class/text"] == [["x", "ü"][n].encode() for n in labels]
            assert (
                record["image/object/is_crowd"].tolist() == values["objects"]["is_crowd"].tolist()
            )
            for key in ("fixed", "rows", "as bytes", "as zlib", "any shape", "flags", "vectors"):
                assert (
                    record.get(key, record.get(f"{key}/value")).tolist()
                    == values[key].ravel().tolist()
                )
            assert np.frombuffer(record["double"][0]).tolist() == values["double"].tolist()
            assert record["unsigned"].view(np.uint64).tolist() == values["unsigned"].tolist()
            assert record["any shape/shape"].tolist() == list(values["any shape"].shape)
            assert record["ragged/ragged_flat_values"].tolist() == list(
                values["ragged"].flat_values
            )
            assert record["nested/b/c"] == [values["nested"]["b"]["c"]]
            assert record["words"] == list(values["words"])
            assert [_pixels([frame]).tolist() for frame in record["frames"]] == values[
                "frames"
            ].tolist()
            assert ("optional" in record) == (values["optional"] >= 0)


def test_an_opened_folder_has_its_splits_and_class_names(written: Path) -> None:
    dataset = rs.open(written)
    assert {split: len(part) for split, part in dataset.splits.items()} == {"train": 3, "test": 2}
    assert dataset.class_names == ("cat", "dog")
    assert len(rs.open(written, "train[:2]")) == 2
    report = rs.verify(written)
    assert (report.is_good, report.record_count) == (True, 5)


@pytest.mark.parametrize(("window", "stride"), [(2, 1), (3, 2), (4, 5), (7, 1)])
def test_windows_are_consecutive_steps(tfds: Any, episodes: Path, window: int, stride: int) -> None:
    loaded = tfds.builder_from_directory(str(episodes)).as_dataset(split="train")
    expected: list[Any] = []
    for episode in loaded:
        steps = list(tfds.as_numpy(episode["steps"]))
        starts = range(0, len(steps) - window + 1, stride)
        metadata = episode["episode_metadata"]
        expected += ((steps[start : start + window], metadata) for start in starts)
    listing = rs.Tfds(episodes, window=window, stride=stride).list_samples()
    assert len(listing.samples) == len(expected)
    for sample, (steps, metadata) in zip(listing.samples, expected, strict=True):
        record: Any = listing.reader.read(sample)
        assert sample.group is not None
        assert sample.name.startswith(sample.group)
        frames = [_pixels([data]) for data in record["steps/observation/image"]]
        assert np.array_equal(frames, [step["observation"]["image"] for step in steps])
        for key in ("action", "reward", "is_first", "is_last", "is_terminal"):
            wanted = np.array([step[key] for step in steps])
            assert np.array_equal(record[f"steps/{key}"].reshape(wanted.shape), wanted)
        for key in ("state", "packed"):
            wanted = np.array([step["observation"][key] for step in steps])
            assert np.array_equal(record[f"steps/observation/{key}"].reshape(wanted.shape), wanted)
        tokens = [step["observation"]["tokens"].tolist() for step in steps]
        key = "steps/observation/tokens"
        assert record[f"{key}/ragged_row_lengths_0"].tolist() == list(map(len, tokens))
        assert record[f"{key}/ragged_flat_values"].tolist() == list(chain(*tokens))
        texts = [step["language_instruction"] for step in steps]
        assert record["steps/language_instruction"] == texts
        assert record["episode_metadata/file_path"] == [metadata["file_path"].numpy()]


def test_windows_of_an_episode_stay_in_one_split(episodes: Path, tmp_path: Path) -> None:
    source = rs.Tfds(episodes, window=2)
    report = rs.pack(source, tmp_path / "out", splits={"train": 0.5, "test": 0.5})
    assert report.sample_count == 14
    files = [
        set(
            part.read_columns(["episode_metadata/file_path"])["episode_metadata/file_path"].tolist()
        )
        for part in rs.open(tmp_path / "out").splits.values()
    ]
    assert files[0].isdisjoint(files[1])


def test_steps_outside_windows_are_counted(episodes: Path) -> None:
    listing = rs.Tfds(episodes, window=4, stride=6).list_samples()
    assert list(listing.notices) == [  # of 5, 2, 7 and 4 steps
        "1 episode with fewer than 4 steps left out",
        "4 steps between or after the windows of their episode left out",
    ]


def test_windows_are_written_as_episodes(tfds: Any, episodes: Path, tmp_path: Path) -> None:
    rs.pack(rs.Tfds(episodes, window=3), tmp_path / "packed", shuffle=False)
    rs.export(tmp_path / "packed", tmp_path / "out", "tfds")
    windows = tfds.builder_from_directory(str(tmp_path / "out")).as_dataset(split="train")
    assert {len(list(window["steps"])) for window in windows} == {3}


@pytest.mark.parametrize("type_", ["Video", "Audio"])
def test_video_and_audio_are_refused_by_name(tfds: Any, tmp_path: Path, type_: str) -> None:
    feature: Any = {
        "Video": lambda: tfds.features.Video(shape=(None, 4, 4, 3)),
        "Audio": tfds.features.Audio,
    }[type_]()
    value = np.zeros((2, 4, 4, 3), np.uint8) if type_ == "Video" else np.zeros(5, np.int64)
    folder = tfds_data.write(
        tfds, tmp_path, {"a": {"clip": feature}}, {"train": [{"a": {"clip": value}}] * 2}
    )
    with pytest.raises(rs.SourceError) as caught:
        rs.Tfds(folder).list_samples()
    assert caught.value.problems == (f"a/clip is a {type_}",)
    assert caught.value.path == str(folder / "features.json")


def test_resized_images_have_no_fixed_size(tfds: Any, tmp_path: Path) -> None:
    """features.json states the size of the images before they were packed."""
    feature = tfds.features.Image(shape=(8, 8, 1), encoding_format="png")
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
    folder = tfds_data.write(tfds, tmp_path, {"image": feature}, {"train": [{"image": pixels}] * 2})
    smaller = rs.ImageOptions(shorter_side=4)
    rs.pack(rs.Tfds(folder), tmp_path / "packed", image_options=smaller)
    rs.export(tmp_path / "packed", tmp_path / "out", "tfds")
    info = tfds.builder_from_directory(str(tmp_path / "out")).info
    assert info.features["image"].shape == (None, None, 1)
    for values in tfds_data.load(tfds, tmp_path / "out", "train"):
        assert values["image"][1] == (4, 4, 1)


# -- from other sources --------------------------------------------------------------------------


def test_class_folders_for_tfds(tfds: Any, tmp_path: Path, images: ModuleType) -> None:
    folder = images.make_folder(tmp_path / "images", {"ant": 3, "bee": 2})
    rs.pack(rs.ImageFolder(folder), tmp_path / "packed", shuffle=False)
    rs.export(tmp_path / "packed", tmp_path / "exported", "tfds")
    expected = list(rs.open(tmp_path / "packed"))
    builder = tfds.builder_from_directory(str(tmp_path / "exported"))
    assert builder.info.features["label"].names == ["ant", "bee"]
    assert builder.info.supervised_keys == ("image", "label")
    loaded = list(tfds.as_numpy(builder.as_dataset(split="train")))
    assert len(loaded) == len(expected)
    for record, values in zip(expected, loaded, strict=True):
        assert record["image/class/label"].tolist() == [values["label"]]
        assert record["image/filename"] == [values["image/filename"]]
        assert values["image"].shape[:2] == (
            record["image/height"][0],
            record["image/width"][0],
        )
        import tensorflow as tf

        pixels = tf.io.decode_image(record["image/encoded"][0], channels=3)
        assert np.array_equal(pixels, values["image"])


def test_boxes_masks_and_missing_values_for_tfds(
    tfds: Any, tmp_path: Path, images: ModuleType
) -> None:
    palette = Image.new("P", (12, 8), 2)
    palette.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0])
    buffer = io.BytesIO()
    palette.save(buffer, "png")
    sides = ("ymin", "xmin", "ymax", "xmax")
    kinds: dict[str, Any] = {f"image/object/bbox/{side}": "float" for side in sides}
    kinds |= {"image/object/class/label": "int64", "list": "int64"}
    with rs.ShardWriter(tmp_path / "train.tfrecord") as writer:
        for number in range(3):
            example: dict[str, Any] = {
                "image/encoded": images.jpeg(number, 12, 8),
                "image/segmentation/class/encoded": buffer.getvalue(),
                **{f"image/object/bbox/{side}": [0.25] * number for side in sides},
                "image/object/class/label": [1] * number,
                "list": list(range(number)),
                "pair": [1.5, 2.5],
            }
            if number:
                example["sometimes"] = number
            writer.write_example(example, kinds)
    (tmp_path / "labels.txt").write_text("0:none\n1:cat\n")
    report = rs.export(tmp_path / "train.tfrecord", tmp_path / "out", "tfds")
    assert len(report.problems) == 1
    assert "'sometimes'" in report.problems[0]
    builder = tfds.builder_from_directory(str(tmp_path / "out"))
    assert builder.info.features["objects"]["label"].names == ["none", "cat"]
    for number, values in enumerate(tfds.as_numpy(builder.as_dataset(split="train"))):
        assert (values["mask"] == 2).all()
        assert values["mask"].shape == (8, 12, 1)
        assert values["objects"]["bbox"].tolist() == [[0.25] * 4] * number
        assert values["objects"]["label"].tolist() == [1] * number
        assert values["list"].tolist() == list(range(number))
        assert values["pair"].tolist() == [1.5, 2.5]
        assert values["sometimes"] == (number or np.iinfo(np.int64).min)


def _pixels(values: Any) -> Any:
    return np.array(Image.open(io.BytesIO(values[0])))
