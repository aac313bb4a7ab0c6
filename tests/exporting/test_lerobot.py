"""Episodes for LeRobot: pack(export(x)) equals x up to the codec's loss, and the documents."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.exporting.formats import lerobot
from recordsmith.support.errors import OptionError, SourceError

from ..raising import raises
from ..reading import written

pytest.importorskip("av")
PSNR = 32  # dB, the least that docs/how-to/lerobot.md states


def smooth(seed: int, height: int = 48, width: int = 64) -> np.ndarray:
    """Pixels like those of a photo: smooth, and different in each step."""
    y, x = np.mgrid[:height, :width] / 48
    waves = [np.sin(x * (2 + c) + y * 3 + seed * 0.4 + c) for c in range(3)]
    return ((np.stack(waves, axis=-1) + 1) * 127).astype(np.uint8)


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def episode(number: int, length: int, **others: Any) -> dict[str, Any]:
    random = np.random.default_rng(number)
    return {
        "steps/observation/image": [encoded(smooth(10 * number + s)) for s in range(length)],
        "steps/observation/wrist": [encoded(smooth(s, 33, 35), "JPEG") for s in range(length)],
        "steps/observation/state": random.random(3 * length, np.float32),
        "steps/action": random.random(2 * length, np.float32),
        "steps/reward": random.random(length, np.float32),
        "steps/mode": random.integers(0, 5, length),
        "steps/label": [f"é{step}" for step in range(length)],
        "steps/is_first": [step == 0 for step in range(length)],
        "steps/is_last": [step == length - 1 for step in range(length)],
        "steps/language_instruction": [f"task {number % 2}"] * length,
        "episode_metadata/fps": 10.0,
        "episode_metadata/robot_type": "arm",
        **others,
    }


EPISODES = [episode(number, length) for number, length in enumerate([5, 3, 6])]


def psnr(a: bytes, b: bytes) -> float:
    pixels = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), float) for data in (a, b)]
    return float(10 * np.log10(255**2 / np.mean((pixels[0] - pixels[1]) ** 2)))


@pytest.mark.parametrize("limit", [None, 1])
def test_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    """Numbers and texts are equal, frames within the loss; also if each episode has own files."""
    if limit is not None:
        monkeypatch.setattr(lerobot, "_DATA_MB", 0)
        monkeypatch.setattr(lerobot, "_VIDEO_MB", 0)
        monkeypatch.setattr(lerobot, "_FILES_IN_CHUNK", 2)
    before = written(tmp_path / "robot.tfrecord", EPISODES)
    report = rs.export(before, tmp_path / "out", "lerobot")
    assert (report.record_count, report.dropped_features) == (3, {})
    mp4 = sorted(path.relative_to(tmp_path / "out").as_posix() for path in tmp_path.rglob("*.mp4"))
    assert (
        mp4[: 1 if limit is None else 3]
        == [
            f"videos/observation.image/{name}.mp4"
            for name in ("chunk-000/file-000", "chunk-000/file-001", "chunk-001/file-000")
        ][: 1 if limit is None else 3]
    )
    rs.pack(tmp_path / "out", tmp_path / "again", shuffle=False)
    renamed = {"steps/observation/wrist": "steps/observation/images/wrist"}
    for number, (old, new) in enumerate(zip(before, rs.open(tmp_path / "again"), strict=True)):
        assert new.keys() - {renamed.get(key, key) for key in old} == {
            "steps/timestamp",
            "episode_metadata/episode_index",
        }
        assert new["episode_metadata/episode_index"] == [number]
        for key, value in old.items():
            found = new[renamed.get(key, key)]
            if key in ("steps/observation/image", "steps/observation/wrist"):
                assert min(map(psnr, value, found)) > PSNR, key
            elif isinstance(value, list):
                assert found == value, key
            else:
                assert np.array_equal(found, value), key
                assert found.dtype == value.dtype


def test_the_documents(tmp_path: Path) -> None:
    rs.export(written(tmp_path / "robot.tfrecord", EPISODES), tmp_path / "out", "lerobot")
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert {name: (f["dtype"], f["shape"]) for name, f in info["features"].items()} == {
        "observation.image": ("video", [48, 64, 3]),
        "observation.images.wrist": ("video", [33, 35, 3]),
        "observation.state": ("float32", [3]),
        "action": ("float32", [2]),
        "reward": ("float32", [1]),
        "mode": ("int64", [1]),
        "label": ("string", [1]),
        "timestamp": ("float32", [1]),
        **{name: ("int64", [1]) for name in lerobot.POSITIONS[1:]},
    }
    totals = ("total_episodes", "total_frames", "total_tasks", "fps", "robot_type", "splits")
    assert [info[name] for name in totals] == [3, 14, 2, 10, "arm", {"robot": "0:3"}]
    table = pq.read_table(tmp_path / "out/data/chunk-000/file-000.parquet")
    assert table["task_index"].to_pylist() == [0] * 5 + [1] * 3 + [0] * 6
    assert table["index"].to_pylist() == list(range(14))
    stats = json.loads((tmp_path / "out/meta/stats.json").read_text())
    for name, key, width in (("action", "steps/action", 2), ("reward", "steps/reward", 1)):
        values = np.concatenate([e[key].reshape(-1, width) for e in EPISODES]).astype(float)
        found = stats[name]
        for stat in ("min", "max", "mean", "std"):
            assert found[stat] == pytest.approx(getattr(values, stat)(axis=0)), (name, stat)
        assert found["count"] == [14]
        assert all(a <= b for a, b in zip(found["q10"], found["q90"], strict=True))
    pixels = np.concatenate(
        [[smooth(10 * n + s) for s in range(k)] for n, k in ((0, 5), (1, 3), (2, 6))]
    )
    image = stats["observation.image"]
    assert np.shape(image["mean"]) == (3, 1, 1)
    assert np.ravel(image["mean"]) == pytest.approx(pixels.mean((0, 1, 2)) / 255)
    assert np.ravel(image["std"]) == pytest.approx(pixels.std((0, 1, 2)) / 255)
    rows = pq.read_table(tmp_path / "out/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [row["tasks"] for row in rows] == [["task 0"], ["task 1"], ["task 0"]]
    assert [row["videos/observation.image/from_timestamp"] for row in rows] == [0, 0.5, 0.8]
    assert [row["stats/action/count"] for row in rows] == [[5], [3], [6]]


def test_frames_per_second_are_an_option(tmp_path: Path) -> None:
    bare = {k: v for k, v in EPISODES[0].items() if not k.startswith("episode_metadata")}
    dataset = written(tmp_path / "robot.tfrecord", [bare])
    with raises(OptionError, option="fps"):
        rs.export(dataset, tmp_path / "out", "lerobot")
    for wrong in (0, -1, 0.001, float("nan"), float("inf"), "10"):
        with raises(OptionError, option="fps", value=wrong):
            rs.export(dataset, tmp_path / "out", "lerobot", fps=wrong)  # type: ignore[arg-type]
    rs.export(dataset, tmp_path / "out", "lerobot", fps=29.97)
    assert json.loads((tmp_path / "out/meta/info.json").read_text())["fps"] == 29.97
    listing = rs.LeRobot(tmp_path / "out").list_samples()
    record = listing.reader.read(listing.samples[0])
    assert len(record["steps/observation/image"]) == 5
    with raises(OptionError, option="fps", value=10):
        rs.export(dataset, tmp_path / "csv", "csv", fps=10)


def test_splits_follow_each_other(tmp_path: Path) -> None:
    for split, records in (("train", EPISODES[:2]), ("validation", EPISODES[2:])):
        with rs.ShardWriter(tmp_path / f"{split}-00000-of-00001.tfrecord") as writer:
            for record in records:
                writer.write_example(record)
    dataset = rs.open(tmp_path)
    rs.export(dataset, tmp_path / "out", "lerobot")
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["splits"] == {"train": "0:2", "validation": "2:3"}
    with raises(OptionError, match="do not follow each other"):
        rs.export(dataset.select([0, 2, 1]), tmp_path / "mixed", "lerobot")


def test_names_with_braces(tmp_path: Path) -> None:
    record = episode(0, 2) | {"steps/{chunk_index}/{0.a}": [encoded(smooth(0))] * 2}
    rs.export(written(tmp_path / "robot.tfrecord", [record]), tmp_path / "out", "lerobot")
    assert (tmp_path / "out/videos/{chunk_index}.{0.a}/chunk-000/file-000.mp4").is_file()
    listing = rs.LeRobot(tmp_path / "out").list_samples()
    assert len(listing.reader.read(listing.samples[0])["steps/{chunk_index}/{0/a}"]) == 2


def test_images_that_the_encoder_refuses(tmp_path: Path) -> None:
    tiny = episode(0, 2) | {"steps/observation/image": [encoded(smooth(0, 1, 2))] * 2}
    dataset = written(tmp_path / "robot.tfrecord", [tiny])
    with raises(SourceError, match="encoder refuses 'steps/observation/image', 2 x 1 pixels at 10"):
        rs.export(dataset, tmp_path / "out", "lerobot")
    assert not (tmp_path / "out").exists()


LATER: dict[str, tuple[dict[str, Any], str]] = {  # the second episode, and why it is refused
    "lacks": ({"steps/action": []}, "'steps/action' has 0 values"),
    "wider": ({"steps/action": np.ones(9, np.float32)}, "'steps/action' has 9 values, expected 2"),
    "kind": ({"steps/mode": np.ones(3, np.float32)}, "has not the type int64"),
    "NaN": ({"steps/reward": [1.0, np.nan, np.inf]}, "'steps/reward' is nan in step 1"),
    "size": ({"steps/observation/image": [encoded(smooth(0, 8, 8))] * 3}, "is 8 x 8, expected 64"),
    "no image": ({"steps/observation/image": [b"x"] * 3}, "is of another format"),
    "16 bits": (
        {"steps/observation/image": [encoded(np.ones((48, 64), np.uint16))] * 3},
        "pixels of 8 bits",
    ),
    "damaged": (
        {"steps/observation/image": [encoded(smooth(0))[:-300] + bytes(300)] * 3},
        "the image 'steps/observation/image' of step 0: ",
    ),
    "no text": ({"steps/label": [b"\xff"] * 3}, "neither an image nor text"),
    "tasks": ({"steps/language_instruction": ["a", "b"]}, "2 tasks, expected 3"),
    "rate": ({"episode_metadata/fps": 5.0}, "5 frames per second, not 10"),
    "rate NaN": ({"episode_metadata/fps": float("nan")}, "nan frames per second"),
    "no steps": ({"steps/is_first": []}, "it has no steps"),
}


@pytest.mark.parametrize("name", LATER)
def test_episodes_that_differ_are_refused_or_skipped(tmp_path: Path, name: str) -> None:
    changed, message = LATER[name]
    dataset = written(tmp_path / "r.tfrecord", [EPISODES[0], episode(1, 3, **changed), EPISODES[2]])
    with raises(SourceError, match=f"record 1: .*{message}", records=(1,)):
        rs.export(dataset, tmp_path / "out", "lerobot")
    assert not (tmp_path / "out").exists()
    report = rs.export(dataset, tmp_path / "out", "lerobot", skip_errors=True)
    assert (report.record_count, report.skipped_positions) == (2, [1])
    listing = rs.LeRobot(tmp_path / "out").list_samples()
    for sample, old in zip(listing.samples, (EPISODES[0], EPISODES[2]), strict=True):
        new = listing.reader.read(sample)
        assert np.array_equal(new["steps/action"], old["steps/action"])
        pairs = zip(old["steps/observation/image"], new["steps/observation/image"], strict=True)
        assert min(psnr(a, b) for a, b in pairs) > PSNR


def test_other_records_are_refused(tmp_path: Path) -> None:
    with raises(OptionError, option="format", match="the records are not episodes"):
        rs.export(written(tmp_path / "a.tfrecord", [{"x": 1}]), tmp_path / "out", "lerobot")
    sequence = rs.encode_sequence_example({}, {"steps/a": [[1]]})
    with raises(OptionError, option="format", match="SequenceExamples"):
        rs.export(written(tmp_path / "b.tfrecord", [sequence]), tmp_path / "out", "lerobot")
    twice = episode(0, 2) | {"steps/a/b": [1, 2], "steps/a.b": [1, 2]}
    with raises(OptionError, match="name 'a.b'"):
        rs.export(written(tmp_path / "c.tfrecord", [twice]), tmp_path / "out", "lerobot")


def test_features_without_a_place_are_reported(tmp_path: Path) -> None:
    record = episode(0, 2) | {"episode_metadata/file": "a", "steps/t/ragged_flat_values": [1, 2, 3]}
    dataset = written(tmp_path / "robot.tfrecord", [record])
    report = rs.export(dataset, tmp_path / "out", "lerobot")
    assert report.dropped_features == {"episode_metadata/file": 1, "steps/t/ragged_flat_values": 1}
