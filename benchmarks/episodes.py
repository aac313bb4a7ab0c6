"""Measure windows of episodes: CPU time of a window, and how much memory grows.

    python benchmarks/episodes.py
    python benchmarks/episodes.py --side 48 --batch 2 --curves docs/episodes-memory.svg

Draws 200 episodes of 40 steps with two cameras of 256x256, then loads windows of 8 steps at random
in a process of its own for each way: recordsmith, simplejpeg alone on the same frames, and
TensorFlow, where it is installed: windows in a shuffle buffer, decoded after it. They take turns,
a round each. Prints a Markdown table. `--curves` draws the memory over 10,000 batches instead.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

STEPS, WINDOW = 40, 8
CAMERAS = ("steps/observation/image_0", "steps/observation/image_1")
BUFFERED = 10_000 // WINDOW  # windows in the shuffle buffer: 10,000 frames of each camera
ROUNDS = 9
CURVE_BATCHES, CURVE_POINTS = 10_000, 200
LEFT, TOP, WIDTH, HEIGHT = 60, 20, 640, 280  # of the curves, in pixels
Batches: TypeAlias = Iterator[tuple[int, float | None]]  # windows, bytes read for each used
COLOURS = ("#0072b2", "#009e73", "#d55e00")


def draw(path: Path, episode_count: int, side: int) -> None:
    """Write episodes of frames with edges, gradients and noise."""
    import simplejpeg

    import recordsmith as rs

    random = np.random.default_rng(0)
    y, x = np.mgrid[:side, :side, :1][:2]
    noise = random.normal(0, 6, (2 * side, 2 * side, 3))
    with rs.ShardWriter(path) as writer:
        for number in range(episode_count):
            record: dict[str, Any] = {}
            for camera in CAMERAS:
                periods, phases = random.uniform(8, 60, 3), random.uniform(0, 6, 3)
                scene = 128 + 80 * np.sin(x / periods + phases + (y > x))
                frames = []
                for step in range(STEPS):
                    top, left = random.integers(0, side, 2)
                    moved = np.roll(scene, 3 * step, 1) + noise[top:, left:][:side, :side]
                    pixels = moved.clip(0, 255).astype(np.uint8)
                    frames.append(simplejpeg.encode_jpeg(pixels, 90))
                record[camera] = frames
            record["steps/action"] = random.random(7 * STEPS, np.float32)
            record["steps/is_first"] = [step == 0 for step in range(STEPS)]
            record["steps/language_instruction"] = [f"task {number}"] * STEPS
            writer.write_example(record)


def ours(path: Path, batch_size: int, shuffle: Any) -> Batches:
    import recordsmith as rs

    windows = rs.Episodes(rs.open(path), window=WINDOW)
    features: dict[str, Any] = {camera: rs.Image(camera) for camera in CAMERAS}
    features["action"] = rs.Tensor("steps/action", shape=(WINDOW, 7))
    loader = rs.Loader(
        windows, features, batch_size=batch_size, shuffle=shuffle, epochs=None, threads=1,
        prefetch=1,
    )  # fmt: skip
    for batch in loader:
        yield len(batch["action"]), loader.stats().read_amplification


def simplejpeg_alone(path: Path, batch_size: int) -> Batches:
    import simplejpeg

    import recordsmith as rs

    random = np.random.default_rng(0)
    episodes: Any = list(rs.open(path)[:8])
    shape = simplejpeg.decode_jpeg(episodes[0][CAMERAS[0]][0]).shape
    batch = np.empty((batch_size, WINDOW * len(CAMERAS), *shape), np.uint8)
    for out in cycle(batch):
        episode, first = episodes[random.integers(len(episodes))], random.integers(STEPS - WINDOW)
        frames = [frame for key in CAMERAS for frame in episode[key][first : first + WINDOW]]
        for frame, pixels in zip(frames, out, strict=True):
            simplejpeg.decode_jpeg(frame, buffer=pixels)
        yield 1, None


def tensorflow(path: Path, batch_size: int) -> Batches:
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
    for batch in dataset.batch(batch_size).prefetch(1):
        yield len(batch["steps/action"]), None


def ways(path: Path, batch_size: int) -> dict[str, Callable[[], Batches]]:
    import recordsmith as rs

    return {
        "simplejpeg alone": lambda: simplejpeg_alone(path, batch_size),
        "recordsmith": lambda: ours(path, batch_size, True),
        "recordsmith, BlockShuffle(256, 4)": lambda: ours(
            path, batch_size, rs.BlockShuffle(256, 4)
        ),
        "TensorFlow": lambda: tensorflow(path, batch_size),
    }


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def serve(make: Callable[[], Batches], *, is_tensorflow: bool) -> None:
    """Load as many windows as each line of the standard input says, and print what they cost.

    CPU milliseconds a window since the last ones, also for those that are loaded ahead; how much
    memory has grown, now and at most, in MB; and bytes read for each byte used.
    """
    import cv2
    import simplejpeg  # noqa: F401 - imported before memory is measured

    import recordsmith as rs

    cv2.setNumThreads(1)
    rs.Image(size=8)
    if is_tensorflow:
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        tf.constant(0)
    before = highest = resident_megabytes()
    batches = make()
    begun = time.process_time()
    for line in sys.stdin:
        count, ratio = 0, None
        while count < int(line):
            window_count, ratio = next(batches)
            count += window_count
            highest = max(highest, resident_megabytes())
        ended = time.process_time()
        now = resident_megabytes() - before
        cost = 1000 * (ended - begun) / count
        print(json.dumps([cost, now, highest - before, ratio]), flush=True)
        begun = ended


class Served:
    """A way in a process of its own."""

    def __init__(self, way: str) -> None:
        command = [sys.executable, __file__, *sys.argv[1:], "--way", way]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def ask(self, window_count: int) -> None:
        """Let it load windows."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{window_count}\n")
        self._process.stdin.flush()

    def answer(self) -> list[Any]:
        """Return what they cost, as `serve` prints it."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())  # type: ignore[no-any-return]


def print_table(served: Mapping[str, Served], window_count: int) -> None:
    """Measure the ways in turn; the first round is not counted."""
    costs: dict[str, list[float]] = {way: [] for way in served}
    for _ in range(ROUNDS + 1):
        for way, process in served.items():
            process.ask(window_count)
            cost, _, highest, ratio = process.answer()
            costs[way] = [*costs[way], cost]
            if len(costs[way]) > ROUNDS:
                cost = statistics.median(costs[way][1:])
                alone = statistics.median(costs["simplejpeg alone"][1:])
                read = "" if ratio is None else f"{ratio:.1f}"
                print(f"| {way} | {cost:.2f} | {cost / alone:.2f} | {highest:.0f} | {read} |")


def draw_curves(path: Path, curves: Mapping[str, Sequence[float]]) -> None:
    """Draw the MB of each way over the batches as SVG."""
    most = max(max(curve) for curve in curves.values())
    step = next(step for step in (10, 25, 50, 100, 250, 500, 1000) if most <= 8 * step)
    top = -(-most // step) * step
    size = f'width="{LEFT + WIDTH + 20}" height="{TOP + HEIGHT + 50}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]

    def text(x: float, y: float, words: str, anchor: str = "middle", colour: str = "black") -> None:
        lines.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{words}</text>')

    for value in range(0, int(top) + 1, step):
        y = TOP + HEIGHT * (1 - value / top)
        lines.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ddd"/>')
        text(LEFT - 6, y + 4, f"{value:,}", "end")
    for part in range(5):
        batch = CURVE_BATCHES * part // 4
        text(LEFT + WIDTH * part / 4, TOP + HEIGHT + 18, f"{batch:,}")
    text(LEFT + WIDTH / 2, TOP + HEIGHT + 38, "batches")
    text(LEFT, TOP - 6, "growth of memory after imports, MB", "start")
    for number, (colour, way) in enumerate(zip(COLOURS, curves, strict=False)):
        curve = curves[way]
        text(LEFT + 8, TOP + 16 * (number + 1), way, "start", colour)
        places = " ".join(
            f"{LEFT + WIDTH * point / len(curve):.0f},{TOP + HEIGHT * (1 - value / top):.1f}"
            for point, value in enumerate(curve, 1)
        )
        lines.append(
            f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
    path.write_text("\n".join([*lines, "</svg>", ""]), "utf-8")


def main() -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--side", type=int, default=256, help="of frames, in pixels")
    parser.add_argument("--batch", type=int, default=16, help="windows in a batch")
    parser.add_argument("--windows", type=int, default=320, help="in a round")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "episodes")
    parser.add_argument("--curves", type=Path, help="draw memory over 10,000 batches to this SVG")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.folder / f"{options.episodes}-{options.side}.tfrecord"
    makers = ways(path, options.batch)
    if options.way:
        serve(makers[options.way], is_tensorflow=options.way == "TensorFlow")
        return
    options.folder.mkdir(exist_ok=True)
    if not path.exists():
        draw(path, options.episodes, options.side)
    if find_spec("tensorflow") is None:
        del makers["TensorFlow"]
    if options.curves is None:
        measured = "CPU ms a window | of simplejpeg | memory grows by MB | bytes read a byte used"
        print(f"| way | {measured} |")
        print("|---|---|---|---|---|")
        print_table({way: Served(way) for way in makers}, options.windows)
        return
    served = {way: Served(way) for way in makers if way != "simplejpeg alone"}
    curves: dict[str, list[float]] = {way: [] for way in served}
    print("| batches |", " | ".join(served), "|\n|---" + "|---" * len(served) + "|")
    for point in range(1, CURVE_POINTS + 1):
        for process in served.values():
            process.ask(options.batch * CURVE_BATCHES // CURVE_POINTS)
        for way, process in served.items():
            curves[way].append(process.answer()[1])
        if point in (1, CURVE_POINTS // 10, CURVE_POINTS // 2, CURVE_POINTS):
            shown = " | ".join(f"{curve[-1]:.0f}" for curve in curves.values())
            print(f"| {CURVE_BATCHES * point // CURVE_POINTS:,} | {shown} |", flush=True)
    draw_curves(options.curves, curves)


if __name__ == "__main__":
    main()
