"""TensorFlow Datasets reads what recordsmith writes, and the other way around."""

from __future__ import annotations

import io
import zlib
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


@pytest.mark.slow
@pytest.mark.parametrize("engine", [None, RepeatingEngine()])
@pytest.mark.parametrize("name", ["written", "episodes"])
def test_a_folder_is_copied_with_its_features(
    tfds: Any, request: pytest.FixtureRequest, tmp_path: Path, name: str, engine: Any
) -> None:
    source, out = request.getfixturevalue(name), tmp_path / "out"
    report = rs.export(source, out, "tfds", shard_size_bytes=4000, engine=engine)
    assert (report.problems, report.dropped_features) == ([], {})
    for split in rs.open(source).splits:
        assert tfds_data.load(tfds, out, split) == tfds_data.load(tfds, source, split)
    before, after = (tfds.builder_from_directory(str(folder)).info for folder in (source, out))
    assert repr(after.features) == repr(before.features)
    assert after.supervised_keys == before.supervised_keys
    if name == "written":
        assert after.features["objects"]["label"].names == ["x", "ü"]


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


def test_episodes_are_records_of_steps(tfds: Any, episodes: Path, tmp_path: Path) -> None:
    rs.pack(rs.Tfds(episodes), tmp_path / "packed", shuffle=False)
    records: Any = rs.open(tmp_path / "packed")
    loaded = tfds.builder_from_directory(str(episodes)).as_dataset(split="train")
    for record, episode in zip(records, loaded, strict=True):
        steps = list(tfds.as_numpy(episode["steps"]))
        frames = [_pixels([data]) for data in record["steps/observation/image"]]
        assert np.array_equal(frames, [step["observation"]["image"] for step in steps])
        for key in ("action", "reward", "is_first", "is_last", "is_terminal"):
            expected = np.array([step[key] for step in steps])
            assert np.array_equal(record[f"steps/{key}"].reshape(expected.shape), expected)
        for key in ("state", "packed"):
            expected = np.array([step["observation"][key] for step in steps])
            values = record[f"steps/observation/{key}"]
            assert np.array_equal(values.reshape(expected.shape), expected)
        tokens = [step["observation"]["tokens"].tolist() for step in steps]
        key = "steps/observation/tokens"
        assert record[f"{key}/ragged_row_lengths_0"].tolist() == list(map(len, tokens))
        assert record[f"{key}/ragged_flat_values"].tolist() == list(chain(*tokens))
        texts = [step["language_instruction"] for step in steps]
        assert record["steps/language_instruction"] == texts


@pytest.mark.slow
@pytest.mark.parametrize("engine", [None, RepeatingEngine()])
def test_episodes_for_tfds(tfds: Any, episodes: Path, tmp_path: Path, engine: Any) -> None:
    """Packed without the documents of TFDS, and exported again: TFDS reads the same steps."""
    rs.pack(rs.Tfds(episodes), tmp_path / "packed", shuffle=False)
    report = rs.export(
        tmp_path / "packed", tmp_path / "out", "tfds", shard_size_bytes=2000, engine=engine
    )
    assert report.problems == []
    assert {key.split("/")[2] for key in report.dropped_features} == {"tokens"}
    found, expected = (
        [
            {
                path: values if "packed" not in path else values[1:]  # int64 instead of int32
                for path, values in record.items()
                if "tokens" not in path
            }
            for record in tfds_data.load(tfds, folder, "train")
        ]
        for folder in (tmp_path / "out", episodes)
    )
    assert found == expected


@pytest.mark.slow
def test_windows_equal_the_steps_that_tfds_reads(tfds: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    features, records = tfds_data.episodes(tfds, [*random.integers(1, 30, 12).tolist(), 3])
    folder = tfds_data.write(tfds, tmp_path, features, {"train": records})
    loaded = tfds.builder_from_directory(str(folder)).as_dataset(split="train")
    episodes = [list(tfds.as_numpy(episode["steps"])) for episode in loaded]
    files = [episode["episode_metadata"]["file_path"].numpy().decode() for episode in loaded]
    shape, checked = 5, 0
    for pad in ("drop", "repeat"):
        windows = rs.Episodes(rs.open(folder), window=shape, pad=pad)
        examples = rs.Examples(
            windows,
            {
                "image": "steps/observation/image",
                "state": rs.Tensor("steps/observation/state", shape=(shape, 3)),
                "tokens": rs.Ragged("steps/observation/tokens/ragged_flat_values"),
                "packed": rs.Bytes("steps/observation/packed", (shape,)),
                "action": rs.Tensor("steps/action", shape=(shape, 2)),
                "reward": "steps/reward",
                "language_instruction": rs.Text("steps/language_instruction", (shape,)),
                "is_first": rs.Tensor("steps/is_first", shape=(shape,), dtype="bool"),
                "is_last": rs.Tensor("steps/is_last", shape=(shape,), dtype="bool"),
                "file": rs.Text("episode_metadata/file_path"),
                "episode": "window/episode",
                "start": "window/start",
            },
        )
        batch = examples.batch(random.integers(0, len(windows), 500))
        for row in range(500):
            steps, start = episodes[batch["episode"][row]], int(batch["start"][row])
            assert batch["file"][row] == files[batch["episode"][row]]
            own = [steps[min(step, len(steps) - 1)] for step in range(start, start + shape)]
            for key in ("action", "reward", "is_first", "is_last"):
                assert np.array_equal(batch[key][row], [step[key] for step in own]), key
            texts = [step["language_instruction"].decode() for step in own]
            assert batch["language_instruction"][row].tolist() == texts
            observations = [step["observation"] for step in own]
            for key in ("image", "state"):
                assert np.array_equal(batch[key][row], [step[key] for step in observations]), key
            tokens = [step["tokens"].tolist() for step in observations]
            assert batch["tokens"][row].tolist() == list(chain(*tokens))
            packed = [
                np.frombuffer(zlib.decompress(value), np.int32).tolist()
                for value in batch["packed"][row].tolist()
            ]
            assert packed == [step["packed"].tolist() for step in observations]
            checked += 1
    assert checked == 1000


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


def test_episodes_of_tfds_are_checked(tfds: Any, episodes: Path, tmp_path: Path) -> None:
    """Clean folders have no findings; what is wrong in one episode is found there."""
    for source in (rs.Tfds(episodes), rs.Shards(episodes)):
        report = rs.lint(source)
        assert (report.findings, report.image_count) == ([], 4 + 2 + 4 + 4)
    verified = rs.verify(episodes, deep=True)
    assert verified.is_good, verified.defects
    found = rs.stats(episodes).episodes
    assert found is not None
    assert (found.count, found.steps, found.lengths.max) == (4, 18, 7)
    assert [(n.min, n.max) for n in found.actions["steps/action"]] == [(0, 3), (0, 6)]
    features, records = tfds_data.episodes(tfds, [4] * 4)
    records[1]["steps"][2]["is_last"] = True
    records[2]["steps"][3]["observation"]["state"][0] = np.nan
    folder = tfds_data.write(tfds, tmp_path, features, {"train": records})
    (defect,) = rs.verify(folder, deep=True).defects
    assert (defect.defect, defect.feature) == ("episode-flags-mismatch", "steps/is_last")
    assert "step 2" in defect.problem
    assert rs.open(defect.path)[defect.record]["episode_metadata/file_path"] == [b"episode 1"]
    (finding,) = rs.lint(rs.Tfds(folder)).findings
    assert (str(finding.check), finding.examples[0].place) == ("not-finite", "step 3")
