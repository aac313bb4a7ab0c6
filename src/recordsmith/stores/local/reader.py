"""Open files for reading, and read them in order and anywhere."""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from recordsmith.stores.object_reader import ObjectReader
from recordsmith.support.errors import accessing

try:
    from recordsmith.stores.local import kernel
except ImportError:  # Windows
    kernel = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from recordsmith.support.buffers import Int64Array

NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""A flag for `open_regular`: refuse symbolic links. Windows has no such flag, and refuses all."""

_PLAIN = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # what the system has of them
_ALIGNMENT = 4096  # of offsets, lengths and memory: enough for O_DIRECT on all current devices


def open_regular(path: str | Path, flags: int, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor; a new one gets the mode."""
    if (flags & NO_LINKS or not NO_LINKS) and os.path.islink(path):
        raise OSError(errno.EINVAL, "it is a symbolic link, not a regular file")
    descriptor = os.open(path, flags | _PLAIN, mode)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


@contextmanager
def opened(path: str | Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """Open a regular file as `open_regular`, and close it at the end of the block."""
    descriptor = open_regular(path, flags, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_without_links(path: str, flags: int) -> int:
    """Open a regular file that is not a symbolic link, as `open_regular`."""
    return open_regular(path, flags | NO_LINKS)


class LocalReader(ObjectReader, io.FileIO):
    """An open file; a pipe can only be read in order."""

    _path = ""

    def __init__(self, path: str, *, follows_links: bool = True) -> None:
        """Open a file; without following links, only a regular one."""
        self._path = path
        opener = None if follows_links else open_without_links
        with accessing(path):
            io.FileIO.__init__(self, path, "rb", opener=opener)

    @property
    def size_bytes(self) -> int:  # type: ignore[override]
        return os.fstat(self.fileno()).st_size

    def seekable(self) -> bool:
        return stat.S_ISREG(os.fstat(self.fileno()).st_mode)

    def read_at(self, start: int, stop: int) -> bytes:
        with accessing(self._path):
            if not hasattr(os, "pread"):  # Windows
                with open(self._path, "rb", buffering=0) as file:
                    file.seek(start)
                    return file.read(stop - start)
            data = os.pread(self.fileno(), stop - start, start)
            while 0 < len(data) < stop - start:  # the system reads at most 2 GiB at once
                more = os.pread(self.fileno(), stop - start - len(data), start + len(data))
                if not more:
                    break
                data += more
            return data

    def read_pieces(
        self,
        begins: Int64Array,
        ends: Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> bool:
        if kernel is None:
            return super().read_pieces(begins, ends, places, out)
        count, error = kernel.read_pieces(self.fileno(), begins, ends, places, out)
        self._check(error)
        return count == len(begins)

    def read_headers(self, start: int, stop: int, gap: int, out: npt.NDArray[np.uint8]) -> int:
        if kernel is None:
            return super().read_headers(start, stop, gap, out)
        count, error = kernel.read_headers(self.fileno(), start, stop, gap, out)
        self._check(error)
        return count

    def _check(self, error: int) -> None:
        if error:
            with accessing(self._path):
                raise OSError(error, os.strerror(error))

    def map(self) -> mmap.mmap | None:
        with accessing(self._path):
            return mmap.mmap(self.fileno(), 0, access=mmap.ACCESS_READ)

    def read_uncached(self, start: int, stop: int) -> bytes | None:
        """Read with `O_DIRECT` where the file system supports it, otherwise after the cached pages
        were dropped (`POSIX_FADV_DONTNEED`).
        """
        self.drop_cached(start, stop)
        try:
            return self._read_direct(start, stop)
        except OSError:
            pass
        try:
            with accessing(self._path):
                return self.read_at(start, stop)
        except OSError:
            return None

    def drop_cached(self, start: int = 0, stop: int = 0) -> None:
        """Drop cached pages of the file; to its end if `stop` is 0."""
        if not hasattr(os, "posix_fadvise"):
            return
        begin = start // _ALIGNMENT * _ALIGNMENT  # only whole pages are dropped
        length = -(-(stop - begin) // _ALIGNMENT) * _ALIGNMENT if stop else 0
        with suppress(OSError):
            os.posix_fadvise(self.fileno(), begin, length, os.POSIX_FADV_DONTNEED)

    def _read_direct(self, start: int, stop: int) -> bytes:
        if not hasattr(os, "O_DIRECT"):
            raise OSError("O_DIRECT is not supported on this system")
        begin = start // _ALIGNMENT * _ALIGNMENT
        size = -(-(stop - begin) // _ALIGNMENT) * _ALIGNMENT
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECT)
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

    def close(self) -> None:
        with accessing(self._path):
            super().close()

    def __del__(self) -> None:
        try:  # noqa: SIM105 - at the end of the interpreter functions of modules may be gone
            super().close()
        except OSError:
            pass
