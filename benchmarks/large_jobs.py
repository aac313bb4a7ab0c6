"""Plans and finishes packing jobs that are larger than memory, with made-up samples and results,
and packs by an engine.

    python benchmarks/large_jobs.py plan --samples 10000000
    python benchmarks/large_jobs.py engine --engine processes:4
    python benchmarks/large_jobs.py start --engine ray

Each runs in a process of its own. Prints seconds, CPU seconds, the peak memory of the process and
the bytes on disk, as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import pickle
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.sources import Listing, Sample, collect
from recordsmith.sources.class_folders.image_folder import ImageReader
from recordsmith.stores import as_folder

SAMPLES_OF_A_SHARD = 1000


class MadeUpImages:
    """A source of images that do not exist, in the classes of folders."""

    def __init__(self, count: int, folder: Path, class_count: int = 1000) -> None:
        self._count = count
        self._folder = folder
        self._class_count = class_count

    def list_samples(self) -> Listing:
        names = tuple(f"class{label:04d}" for label in range(self._class_count))
        return Listing(collect(self._walk()), ImageReader(as_folder(self._folder), names), names)

    def _walk(self) -> Iterator[Sample]:
        for number in range(self._count):
            label = number * self._class_count // self._count
            name = f"class{label:04d}/photo_{number:012d}.jpg"
            yield Sample(name, 110_000 + number % 1000, label, version=1 << 60 | number)

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "MadeUpImages"}


class Clock:
    """Measures the steps of this process."""

    def __init__(self) -> None:
        self.steps: dict[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def note(self, step: str) -> None:
        """Note the time since the last step."""
        self.steps[f"{step}_s"] = round(time.perf_counter() - self._wall, 2)
        self.steps[f"{step}_cpu_s"] = round(time.process_time() - self._cpu, 2)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.steps[f"{step}_peak_mb"] = round(peak / 1000)
        self._begin()


def list_only(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What the made-up listing takes by itself."""
    clock = Clock()
    for _ in MadeUpImages(arguments.samples, folder).list_samples().samples:
        pass
    clock.note("list")
    return clock.steps


def plan(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Plan a listing, and make its tasks, or some of them."""
    shards = max(1, arguments.samples // SAMPLES_OF_A_SHARD)
    if arguments.shards:
        shards = arguments.shards
    options = {"splits": {"train": 0.9, "test": 0.1}} if arguments.splits else {}
    clock = Clock()
    source = MadeUpImages(arguments.samples, folder)
    count = None if arguments.splits else shards
    tasks = rs.plan(source, folder / "out", shards=count, **options).tasks()
    clock.note("plan")
    task_bytes = count = 0
    for task in itertools.islice(tasks, arguments.tasks):
        task_bytes += len(pickle.dumps(task))
        count += 1
    clock.note("tasks")
    return {
        "samples": arguments.samples,
        "task_count": count,
        "task_bytes": task_bytes,
        **clock.steps,
    }


def engine(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Pack 100 shards by an engine, and run the same tasks in as many processes without it.

    The share is that of the time which the engine takes beyond planning and the tasks, divided by
    the processes: starting them, passing tasks and results, waiting for the last one, and
    finishing. A round before the others starts a cluster and reads the images.
    """
    import numpy as np
    from PIL import Image

    count = arguments.shards or 100
    images = folder / "images" / "a"
    images.mkdir(parents=True)
    pixels = np.random.default_rng(1).integers(0, 256, (25, 33, 3), np.uint8)
    for number in range(arguments.images * count):
        image = Image.fromarray(np.roll(pixels, number, (0, 1))).resize((500, 375))
        image.save(images / f"{number}.jpg", quality=90)
    run_on = rs.engines.parse_engine(arguments.engine)
    job: dict[str, Any] = {
        "shards": count,
        "image_options": rs.ImageOptions(store="jpeg", shorter_side=256),
    }
    rounds: list[tuple[float, float, float]] = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(arguments.processes) as pool:
        for number in range(arguments.rounds + 1):
            begun = time.perf_counter()
            made = rs.plan(rs.ImageFolder(images.parent), folder / f"alone-{number}", **job)
            planning = time.perf_counter() - begun
            alone = sum(pool.imap_unordered(_seconds_of, made.tasks())) / arguments.processes
            begun = time.perf_counter()
            rs.pack(rs.ImageFolder(images.parent), folder / f"out-{number}", engine=run_on, **job)
            rounds.append((time.perf_counter() - begun, planning, alone))
    shares = [(total - planning) / tasks - 1 for total, planning, tasks in rounds[1:]]
    total, planning, tasks = (statistics.median(column) for column in zip(*rounds[1:], strict=True))
    return {
        "engine": arguments.engine,
        "shards": count,
        "images": arguments.images * count,
        "processes": arguments.processes,
        "engine_s": round(total, 2),
        "planning_s": round(planning, 2),
        "tasks_s": round(tasks, 2),
        "overhead_percent": round(100 * statistics.median(shares), 1),
    }


def _seconds_of(task: Any) -> float:
    begun = time.perf_counter()
    rs.run(task)
    return time.perf_counter() - begun


def start(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Pack a few images by an engine and without it: what a job costs whatever its size.

    The first job of a process starts the cluster on this machine, as `--engine` does in each
    command; a running cluster is joined in less.
    """
    import numpy as np
    from PIL import Image

    images = folder / "images" / "a"
    images.mkdir(parents=True)
    for number in range(8):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(images / f"{number}.jpg")
    run_on = rs.engines.parse_engine(arguments.engine)

    def seconds_of(name: str, **options: Any) -> float:
        begun = time.perf_counter()
        rs.pack(rs.ImageFolder(images.parent), folder / name, shards=4, **options)
        return round(time.perf_counter() - begun, 3)

    without = [seconds_of(f"here-{number}") for number in range(arguments.rounds + 1)]
    first = seconds_of("first", engine=run_on)
    later = [seconds_of(f"later-{number}", engine=run_on) for number in range(arguments.rounds)]
    return {
        "engine": arguments.engine,
        "threads_s": statistics.median(without[1:]),
        "first_s": first,
        "later_s": round(statistics.median(later), 3),
    }


def in_new_process(job: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run a job in a process of its own, so that its peak memory is only its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        found: dict[str, Any] = pool.apply(job, arguments)
    return found


JOBS = {job.__name__: job for job in (list_only, plan, engine, start)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--splits", action="store_true")
    parser.add_argument("--tasks", type=int, default=None, help="how many to make; all by default")
    parser.add_argument("--engine", default="processes:4")
    parser.add_argument("--processes", type=int, default=4, help="of the engine")
    parser.add_argument("--images", type=int, default=300, help="of each shard, for `engine`")
    parser.add_argument("--rounds", type=int, default=3, help="of `engine`")
    chosen = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="large-jobs-"))
    try:
        job = JOBS[chosen.job]
        is_here = job in (engine, start)  # these start processes themselves
        figures = job(chosen, scratch) if is_here else in_new_process(job, chosen, scratch)
        print(json.dumps({"job": chosen.job, **figures}), flush=True)
    finally:
        shutil.rmtree(scratch)
