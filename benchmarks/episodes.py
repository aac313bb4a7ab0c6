"""Measure windows of episodes: CPU time of a window, and how much memory grows.

    python benchmarks/episodes.py

Draws 200 episodes of 40 steps with two cameras of 256x256, then loads windows of 8 steps at random
in a process of its own for each way: recordsmith, simplejpeg alone on the same frames, and
TensorFlow, where it is installed: windows in a shuffle buffer, decoded after it. Prints a Markdown
table.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

STEPS, WINDOW, SIDE, BATCH = 40, 8, 256, 16
CAMERAS = ("steps/observation/image_0", "steps/observation/image_1")
BUFFERED = 10_000 // WINDOW  # windows in the shuffle buffer: 10,000 frames of each camera
ROUNDS = 5


def draw(path: Path, episode_count: int) -> None:
    """Write episodes of frames with edges, gradients and noise."""
    import simplejpeg

    import recordsmith as rs

    random = np.random.default_rng(0)
    y, x = np.mgrid[:SIDE, :SIDE, :1][:2]
    noise = random.normal(0, 6, (2 * SIDE, 2 * SIDE, 3))
    with rs.ShardWriter(path) as writer:
        for number in range(episode_count):
            record: dict[str, Any] = {}
            for camera in CAMERAS:
                periods, phases = random.uniform(8, 60, 3), random.uniform(0, 6, 3)
                scene = 128 + 80 * np.sin(x / periods + phases + (y > x))
                frames = []
                for step in range(STEPS):
                    top, left = random.integers(0, SIDE, 2)
                    moved = np.roll(scene, 3 * step, 1) + noise[top:, left:][:SIDE, :SIDE]
                    pixels = moved.clip(0, 255).astype(np.uint8)
                    frames.append(simplejpeg.encode_jpeg(pixels, 90))
                record[camera] = frames
            record["steps/action"] = random.random(7 * STEPS, np.float32)
            record["steps/is_first"] = [step == 0 for step in range(STEPS)]
            record["steps/language_instruction"] = [f"task {number}"] * STEPS
            writer.write_example(record)


def ours(path: Path, shuffle: Any) -> Iterator[int]:
    import recordsmith as rs

    windows = rs.Episodes(rs.open(path), window=WINDOW)
    features: dict[str, Any] = {camera: rs.Image(camera) for camera in CAMERAS}
    features["action"] = rs.Tensor("steps/action", shape=(WINDOW, 7))
    loader = rs.Loader(
        windows, features, batch_size=BATCH, shuffle=shuffle, epochs=None, threads=1, prefetch=1
    )
    for batch in loader:
        yield len(batch["action"])


def simplejpeg_alone(path: Path) -> Iterator[int]:
    import simplejpeg

    import recordsmith as rs

    random = np.random.default_rng(0)
    episodes: Any = list(rs.open(path)[:8])
    batch = np.empty((BATCH, WINDOW * len(CAMERAS), SIDE, SIDE, 3), np.uint8)
    for out in cycle(batch):
        episode, first = episodes[random.integers(len(episodes))], random.integers(STEPS - WINDOW)
        frames = [frame for key in CAMERAS for frame in episode[key][first : first + WINDOW]]
        for frame, pixels in zip(frames, out, strict=True):
            simplejpeg.decode_jpeg(frame, buffer=pixels)
        yield 1


def tensorflow(path: Path) -> Iterator[int]:
    import tensorflow as tf

    keys = {key: tf.io.FixedLenFeature((STEPS,), tf.string) for key in CAMERAS}
    keys["steps/action"] = tf.io.FixedLenFeature((STEPS, 7), tf.float32)

    def windows(payload: Any) -> Any:
        episode = tf.io.parse_single_example(payload, keys)
        steps = tf.range(STEPS - WINDOW + 1)[:, None] + tf.range(WINDOW)[None]
        cut = {key: tf.gather(values, steps) for key, values in episode.items()}
        return tf.data.Dataset.from_tensor_slices(cut)

    def decode(window: Any) -> Any:
        for key in CAMERAS:
            window[key] = tf.map_fn(tf.io.decode_jpeg, window[key], fn_output_signature=tf.uint8)
        return window

    dataset = tf.data.TFRecordDataset(str(path)).shuffle(200, seed=0).repeat()
    dataset = dataset.interleave(windows, cycle_length=16, num_parallel_calls=1)
    dataset = dataset.shuffle(BUFFERED, seed=0).map(decode, num_parallel_calls=1)
    for batch in dataset.batch(BATCH).prefetch(1):
        yield len(batch["steps/action"])


def ways(path: Path) -> dict[str, Callable[[], Iterator[int]]]:
    import recordsmith as rs

    return {
        "simplejpeg alone": lambda: simplejpeg_alone(path),
        "recordsmith": lambda: ours(path, True),
        "recordsmith, BlockShuffle(256, 4)": lambda: ours(path, rs.BlockShuffle(256, 4)),
        "TensorFlow": lambda: tensorflow(path),
    }


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(way: str, path: Path, windows_per_round: int) -> dict[str, Any]:
    """Return the CPU milliseconds of a window in each round, and the growth of memory in MB."""
    import cv2
    import simplejpeg  # noqa: F401 - imported before memory is measured

    import recordsmith as rs

    cv2.setNumThreads(1)
    rs.Image(size=8)
    if way == "TensorFlow":
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        tf.constant(0)
    before = resident_megabytes()
    batches = ways(path)[way]()
    next(batches)
    costs, highest = [], before
    for _ in range(ROUNDS):
        begun, count = time.process_time(), 0
        while count < windows_per_round:
            count += next(batches)
            highest = max(highest, resident_megabytes())
        costs.append(1000 * (time.process_time() - begun) / count)
    return {"costs": costs, "growth": highest - before}


def main() -> None:
    """Measure all ways in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--windows", type=int, default=640, help="in a round")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "episodes")
    parser.add_argument("--way", help="measure only this one, and print JSON")
    options = parser.parse_args()
    path = options.folder / f"{options.episodes}.tfrecord"
    if options.way:
        print(json.dumps(measure(options.way, path, options.windows)))
        return
    options.folder.mkdir(exist_ok=True)
    if not path.exists():
        draw(path, options.episodes)
    print("| way | CPU ms a window | of simplejpeg | memory grows by MB |\n|---|---|---|---|")
    alone = 0.0
    for way in ways(path):
        if way == "TensorFlow" and find_spec("tensorflow") is None:
            continue
        command = [sys.executable, __file__, *sys.argv[1:], "--way", way]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        result = json.loads(done.stdout.splitlines()[-1])
        cost = statistics.median(result["costs"])
        alone = alone or cost
        print(f"| {way} | {cost:.2f} | {cost / alone:.2f} | {result['growth']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
