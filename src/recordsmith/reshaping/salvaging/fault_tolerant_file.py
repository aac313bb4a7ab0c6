"""Read a file from a failing disk, with zeros in place of unreadable blocks.

Zeros are never a valid record, so the records around them can be recovered. Only read errors are
handled; other errors are raised.
"""

from __future__ import annotations

import errno
import io
from typing import cast

from recordsmith.wire.compression import ByteStream

_STEP_BYTES = 4096
"""The block size of disks and file systems."""


class FaultTolerantFile(io.RawIOBase):
    """An unbuffered, seekable view of a file, which it does not close.

    unreadable: ranges [start, stop) that were read as zeros, in order of reading.
    """

    def __init__(self, file: ByteStream) -> None:
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
        self._add_unreadable(start, start + count)
        return count

    def _read(self, view: memoryview) -> int:
        return cast(int, self._file.readinto(view))  # type: ignore[union-attr]

    def _add_unreadable(self, start: int, stop: int) -> None:
        if any(known <= start and stop <= end for known, end in self.unreadable):
            return  # known from an earlier read
        if self.unreadable and self.unreadable[-1][1] == start:
            start = self.unreadable.pop()[0]
        self.unreadable.append((start, stop))
