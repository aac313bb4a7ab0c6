"""Was it the file that was wrong, or the system's memory of it? The same bytes, read once more.

A file that was read before lies in the page cache, and a bad bit there looks like a damaged file.
So before a file is condemned, its bytes are asked of the device itself: `O_DIRECT` where the file
system has it, else after the system was told to forget them (`POSIX_FADV_DONTNEED`).
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

from recordsmith.errors import CorruptDataError, Defect

_ALIGNMENT = 4096  # of offsets, lengths and memory, for O_DIRECT on any device of today
LONGEST_BYTES = 256 << 20
"""More than this is not read a second time."""

WRONG_TWICE = "It was read twice, the second time past the system's memory, and was wrong again."


def transient(what: str, position: int | None, offset: int | None) -> CorruptDataError:
    """What should be known of bytes that were right the second time; `what` was wrong with them."""
    return CorruptDataError(
        Defect.TRANSIENT_READ,
        f"{what} past the system's memory: the file is good, the copy of it in memory was not. If "
        "this comes again, test the memory and the disk's cable of this machine.",
        position=position,
        offset=offset,
    )


def read_again(path: Path, start: int, stop: int) -> bytes | None:
    """The bytes start:stop of a file, past the page cache; None if they cannot be had.

    Fewer bytes where the file ends before.
    """
    if stop - start > LONGEST_BYTES:
        return None
    forget(path, start, stop)
    try:
        return _read_direct(path, start, stop)
    except OSError:
        pass
    try:
        return _read_plainly(path, start, stop)
    except OSError:
        return None


def forget(path: Path, start: int = 0, stop: int = 0) -> None:
    """Have the system drop what it keeps of a file, as far as it can; to its end if stop is 0."""
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            begin = start // _ALIGNMENT * _ALIGNMENT  # whole pages only are dropped
            length = -(-(stop - begin) // _ALIGNMENT) * _ALIGNMENT if stop else 0
            os.posix_fadvise(descriptor, begin, length, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _read_direct(path: Path, start: int, stop: int) -> bytes:
    if not hasattr(os, "O_DIRECT"):
        raise OSError("this system has no O_DIRECT")
    begin = start // _ALIGNMENT * _ALIGNMENT
    size = -(-(stop - begin) // _ALIGNMENT) * _ALIGNMENT
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, size) as memory:  # anonymous memory begins at a page
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


def _read_plainly(path: Path, start: int, stop: int) -> bytes:
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
