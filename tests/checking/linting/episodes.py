"""Drawn datasets of episodes: a clean one for each seed, and faults to plant in one episode."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

import recordsmith as rs

Steps = dict[str, Any]
"""The values of each step, by feature."""


@dataclass
class Robot:
    """A dataset of episodes.

    episodes: the features of the steps of each.
    contexts: the other features of each.
    is_sequence: whether they are SequenceExamples.
    """

    episodes: list[Steps]
    contexts: list[dict[str, Any]]
    cameras: list[str]
    is_sequence: bool

    def payloads(self) -> list[bytes]:
        if self.is_sequence:
            return [
                rs.encode_sequence_example(
                    context, {k: [*map(_listed, v)] for k, v in steps.items()}
                )
                for context, steps in zip(self.contexts, self.episodes, strict=True)
            ]
        return [
            rs.encode_example(
                {**context, **{f"steps/{key}": _flat(values) for key, values in steps.items()}},
                {f"steps/{key}": _kind(values) for key, values in steps.items()},
            )
            for context, steps in zip(self.contexts, self.episodes, strict=True)
        ]

    def write(self, path: Path) -> Path:
        with rs.ShardWriter(path, overwrite=True) as writer:
            for payload in self.payloads():
                writer.write(payload)
        return path

    def key(self, name: str) -> str:
        return name if self.is_sequence else f"steps/{name}"


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, bytes) else np.ravel(value)


def _flat(values: Any) -> Any:
    return values if isinstance(values, list) else np.ravel(values)


def _kind(values: Any) -> Any:
    if isinstance(values, list):
        return "bytes"
    return "float" if values.dtype.kind == "f" else "int64"


# -- clean ---------------------------------------------------------------------------------------


def draw(seed: int, *, lengths: tuple[int, int] = (2, 60), is_tinted: bool = False) -> Robot:
    """Draw a clean dataset: other scenes, cameras, controllers and features for each seed.

    With `is_tinted`, each camera has one scene, whose red and blue differ.
    """
    random = np.random.default_rng(seed)
    is_sequence, is_simulated = random.random(2) < (0.3, 0.4)
    names = ["image", "wrist_image", "side_image"][: random.integers(1, 4)]
    cameras = [f"observation/{name}" for name in names]
    size = int(random.integers(16, 40)), int(random.integers(16, 40))
    scenes = {
        camera: [_tinted_scene(random, size)]
        if is_tinted
        else [_scene(random, size) for _ in range(random.choice([1, 1, 1, 3, 12]))]
        for camera in cameras
    }
    dimensions = int(random.integers(2, 8))
    is_absolute, has_gripper, has_flags, has_time = random.random(4) < (0.4, 0.7, 0.9, 0.4)
    texts = random.choice(["steps", "context", "none"])
    robot = Robot([], [], cameras, bool(is_sequence))
    for number in range(random.integers(9, 16)):
        length = int(random.integers(*lengths))
        path = _path(random, length + 1, dimensions)
        sensed = path if is_simulated else path + random.normal(0, 0.002, path.shape)
        action = path[1:] if is_absolute else np.diff(path, axis=0)
        if not is_simulated:
            action = action + random.normal(0, 0.001, action.shape) * (np.abs(action) > 0)
        if has_gripper:
            closed = np.arange(length) > random.integers(0, length)
            action = np.concatenate([action, closed[:, np.newaxis]], axis=1)
        steps: Steps = {
            "observation/state": sensed[:-1].astype(np.float32),
            "action": action.astype(np.float32),
            "reward": (np.arange(length) == length - 1).astype(np.float32),
        }
        for camera in cameras:
            scene = scenes[camera][number % len(scenes[camera])]
            light = random.uniform(0.8, 1.2)
            steps[camera] = [
                _frame(random, scene * light, path[step], is_simulated=bool(is_simulated))
                for step in range(length)
            ]
        if has_flags:
            places = np.arange(length)
            steps["is_first"] = (places == 0).astype(np.int64)
            steps["is_last"] = (places == length - 1).astype(np.int64)
            steps["is_terminal"] = steps["is_last"] * int(random.random() < 0.5)
        if has_time:
            steps["observation/timestamp"] = (1.7e9 + np.arange(length) / 10).astype(np.float32)
        context: dict[str, Any] = {"episode_metadata/file_path": f"episode {number}"}
        if texts == "steps":
            steps["language_instruction"] = [f"task {number % 3}".encode()] * length
        elif texts == "context":
            context["language_instruction"] = f"task {number % 3}"
        robot.episodes.append(steps)
        robot.contexts.append(context)
    return robot


def _scene(random: np.random.Generator, size: tuple[int, int]) -> Any:
    """A background: a tint, soft shapes, and for some scenes no colour at all."""
    tint = random.uniform(60, 180, 3) if random.random() < 0.8 else np.full(3, 110.0)
    shapes = random.normal(0, 25, (4, 4, 1 if random.random() < 0.5 else 3)) + tint
    rows, columns = (np.arange(side) * 4 // side for side in size)
    return shapes[rows][:, columns]


def _tinted_scene(random: np.random.Generator, size: tuple[int, int]) -> Any:
    tint = random.permutation([random.uniform(120, 200), random.uniform(40, 90)])
    return np.insert(tint, 1, random.uniform(60, 180)) + random.normal(0, 8, (*size, 1))


def _path(random: np.random.Generator, length: int, dimensions: int) -> Any:
    """A smooth path through some targets, with rests at them."""
    count = int(random.integers(2, 5))
    targets = random.uniform(-1, 1, (count, dimensions))
    at = np.linspace(0, count - 1, length)
    share = np.clip((at % 1) * random.uniform(1, 1.3), 0, 1)
    share = (1 - np.cos(np.pi * share)) / 2
    before = np.minimum(at.astype(int), count - 1)
    after = np.minimum(before + 1, count - 1)
    return targets[before] + (targets[after] - targets[before]) * share[:, np.newaxis]


def _frame(random: np.random.Generator, scene: Any, pose: Any, *, is_simulated: bool) -> bytes:
    pixels = scene.copy()
    row, column = (
        int((value + 1.5) / 3 * (side - 6))
        for value, side in zip(pose[:2], scene.shape[:2], strict=True)
    )
    robot = np.resize(128 + 60 * pose, (6, 6, 1))  # each dimension is seen
    pixels[row : row + 6, column : column + 6] = robot + np.array([40, 30, -60])
    if not is_simulated:
        pixels += random.normal(0, 4, pixels.shape)
    return encode(pixels, "PNG" if is_simulated else "JPEG")


def encode(pixels: Any, kind: str = "JPEG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, kind, quality=92)
    return file.getvalue()


def decode(data: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(data)))


# -- faults --------------------------------------------------------------------------------------


class Planted(NamedTuple):
    """Where a fault is: the record, and the step if one is at fault."""

    record: int
    step: int | None = None


def _one_step(robot: Robot, record: int, _: Any) -> Planted:
    robot.episodes[record] = {key: values[:1] for key, values in robot.episodes[record].items()}
    for name in ("is_last", "is_first"):
        if name in robot.episodes[record]:
            robot.episodes[record][name][:] = 1
    return Planted(record)


def _not_finite(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    steps = robot.episodes[record]
    step = int(random.integers(len(steps["reward"])))
    key = str(random.choice(["action", "observation/state", "reward"]))
    steps[key][step] = random.choice([np.nan, np.inf, -np.inf])
    return Planted(record, step)


def _all_frozen(robot: Robot, record: int, _: Any) -> Planted:
    for steps in robot.episodes:
        del steps["observation/state"]
    robot.episodes[record]["action"][:] = robot.episodes[record]["action"][1]
    return Planted(record, 0)


def _part_frozen(robot: Robot, record: int, _: Any) -> Planted:
    steps = robot.episodes[record]
    count = len(steps["action"])
    start = count // 4
    steps["action"][start : start + max(20, count // 2)] = 0.123
    return Planted(record, start)


def _clipped(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    steps = robot.episodes[record]
    wave = np.sin(np.arange(len(steps["action"])) * 0.9) + random.normal(
        0, 0.1, len(steps["action"])
    )
    clipped = np.minimum(wave, 0.4)
    steps["action"][:, 0] = clipped
    return Planted(record, int(np.flatnonzero(clipped == 0.4)[0]))


def _black(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    steps, camera = robot.episodes[record], str(random.choice(robot.cameras))
    level = int(random.choice([0, 0, 128, 255]))
    shape = decode(steps[camera][0]).shape
    steps[camera] = [encode(np.full(shape, level))] * len(steps[camera])
    return Planted(record, 0)


def _frozen_camera(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    steps, camera = robot.episodes[record], str(random.choice(robot.cameras))
    start = len(steps[camera]) // 5
    stop = start + max(20, len(steps[camera]) // 2)
    steps[camera][start:stop] = [steps[camera][start]] * len(steps[camera][start:stop])
    return Planted(record, start)


def _swapped(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    steps, camera = robot.episodes[record], str(random.choice(robot.cameras))
    kind = "PNG" if steps[camera][0].startswith(b"\x89PNG") else "JPEG"
    steps[camera] = [encode(decode(frame)[:, :, ::-1], kind) for frame in steps[camera]]
    return Planted(record)


def _time_back(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    for steps in robot.episodes:
        steps["observation/timestamp"] = np.arange(len(steps["reward"]), dtype=np.float32)
    times = robot.episodes[record]["observation/timestamp"]
    step = int(random.integers(1, len(times)))
    times[step:] -= 2
    return Planted(record, step)


def _no_text(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    for steps, context in zip(robot.episodes, robot.contexts, strict=True):
        steps.pop("language_instruction", None)
        context["language_instruction"] = "do it"
    if random.random() < 0.5:
        del robot.contexts[record]["language_instruction"]
    else:
        robot.contexts[record]["language_instruction"] = " "
    return Planted(record)


def _copied(robot: Robot, record: int, random: np.random.Generator) -> Planted:
    other = int(random.integers(record))
    robot.episodes[record] = {**robot.episodes[other]}
    return Planted(record)


Plant = Callable[[Robot, int, np.random.Generator], Planted]

LINT_FAULTS: Mapping[str, list[Plant]] = {
    "one-step-episode": [_one_step],
    "not-finite": [_not_finite],
    "frozen-actions": [_all_frozen, _part_frozen],
    "clipped-actions": [_clipped],
    "constant-camera": [_black],
    "frozen-camera": [_frozen_camera],
    "swapped-channels": [_swapped],
    "time-goes-back": [_time_back],
    "no-instruction": [_no_text],
    "duplicate-episode": [_copied],
}


def _empty(robot: Robot, record: int, _: Any) -> str:
    robot.episodes[record] = {key: values[:0] for key, values in robot.episodes[record].items()}
    return ""


def _uneven(robot: Robot, record: int, random: np.random.Generator) -> str:
    steps = robot.episodes[record]
    key = str(random.choice(["action", "observation/state", *robot.cameras]))
    values = steps[key]
    if robot.is_sequence or isinstance(values, list):
        steps[key] = values[:-1]
    else:
        steps[key] = np.ravel(values)[:-1]
    return key


def _flag(name: str, change: Callable[[Any], int]) -> Callable[[Robot, int, Any], str]:
    def plant(robot: Robot, record: int, _: Any) -> str:
        step = change(robot.episodes[record][name])
        return f"{name}, {step}"

    return plant


def _set(flags: Any, step: int, value: int) -> int:
    flags[step] = value
    return step % len(flags)


VERIFY_FAULTS: Mapping[str, list[Callable[[Robot, int, Any], str]]] = {
    "empty-episode": [_empty],
    "feature-shape-mismatch": [_uneven],
    "episode-flags-mismatch": [
        _flag("is_first", lambda flags: _set(flags, 0, 0)),
        _flag("is_first", lambda flags: _set(flags, len(flags) // 2, 1)),
        _flag("is_last", lambda flags: _set(flags, -1, 0)),
        _flag("is_last", lambda flags: _set(flags, 1, 1)),
        _flag("is_terminal", lambda flags: _set(flags, 0, 1)),
    ],
}
