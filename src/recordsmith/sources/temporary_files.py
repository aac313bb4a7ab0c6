"""Temporary files for data that can only be read in order, so that any part can be read again.

The file has no name: nothing is left of it, however the process ends. It lies in the folder that
the environment variable TMPDIR names. Reading is safe from several threads; writing is not.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from recordsmith.buffers import BytesLike
from recordsmith.errors import CorruptDataError, Defect, FileAccessError, SourceError, located
from recordsmith.files import PathLike, access_error, accessing, open_file, read_head
from recordsmith.wire.compression import GZIP_MAGIC, Inflater

_PENDING_BYTES = 1 << 20


class RandomFile:
    """An open file with reads at any offset; closed when it is garbage-collected."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: PathLike) -> RandomFile:
        """Open an existing file.

        Raises:
            FileAccessError: it is missing, forbidden, or no file.
        """
        with accessing(path):
            file = cls(os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)), os.fspath(path))
            file.read(0, 1)  # a folder can be opened, but not read
        return file

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, start: int, size: int) -> bytes:
        """The bytes from `start` on, fewer than `size` only at the end of the file."""
        try:
            data = os.pread(self._descriptor, size, start)
            if len(data) in (size, 0):
                return data
            pieces, missing = [data], size - len(data)  # the end, or more than one call gives
            while missing and pieces[-1]:
                pieces.append(os.pread(self._descriptor, missing, start + size - missing))
                missing -= len(pieces[-1])
            return b"".join(pieces)
        except OSError as error:
            raise access_error(error, self._name) from error

    def read_whole(self, start: int, size: int) -> bytes:
        """The bytes from `start` on, all of them.

        Raises:
            SourceError: the file ends before that.
        """
        data = self.read(start, size)
        if len(data) < size:
            raise SourceError(
                f"the file was truncated since it was listed: it ends at byte {start + len(data)}, "
                f"expected {start + size} bytes",
                path=self._name,
            )
        return data

    def stream(self) -> BinaryIO:
        """The same file for reading in order, from its start; close it after use."""
        stream = os.fdopen(os.dup(self._descriptor), "rb", buffering=1 << 16)
        stream.seek(0)
        return stream

    def mapped(self) -> mmap.mmap:
        """Map the whole file, which must not be empty, into memory for reading."""
        return mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)

    def append(self, data: BytesLike) -> None:
        """Write where the last write ended; for temporary files."""
        view = memoryview(data)  # type: ignore[arg-type]
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise _no_space_error(error) from error


def temporary_file() -> RandomFile:
    """An empty file without a name.

    Raises:
        FileAccessError: no folder for temporary files is writable.
    """
    try:
        with tempfile.TemporaryFile() as file:
            return RandomFile(os.dup(file.fileno()), "a temporary file")
    except OSError as error:
        raise _no_space_error(error) from error


def temporary_copy(pieces: Iterable[BytesLike]) -> RandomFile:
    """A temporary file that holds the pieces, end to end."""
    file = temporary_file()
    for piece in pieces:
        file.append(piece)
    return file


def is_gzip(path: PathLike) -> bool:
    """Whether a file is compressed with gzip, by its first bytes."""
    return read_head(path, len(GZIP_MAGIC)) == GZIP_MAGIC


def inflated(path: PathLike) -> Iterator[bytes]:
    """Decompress a gzip file in pieces.

    Raises:
        CorruptDataError: broken-compression; truncated-compression; decompression-limit.
        FileAccessError: it cannot be read.
    """
    with open_file(path) as file, located(os.fspath(path)), accessing(path):
        inflater = Inflater(file, "gzip")
        while piece := inflater.read(_PENDING_BYTES):
            yield piece
        if not inflater.is_complete:
            raise CorruptDataError(
                Defect.TRUNCATED_COMPRESSION,
                "the compressed file is truncated",
                remedy="Fetch the file again.",
            )


def _no_space_error(error: OSError) -> FileAccessError:
    """The error for a temporary file that cannot be written."""
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
    found = access_error(error, folder, "write a temporary file in")
    found.advise("Set TMPDIR to another folder.")
    return found
