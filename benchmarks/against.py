"""Measure this working tree against an earlier commit: the time of the same jobs in both.

    python benchmarks/against.py                            the jobs of all rows, 15 pairs
    python benchmarks/against.py --only pack-png --pairs 5
    python benchmarks/against.py --commit COMMIT

Both are built the same way (`pip install --target`). Each job has a process for each build, which
runs it once to warm up. Then the two run in turn, and which one goes first alternates. The figures
are medians over the pairs of (seconds of this tree) / (seconds of the commit), for CPU time and
for elapsed time. Removing the output of the last run is not part of the time. The jobs use only
names that both builds have.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from builds import build_commit, install
from clock import cpu_seconds
from inputs import Inputs

HERE = Path(__file__).resolve().parent
BASE_COMMIT = "6c76153"
"""The commit whose speed later changes are held to, as a sum over all of them."""


@dataclass(frozen=True)
class Job:
    """What is measured, and what happens before each run outside the measurement."""

    run: Callable[[], Any]
    prepare: Callable[[], Any] = lambda: None


def _verify(name: str, inputs: Inputs) -> Job:
    import recordsmith as rs

    def run() -> None:
        assert rs.verify(inputs.path(name)).is_good

    return Job(run)


def _pack(name: str, inputs: Inputs) -> Job:
    import recordsmith as rs

    out = Path(tempfile.mkdtemp(dir=inputs.folder))

    def run() -> None:
        shares = {"train": 0.7, "validation": 0.3}
        rs.pack(rs.ImageFiles(inputs.path(name)), out, splits=shares, shards=1)

    return Job(run, partial(shutil.rmtree, out, ignore_errors=True))


def _columns(inputs: Inputs) -> Job:
    import recordsmith as rs

    path = inputs.path("small.tfrecord")
    names = ["user", "label", "time", "dense", "items", "country"]
    return Job(lambda: rs.open(path).read_columns(names))


def _batches(inputs: Inputs) -> Job:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    return Job(lambda: sum(1 for _ in dataset.batches(256)))


def _random_reads(inputs: Inputs) -> Job:
    import numpy as np

    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    positions = np.random.default_rng(6).integers(0, len(dataset), 5 * inputs.random_count)
    return Job(lambda: dataset.read_records(positions))


def _in_order(inputs: Inputs) -> Job:
    import recordsmith as rs

    path = inputs.path("small.tfrecord")
    return Job(lambda: sum(1 for _ in rs.open(path).records()))


def _one_by_one(inputs: Inputs) -> Job:
    import numpy as np

    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    positions = np.random.default_rng(6).integers(0, len(dataset), inputs.random_count).tolist()
    return Job(lambda: sum(len(dataset[position]) for position in positions))


def _reshard(inputs: Inputs) -> Job:
    import recordsmith as rs

    folder = Path(tempfile.mkdtemp(dir=inputs.folder))
    shard = shutil.copy(inputs.path("small-4-times.tfrecord"), folder)  # each has its own index

    out = folder / "out"
    return Job(
        lambda: rs.reshard(shard, out, shuffle=True, shards=4),
        partial(shutil.rmtree, out, ignore_errors=True),
    )


def _index(inputs: Inputs) -> Job:
    import recordsmith as rs

    folder = Path(tempfile.mkdtemp(dir=inputs.folder))
    shards = [folder / "small.tfrecord", folder / "large.tfrecord"]
    for shard in shards:
        shard.symlink_to(inputs.path(shard.name))

    def remove_indexes() -> None:
        for path in {*folder.iterdir()} - {*shards}:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return Job(lambda: rs.index(shards), remove_indexes)


def _loader_images(inputs: Inputs) -> Job:
    import recordsmith as rs

    # by name, as each build refuses the other's manifest
    dataset = rs.open(sorted(inputs.path("camera-packed").glob("*.tfrecord")))
    features = {"image": rs.Image(size=(224, 224)), "label": rs.Scalar("image/class/label")}
    loader = rs.Loader(dataset, features, batch_size=32, shuffle=True, threads=2)
    return Job(lambda: sum(1 for _ in loader))


def _loader_small(inputs: Inputs) -> Job:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    features = {
        **{name: rs.Scalar(name) for name in ("user", "label", "time")},
        "dense": rs.Tensor("dense", (13,)),
        "items": rs.Ragged("items"),
        "country": rs.Bytes("country"),
    }
    loader = rs.Loader(dataset, features, batch_size=1024, shuffle=True, threads=1)
    return Job(lambda: sum(1 for _ in loader))


JOBS: dict[str, tuple[str, Callable[[Inputs], Job]]] = {
    "verify-small": ("small-4-times.tfrecord", partial(_verify, "small-4-times.tfrecord")),
    "verify-large": ("large.tfrecord", partial(_verify, "large.tfrecord")),
    "pack-jpeg": ("images", partial(_pack, "images")),
    "pack-png": ("pngs", partial(_pack, "pngs")),
    "columns": ("small.tfrecord", _columns),
    "batches-256": ("small.tfrecord", _batches),
    "in-order": ("small.tfrecord", _in_order),
    "random-reads": ("small.tfrecord", _random_reads),
    "one-by-one": ("small.tfrecord", _one_by_one),
    "reshard": ("small-4-times.tfrecord", _reshard),
    "index": ("large.tfrecord", _index),
    "loader-images": ("camera-packed", _loader_images),
    "loader-small": ("small.tfrecord", _loader_small),
}
"""The input and the job of each row of the table."""


def main() -> None:
    """Print the table, or be the process of one job."""
    arguments = _parse()
    inputs = Inputs(arguments.data, quick=False)
    if arguments.job:
        _work(arguments.job, inputs)
        return
    names = [name for name in JOBS if not arguments.only or name in arguments.only]
    for name in names:
        inputs.make(JOBS[name][0])
    with tempfile.TemporaryDirectory() as folder:
        base = build_commit(arguments.commit, arguments.data)
        tree = install(HERE.parent, Path(folder) / "tree")
        print(f"this tree / {arguments.commit}, {arguments.pairs} pairs\n")
        print("| job | CPU time | lowest | highest | elapsed time |")
        print("| --- | ---: | ---: | ---: | ---: |", flush=True)
        for name in names:
            pairs = _compare(name, tree, base, arguments)
            cpu, elapsed = ([pair[which] for pair in pairs] for which in (0, 1))
            print(f"| {name} | {statistics.median(cpu):.3f} | {min(cpu):.3f} | {max(cpu):.3f} "
                  f"| {statistics.median(elapsed):.3f} |", flush=True)  # fmt: skip


def _compare(
    name: str, tree: Path, base: Path, arguments: argparse.Namespace
) -> list[tuple[float, float]]:
    """The ratios of all pairs: CPU time, elapsed time."""
    both = [_start(name, build, arguments.data) for build in (tree, base)]
    try:
        for process in both:
            _seconds(process)
        ratios = []
        for pair in range(arguments.pairs):
            taken = [(0.0, 0.0), (0.0, 0.0)]
            for which in (0, 1) if pair % 2 else (1, 0):
                taken[which] = _seconds(both[which])
            ratios.append((taken[0][0] / taken[1][0], taken[0][1] / taken[1][1]))
    finally:
        for process in both:
            process.communicate()
    return ratios


def _start(name: str, build: Path, data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "against.py"), "--data", str(data), "--job", name]
    environment = {**os.environ, "PYTHONPATH": str(build)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def _seconds(process: subprocess.Popen[str]) -> tuple[float, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("run\n")
    process.stdin.flush()
    cpu, elapsed = json.loads(process.stdout.readline())
    return cpu, elapsed


def _work(name: str, inputs: Inputs) -> None:
    job = JOBS[name][1](inputs)
    for _ in sys.stdin:
        job.prepare()
        before, began = cpu_seconds(), time.perf_counter()
        result = job.run()
        print(json.dumps([cpu_seconds() - before, time.perf_counter() - began]), flush=True)
        del result


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure this tree against an earlier commit.")
    parser.add_argument("--commit", default=BASE_COMMIT, help=f"default: {BASE_COMMIT}")
    parser.add_argument("--only", nargs="+", choices=list(JOBS), metavar="JOB", help="these rows")
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="default: 15")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(tempfile.gettempdir()) / "recordsmith-benchmarks",
        help="where inputs and builds are kept",
    )
    parser.add_argument("--job", choices=list(JOBS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    return arguments


if __name__ == "__main__":
    main()
