"""What the package lerobot opens and writes, in an environment of its own: see `.ci/run`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

pytest.importorskip("av")

from ..exporting.test_lerobot import EPISODES, PSNR, smooth
from ..reading import written

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, torchvision and datasets


def decibels(found: Any, expected: Any) -> float:
    return float(10 * np.log10(1 / np.mean((np.asarray(found) - expected) ** 2)))


def test_lerobot_opens_an_export(package: Any, tmp_path: Path) -> None:
    rs.export(written(tmp_path / "robot.tfrecord", EPISODES), tmp_path / "out", "lerobot")
    dataset = package.LeRobotDataset(
        "a/b",
        root=tmp_path / "out",
        video_backend="pyav",
        delta_timestamps={"action": [-0.1, 0.0, 0.1]},
    )
    assert (len(dataset), dataset.num_episodes, dataset.fps) == (14, 3, 10)
    assert list(dataset.meta.tasks.index) == ["task 0", "task 1"]
    index = 0
    for number, episode in enumerate(EPISODES):
        length = len(episode["steps/is_first"])
        actions = episode["steps/action"].reshape(length, 2)
        for step in range(length):
            item = dataset[index]
            window = np.clip([step - 1, step, step + 1], 0, length - 1)
            assert np.array_equal(item["action"], actions[window])
            state = episode["steps/observation/state"][3 * step : 3 * step + 3]
            assert np.array_equal(item["observation.state"], state)
            assert float(item["reward"]) == episode["steps/reward"][step]
            assert int(item["mode"]) == episode["steps/mode"][step]
            assert (item["label"], item["task"]) == (f"é{step}", f"task {number % 2}")
            assert (int(item["episode_index"]), int(item["frame_index"])) == (number, step)
            expected = smooth(10 * number + step).transpose(2, 0, 1) / 255
            assert decibels(item["observation.image"], expected) > PSNR
            assert item["observation.images.wrist"].shape == (3, 33, 35)
            index += 1
    mean = np.concatenate([e["steps/action"].reshape(-1, 2) for e in EPISODES]).mean(axis=0)
    assert dataset.meta.stats["action"]["mean"] == pytest.approx(mean)


@pytest.mark.parametrize("kind", ["video", "image"])
def test_what_lerobot_writes_is_packed(package: Any, tmp_path: Path, kind: str) -> None:
    features = {
        "observation.state": {"dtype": "float32", "shape": (3,), "names": ["x", "y", "z"]},
        "action": {"dtype": "float32", "shape": (2, 2), "names": None},
        "next.done": {"dtype": "bool", "shape": (1,), "names": None},
        "observation.images.front": {
            "dtype": kind,
            "shape": (64, 96, 3),
            "names": ["height", "width", "channels"],
        },
    }
    dataset = package.LeRobotDataset.create(
        "a/b", 10, features, tmp_path / "robot", robot_type="arm", use_videos=kind == "video"
    )
    random = np.random.default_rng(0)
    lengths, frames = [5, 7, 4], []
    for number, length in enumerate(lengths):
        for step in range(length):
            frame = {
                "observation.state": random.random(3, np.float32),
                "action": random.random((2, 2), np.float32),
                "next.done": np.array([step == length - 1]),
                "observation.images.front": smooth(10 * number + step, 64, 96),
            }
            frames.append(frame)
            dataset.add_frame({**frame, "task": f"task {number % 2}"})
        dataset.save_episode()
    dataset.finalize()
    rs.pack(tmp_path / "robot", tmp_path / "out", shuffle=False)
    records = list(rs.open(tmp_path / "out"))
    assert [len(record["steps/is_first"]) for record in records] == lengths
    for name in ("observation.state", "action", "next.done"):
        values = np.concatenate([record[f"steps/{name.replace('.', '/')}"] for record in records])
        assert np.array_equal(values, np.concatenate([frame[name].reshape(-1) for frame in frames]))
    tasks = [record["steps/language_instruction"][0] for record in records]
    assert tasks == [b"task 0", b"task 1", b"task 0"]
    images = [data for record in records for data in record["steps/observation/images/front"]]
    for data, frame in zip(images, frames, strict=True):
        found = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) / 255
        expected = frame["observation.images.front"] / 255
        assert np.array_equal(found, expected) or decibels(found, expected) > PSNR
        assert (kind == "image") == np.array_equal(found, expected)
