"""The process of one rival: does one job, and prints what was measured as JSON.

    python job.py MODULE JOB OPTIONS        OPTIONS is JSON

What libraries print goes to standard error.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rival import Options, Photo, Rival, UnsupportedError

from clock import cpu_seconds


def photos_of(folder: Path) -> list[Photo]:
    """The JPEG files of a folder of classes, whose names are their keys."""
    paths = sorted(folder.glob("*/*.jpg"), key=lambda path: int(path.stem))
    classes = sorted({path.parent.name for path in paths})
    return [Photo(int(path.stem), path, classes.index(path.parent.name)) for path in paths]


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
    found = sorted(
        (int(key), hashlib.sha256(image).hexdigest())
        for batch in loader.epoch()
        for key, image in zip(batch.keys, batch.images, strict=True)
    )
    return {"count": len(found), "digest": hashlib.sha256(repr(found).encode()).hexdigest()}


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


JOBS: tuple[Callable[..., dict[str, Any]], ...] = (pack, content, epochs)


def main() -> None:
    module, name, given = sys.argv[1:]
    results = os.dup(1)
    os.dup2(2, 1)
    rival: Rival = import_module(module).RIVAL
    job = next(job for job in JOBS if job.__name__ == name)
    try:
        measured = job(rival, **json.loads(given))
    except UnsupportedError as error:
        measured = {"unsupported": str(error)}
    except ImportError as error:
        measured = {"missing": str(error)}
    os.write(results, (json.dumps(measured) + "\n").encode())


if __name__ == "__main__":
    main()
