"""Temporary files, in the folder of the variable TMPDIR."""

from __future__ import annotations

import io
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, cast

from recordsmith.stores.local.reader import LocalReader
from recordsmith.support.errors import FileAccessError, access_error

if TYPE_CHECKING:  # NumPy only when needed
    import numpy.typing as npt

    from recordsmith.support.buffers import BytesLike

_IN_MEMORY_BYTES = 1 << 20
_ARRAY_IN_MEMORY_BYTES = 64 << 20


class ScratchFile(LocalReader):
    """A file without a name: nothing is left of it, however the process ends.

    It is closed when it is garbage-collected. Reading is safe from several threads; writing is not.
    """

    def __init__(
        self, pieces: Iterable[BytesLike] = (), *, folder: os.PathLike[str] | None = None
    ) -> None:
        self._path = "a temporary file"
        self._folder = folder
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                descriptor = os.dup(file.fileno())
        except OSError as error:
            raise self._write_error(error) from error
        io.FileIO.__init__(self, descriptor, "r+b", closefd=False)
        weakref.finalize(self, os.close, descriptor)
        for piece in pieces:
            self.append(piece)

    def append(self, data: BytesLike) -> None:
        """Write where the last write ended."""
        view = memoryview(data)  # type: ignore[arg-type]
        try:
            while view:
                view = view[os.write(self.fileno(), view) :]
        except OSError as error:
            raise self._write_error(error) from error

    def _write_error(self, error: OSError) -> FileAccessError:
        if self._folder is None:
            return _no_space_error(error)
        return access_error(error, self._folder, "write a temporary file in")

    def map(self) -> mmap.mmap:
        return mmap.mmap(self.fileno(), 0, access=mmap.ACCESS_READ)


def scratch_array(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array to fill, which is mapped from a temporary file if it is large."""
    import numpy as np

    size = count * np.dtype(dtype).itemsize
    if size <= _ARRAY_IN_MEMORY_BYTES:
        return np.empty(count, dtype)
    file = ScratchFile()
    try:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error here, not a signal later
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    except OSError as error:
        raise _no_space_error(error) from error
    return np.frombuffer(mmap.mmap(file.fileno(), size), dtype)


class ScratchFolder:
    """A folder for temporary files, which is removed when this object is garbage-collected."""

    def __init__(self) -> None:
        try:
            self.path = tempfile.mkdtemp(prefix="recordsmith-")
        except OSError as error:
            raise _no_space_error(error) from error
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def release_pages(mapped: mmap.mmap) -> None:
    """Stop counting what was read of a map as memory of the process; it can be read again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def convert_by_files(data: bytes, convert: Callable[[str, str], None]) -> bytes:
    """Convert bytes with a library that only reads and writes files."""
    with tempfile.TemporaryDirectory(prefix="recordsmith-") as folder:
        source, target = os.path.join(folder, "in"), os.path.join(folder, "out")
        with open(source, "wb") as file:
            file.write(data)
        convert(source, target)
        with open(target, "rb") as file:
            return file.read()


def _no_space_error(error: OSError) -> FileAccessError:
    try:
        folder = tempfile.gettempdir()
    except OSError:  # none can be written; the error lists them
        return FileAccessError(
            error.errno,
            str(error.strerror),
            "a temporary file",
            operation="write",
            remedy="Set TMPDIR to a folder for temporary files.",
        )
    failed = access_error(error, folder, "write a temporary file in")
    failed.advise("Set TMPDIR to another folder.")
    return failed


def spooled_file(folder: str | None) -> IO[bytes]:
    """Open a temporary file, in memory while it is small; `folder` None means the system's."""
    return cast(IO[bytes], tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=folder))
