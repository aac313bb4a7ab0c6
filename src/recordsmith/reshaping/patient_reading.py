"""Read a file from a disk that fails here and there: zeros stand for what it cannot read.

Zeros are never taken for a record, so what is around them can be rescued. Read errors are all that
is gone around; whatever else the system says is raised.
"""

from __future__ import annotations

import errno
import io
from typing import BinaryIO, cast

_STEP_BYTES = 4096
"""Disks and file systems lose blocks of this size, not single bytes."""


class PatientFile(io.RawIOBase):
    """An unbuffered file, not owned, able to seek.

    unreadable: ranges [start, stop) that were read as zeros, as they were met.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.unreadable: list[tuple[int, int]] = []

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(target).cast("B")
        start = self._file.tell()
        try:
            return self._read(view)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        self._file.seek(start)
        block = view[: _STEP_BYTES - start % _STEP_BYTES]
        try:
            return self._read(block)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        count = min(len(block), max(0, self._file.seek(0, io.SEEK_END) - start))
        block[:count] = bytes(count)
        self._file.seek(start + count)
        self._note(start, start + count)
        return count

    def _read(self, view: memoryview) -> int:
        return cast(int, self._file.readinto(view))  # type: ignore[attr-defined]

    def _note(self, start: int, stop: int) -> None:
        if any(known <= start and stop <= end for known, end in self.unreadable):
            return  # it was read before
        if self.unreadable and self.unreadable[-1][1] == start:
            start = self.unreadable.pop()[0]
        self.unreadable.append((start, stop))
