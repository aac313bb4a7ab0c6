"""Version numbers of files, from modification times in nanoseconds, without reading the files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from recordsmith.files import PathLike, accessing
from recordsmith.wire import crc32c


def size_and_time(file: PathLike | os.DirEntry[str]) -> tuple[int, int]:
    """Size in bytes and modification time of a file; 0 for a missing one, which fails when read."""
    try:
        status = file.stat() if isinstance(file, os.DirEntry) else os.stat(file)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def times_version(times: Iterable[int]) -> int:
    """A number for the modification times of several files, in this order."""
    return crc32c(b"".join(time.to_bytes(16, "little", signed=True) for time in times))


def files_version(paths: Iterable[PathLike]) -> int:
    """A number for files that must exist.

    Raises:
        FileAccessError: one of them does not exist.
    """
    times = []
    for path in paths:
        with accessing(path):
            times.append(os.stat(path).st_mtime_ns)
    return times_version(times)
