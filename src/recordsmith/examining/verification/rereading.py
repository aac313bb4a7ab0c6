"""Reads bytes again, bypassing the page cache, to distinguish bad memory from a damaged file.

A bad bit in the page cache looks like a damaged file. Before a file is reported as damaged, its
bytes are read again from the device: with `O_DIRECT` where the file system supports it, otherwise
after the cached pages were dropped (`POSIX_FADV_DONTNEED`).
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

from recordsmith.errors import CorruptDataError, Defect

_ALIGNMENT = 4096  # of offsets, lengths and memory: enough for O_DIRECT on all current devices
LONGEST_BYTES = 256 << 20
"""Longer ranges are not read a second time."""

WRONG_TWICE = "A second read that bypassed the page cache returned the same error."
BEING_WRITTEN = "Another program is writing it; verify it again when that program is done."


def transient(what: str, record: int | None, offset: int | None) -> CorruptDataError:
    """Make the notice for bytes that were right when read again; `what` was wrong at first."""
    return CorruptDataError(
        Defect.TRANSIENT_READ,
        f"{what}; a second read that bypassed the page cache was right, so the file is intact",
        remedy="If this happens again, test the memory, cables and disk of this machine.",
        record=record,
        offset=offset,
    )


def read_again(path: Path, start: int, stop: int) -> bytes | None:
    """Read bytes start:stop of a file, bypassing the page cache; None if that fails.

    Returns fewer bytes if the file ends earlier.
    """
    if stop - start > LONGEST_BYTES:
        return None
    drop_cached(path, start, stop)
    try:
        return _read_direct(path, start, stop)
    except OSError:
        pass
    try:
        return _read_buffered(path, start, stop)
    except OSError:
        return None


def drop_cached(path: Path, start: int = 0, stop: int = 0) -> None:
    """Drop cached pages of a file, as far as the system allows; to its end if `stop` is 0."""
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            begin = start // _ALIGNMENT * _ALIGNMENT  # only whole pages are dropped
            length = -(-(stop - begin) // _ALIGNMENT) * _ALIGNMENT if stop else 0
            os.posix_fadvise(descriptor, begin, length, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _read_direct(path: Path, start: int, stop: int) -> bytes:
    if not hasattr(os, "O_DIRECT"):
        raise OSError("O_DIRECT is not supported on this system")
    begin = start // _ALIGNMENT * _ALIGNMENT
    size = -(-(stop - begin) // _ALIGNMENT) * _ALIGNMENT
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, size) as memory:  # anonymous memory is page-aligned
            done = 0
            while done < size:
                with memoryview(memory) as view, view[done:] as rest:
                    count = os.preadv(descriptor, [rest], begin + done)
                done += count
                if count == 0 or count % _ALIGNMENT:  # the end of the file
                    break
            return memory[start - begin : min(done, stop - begin)]
    finally:
        os.close(descriptor)


def _read_buffered(path: Path, start: int, stop: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        pieces = []
        while start < stop:
            piece = os.pread(descriptor, stop - start, start)
            if not piece:
                break
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)
