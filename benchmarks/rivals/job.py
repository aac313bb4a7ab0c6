"""The process of one rival: does one job, and prints what was measured as JSON.

    python job.py MODULE JOB OPTIONS        OPTIONS is JSON

JOB is a function below, or MODULE:FUNCTION. What libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rival import Options, Rival, UnsupportedError, digest_of, hashes_of, photos_of

from clock import cpu_seconds


def pack(rival: Rival, images: str, out: str) -> dict[str, Any]:
    if rival.pack is None:
        raise UnsupportedError("reads the files as they are")
    photos = photos_of(Path(images))
    cpu, wall = cpu_seconds(), time.perf_counter()
    rival.pack(photos, Path(out))
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    size = sum(path.stat().st_size for path in Path(out).rglob("*") if path.is_file())
    return {"cpu": cpu, "wall": wall, "size_bytes": size, "count": len(photos)}


def content(rival: Rival, **options: Any) -> dict[str, Any]:
    """The gate: which images an epoch has, by the hash of each file; order does not matter."""
    loader = rival.loader(Options(**options, what="bytes"))
    found = list(hashes_of(loader.epoch()))
    return {"count": len(found), "digest": digest_of(found)}


def pixels(rival: Rival, **options: Any) -> dict[str, Any]:
    """The gate of decoded images: their number, shapes and mean value."""
    import numpy as np

    count, total, shapes = 0, 0.0, set()
    for batch in rival.loader(Options(**options)).epoch():
        images = np.asarray(batch.images)  # of tensors, too
        count += len(batch.keys)
        total += float(images.mean(dtype="float64")) * len(images)
        shapes.add(f"{images.dtype} {images.shape[1:]}")
    return {"count": count, "shapes": sorted(shapes), "mean": total / count}


def first_batch(rival: Rival, **options: Any) -> dict[str, Any]:
    """When the first batch is there, by the clock of the system, and the CPU seconds until then."""
    batch = next(rival.loader(Options(**options)).epoch())
    return {"at": time.time(), "cpu": cpu_seconds(), "count": len(batch.keys)}


def access(rival: Rival, positions: list[int], place: str, batch_size: int) -> dict[str, Any]:
    """Read the JPEG files at random positions, a batch with each call; all of them first."""
    if rival.reader is None:
        raise UnsupportedError("reads in order")
    read = rival.reader(place)
    sizes = []
    for start in range(0, max(positions) + 1, batch_size):
        chosen = range(start, min(start + batch_size, max(positions) + 1))
        sizes += [len(image) for image in read(chosen)]
    cpu, wall = cpu_seconds(), time.perf_counter()
    found = [
        len(image)
        for start in range(0, len(positions), batch_size)
        for image in read(positions[start : start + batch_size])
    ]
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    if found != [sizes[position] for position in positions]:
        raise UnsupportedError("returns other images than when it is read in order")
    return {"cpu": cpu, "wall": wall, "total": sum(sizes)}


def versions(rival: Rival) -> dict[str, str]:
    """Of the rival's libraries. recordsmith is not installed here, but on the path."""
    return {
        name: import_module(name).__version__ if name == "recordsmith" else version(name)
        for name in rival.distributions
    }


def epochs(rival: Rival, epoch_count: int = 2, **options: Any) -> dict[str, Any]:
    """Time and order of each epoch; the first one starts threads and workers."""
    loader = rival.loader(Options(**options))
    measured = []
    for _ in range(epoch_count):
        cpu, wall = cpu_seconds(), time.perf_counter()
        first, keys = 0.0, []
        for batch in loader.epoch():
            first = first or time.perf_counter() - wall
            keys += [int(key) for key in batch.keys]
        cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
        measured.append({"cpu": cpu, "wall": wall, "first": first, "keys": keys})
    return {"epochs": measured}


def round_trip(rival: Rival, batch_count: int, **options: Any) -> dict[str, Any]:
    """The keys of an epoch until its state is saved, and of a loader with that state."""
    first, second = (rival.loader(Options(**options)) for _ in range(2))
    epoch = first.epoch()
    before = [int(key) for _ in range(batch_count) for key in next(epoch).keys]
    second.load(pickle.loads(pickle.dumps(first.state())))
    return {"before": before, "after": [int(key) for batch in second.epoch() for key in batch.keys]}


JOBS: tuple[Callable[..., dict[str, Any]], ...] = (
    pack,
    content,
    pixels,
    epochs,
    round_trip,
    first_batch,
    access,
    versions,
)


def main() -> None:
    module, name, given = sys.argv[1:]
    results = os.dup(1)
    os.dup2(2, 1)
    rival: Rival = import_module(module).RIVAL
    try:
        measured = _job(name)(rival, **json.loads(given))
    except UnsupportedError as error:
        measured = {"unsupported": str(error)}
    except ImportError as error:
        measured = {"missing": str(error)}
    os.write(results, (json.dumps(measured) + "\n").encode())
    if name == "first_batch" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # how a loader and its workers end is not measured


def _job(name: str) -> Callable[..., dict[str, Any]]:
    module, _, function = name.rpartition(":")
    if module:
        found: Callable[..., dict[str, Any]] = getattr(import_module(module), function)
        return found
    return next(job for job in JOBS if job.__name__ == name)


if __name__ == "__main__":
    main()
