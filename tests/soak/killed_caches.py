"""Kill processes that read through one cache, while its limit changes and its files are damaged.

    python tests/soak/killed_caches.py --seed 7 --count 300

Several processes read random ranges of objects, which are replaced now and then, and compare them
with what the objects contain. They are killed at random moments. Exit code 1 if a process read
something wrong, or if the folder was larger than its limit, as the file system counts.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from shared import exit_code, fork, option_parser

from recordsmith.stores import CachedStore, ObjectInfo, Range, Store
from recordsmith.support.errors import FileAccessError

_LIMITS = (9 << 20, 17 << 20, 30 << 20)
_OBJECTS = 5
_OBJECT_BYTES = 12_000_123
_READERS = 3
_MAX_RANGE = 700_000


class NoiseStore(Store):
    """Objects that are computed: each version of each object has other bytes.

    The file `version` has the version of all objects.
    """

    concurrency = 4
    is_writable = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def name_of(self, key: str) -> str:
        return f"noise://{key}"

    def info(self, key: str) -> ObjectInfo:
        return ObjectInfo(key, _OBJECT_BYTES, (self.folder / "version").read_text())

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        assert version is not None
        return content(key, version, start, _OBJECT_BYTES if stop is None else stop)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        yield from (self.info(str(key)) for key in range(_OBJECTS) if str(key).startswith(prefix))

    open_write: Any = None
    put_if_absent: Any = None
    put_if_match: Any = None
    delete: Any = None


def content(key: str, version: str, start: int, stop: int) -> bytes:
    """The bytes start:stop of a version of an object."""
    stop = min(stop, _OBJECT_BYTES)
    first, last = start // 8, -(-stop // 8)
    numbers = np.arange(first, last, dtype=np.uint64) + np.uint64(
        (int(key) << 40) + int(version) * 12_345_677
    )
    numbers *= np.uint64(0x9E3779B97F4A7C15)
    numbers ^= numbers >> np.uint64(29)
    return numbers.tobytes()[start - 8 * first : stop - 8 * first]


def read_for(folder: Path, seconds: float, seed: int, limit: int | None) -> None:
    """Read random ranges, and compare them."""
    dice = random.Random(seed)
    store = CachedStore(NoiseStore(folder), str(folder / "cache"), limit)
    stop_at = time.monotonic() + seconds
    while time.monotonic() < stop_at:
        ranges = []
        for _ in range(dice.randrange(1, 20)):
            key = str(dice.randrange(_OBJECTS))
            start = dice.randrange(_OBJECT_BYTES)
            stop = start + dice.randrange(_MAX_RANGE)
            ranges.append(Range(key, start, stop, store.info(key).version))
        if dice.random() < 0.5:
            found = dict(store.read_many(ranges))
        else:
            found = {index: store.read(*wanted) for index, wanted in enumerate(ranges)}
        for index, (key, start, stop, version) in enumerate(ranges):
            assert stop is not None
            assert version is not None
            if found[index] != content(key, version, start, stop):
                raise ValueError(f"{ranges[index]} has other bytes")
    store.flush()


def reader(*arguments: Any) -> int:
    """Start a process that reads; it exits with 1 if something is wrong."""

    def read() -> None:
        with suppress(FileAccessError):
            read_for(*arguments)

    return fork(read)


def kill(child: int) -> int:
    """Kill a process; return its exit code."""
    os.kill(child, signal.SIGKILL)
    return exit_code(child)


def damage(cache: Path, dice: random.Random) -> None:
    """Write random bytes to a block, as many of them to its table."""
    paths = [*(cache / "blocks").iterdir()]
    if paths:
        with suppress(FileNotFoundError), dice.choice(paths).open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            for number in range(50 if size else 0):
                file.seek(dice.randrange(min(4096, size) if number % 2 else size))
                file.write(dice.randbytes(1))


def disk_bytes(folder: Path) -> int:
    """The disk space of a folder, by blocks in use."""
    total = 0
    for path in [folder, *folder.rglob("*")]:
        with suppress(FileNotFoundError):
            total += path.lstat().st_blocks * 512
    return total


def soak(folder: Path, count: int, seed: int) -> list[str]:
    """Kill `count` processes; return what was wrong."""
    dice = random.Random(seed)
    cache = folder / "cache"
    (folder / "version").write_text("1")
    limit = _LIMITS[1]
    readers: list[int] = []
    problems: list[str] = []
    exit_code(reader(folder, 0.1, dice.random(), limit))
    killed = version = 0
    while killed < count and len(problems) < 5:
        while len(readers) < _READERS:
            readers.append(reader(folder, 60.0, dice.random(), None))
        time.sleep(dice.random() * 0.15)
        if disk_bytes(cache) > limit:
            problems.append(f"the folder has {disk_bytes(cache)} bytes on disk, limit {limit}")
        kind = dice.randrange(8)
        if kind == 0:
            version += 1
            (folder / "new").write_text(str(version))
            (folder / "new").rename(folder / "version")
        elif kind == 1:
            for child in readers:  # a process compares a page with its checksum once
                kill(child)
            readers.clear()
            damage(cache, dice)
        elif kind == 2 and killed % 3 == 0:
            smaller = dice.choice(_LIMITS)
            limit = max(limit, smaller)  # while it changes
            status = exit_code(reader(folder, 0.0, dice.random(), smaller))
            if status:
                problems.append(f"the limit could not be changed: status {status}")
            limit = smaller
        elif kind == 3:  # killed while it changes the limit
            child = reader(folder, 1.0, dice.random(), limit)
            time.sleep(dice.random() * 0.02)
            kill(child)
        else:
            status = kill(readers.pop(dice.randrange(len(readers))))
            killed += 1
            if status != -signal.SIGKILL:
                problems.append(f"a process ended with status {status}")
    for child in readers:
        kill(child)
    status = exit_code(reader(folder, 1.0, dice.random(), limit))
    if status:
        problems.append(f"the last process ended with status {status}")
    if disk_bytes(cache) > limit:
        problems.append(f"the folder has {disk_bytes(cache)} bytes on disk in the end")
    return problems


def main() -> int:
    options = option_parser(__doc__, 300, "how many processes to kill").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = soak(Path(folder), options.count, options.seed)
    print("\n".join(problems[:20]) or "nothing wrong", f"seed {options.seed}", sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
