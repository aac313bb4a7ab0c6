"""Arrays in files, read by rows: idx files of MNIST, `.npy`, `.npz`.

Nothing is unpickled, and a file must have exactly the bytes that its header announces.
Compressed files and the members of `.npz` files are copied to temporary files, up to that size.
"""

from __future__ import annotations

import io
import math
import threading
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from recordsmith.sources.files.text_file import inflated, is_gzip
from recordsmith.stores import Location, ObjectReader, ScratchFile
from recordsmith.support.errors import RecordsmithError, SourceError

_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NPY_MAGIC = b"\x93NUMPY"
_ZIP_MAGIC = b"PK\x03\x04"
_MAX_IDX_HEADER_BYTES = 4 + 4 * 255
_PIECE_BYTES = 1 << 20
_ROWS_AT_ONCE_BYTES = 1 << 24
MAX_MEMBERS = 1000
MAX_HEADER_BYTES = 1 << 20
"""NumPy writes 128."""

# NumPy parses headers as Python source, and Python before 3.11.8 fails at random ("recursion depth
# mismatch") where several threads do so at once
_PARSING = threading.Lock()


class ArrayHeader(NamedTuple):
    """What the header of an array announces; `offset` is where the values begin."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def stop(self) -> int:
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def check_size(self, size: int) -> None:
        """Check that a file has just the announced bytes."""
        if size != self.stop:
            values = " x ".join(f"{side:,}" for side in self.shape) or "one"
            rest = "more" if size > self.stop else f"{size - self.offset:,}"
            raise ValueError(
                f"the header announces {values} values of {self.dtype}, but {rest} bytes follow"
            )


class StoredArray(NamedTuple):
    """An array in a file, which starts at a byte `offset`; `name` is for messages. Thread-safe."""

    name: str
    reader: ObjectReader
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def rows(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Read the rows start:stop."""
        begin, end = (self.offset + row * self.row_bytes for row in (start, stop))
        data = self.reader.read_at(begin, end)
        if len(data) < end - begin:
            raise SourceError(f"the file was truncated since it was listed: {self.name}")
        return np.frombuffer(data, self.dtype).reshape(stop - start, *self.shape[1:])

    def all_rows(self) -> npt.NDArray[Any]:
        """Read all rows: of labels, which are small."""
        at_once = max(1, _ROWS_AT_ONCE_BYTES // self.row_bytes)
        count = self.shape[0]
        starts = range(0, count, at_once)
        return np.concatenate([self.rows(n, min(n + at_once, count)) for n in starts])


class ArrayFile:
    """The arrays of one file by name; the only array of most formats is named "". Thread-safe."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._lock = threading.Lock()
        self._arrays: dict[str, StoredArray] = {}
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._reader = location.open_read()
        weakref.finalize(self, self._reader.close)
        magic = location.read(0, len(_NPY_MAGIC))
        with self._naming_file():
            if magic.startswith(_ZIP_MAGIC):
                self._open_zip()
            elif magic == _NPY_MAGIC:
                self._arrays[""] = self._stored("", self._reader, read_npy_header)
            else:
                content = inflated(location) if is_gzip(location) else self._reader
                self._arrays[""] = self._stored(
                    "", content, _read_idx_header, _MAX_IDX_HEADER_BYTES
                )

    def names(self) -> list[str]:
        return list(self._members or self._arrays)

    def array(self, name: str) -> StoredArray:
        """One array; that of a `.npz` file is copied once, which checks its checksum."""
        with self._lock:
            if name not in self._arrays:
                place = f"array {name!r}"
                with self._naming_file(f"{place}: "), self._zip.open(self._members[name]) as file:
                    pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
                    self._arrays[name] = self._stored(place, pieces, read_npy_header)
            return self._arrays[name]

    def _open_zip(self) -> None:
        with self._naming_file("not a .npz file, or damaged: "):
            self._zip = zipfile.ZipFile(self._reader)
        names = self._zip.namelist()
        if len(names) > MAX_MEMBERS or len(set(names)) < len(names):
            raise ValueError(
                f"{len(names):,} members, some of one name; expected at most {MAX_MEMBERS:,} "
                "arrays with different names"
            )
        for info in self._zip.infolist():
            if info.filename.endswith(".npy"):
                self._members[info.filename.removesuffix(".npy")] = info

    def _stored(
        self,
        name: str,
        content: ObjectReader | Iterable[bytes],
        read_header: Callable[[bytes], ArrayHeader],
        max_header_bytes: int = MAX_HEADER_BYTES,
    ) -> StoredArray:
        """The array of a file, or of the pieces of one, after a check that all bytes are there."""
        if isinstance(content, ObjectReader):
            reader: ObjectReader = content
            header = read_header(reader.read_at(0, max_header_bytes))
        else:
            pieces = iter(content)
            head = b"".join(_first_pieces(pieces, max_header_bytes))
            header = read_header(head)
            rest = _first_pieces(pieces, header.stop + 1 - len(head))
            reader = ScratchFile(chain([head], rest))
        shape = header.shape
        if not shape or min(shape) < 1:
            raise ValueError(f"the array is empty, or a single value: its shape is {shape}")
        header.check_size(reader.size_bytes)
        if header.is_fortran and len(shape) > 1:
            raise SourceError(
                f"{name or 'the array'} is in Fortran order",
                path=self.location,
                remedy="Save it again with numpy.save(path, numpy.ascontiguousarray(array)).",
            )
        place = f"{self.location}, {name}" if name else str(self.location)
        return StoredArray(place, reader, shape, header.dtype, header.offset)

    @contextmanager
    def _naming_file(self, place: str = "") -> Iterator[None]:
        """Raise an error that names the file for any damage."""
        try:
            yield
        except RecordsmithError:
            raise
        except Exception as error:  # noqa: BLE001 - of zipfile and three decompressors
            remedy = "Fetch or write the file again."
            raise SourceError(f"{place}{error}", path=self.location, remedy=remedy) from None


def _first_pieces(pieces: Iterator[bytes], byte_count: int) -> Iterator[bytes]:
    """Yield pieces until there are so many bytes."""
    while byte_count > 0 and (piece := next(pieces, b"")):
        yield piece
        byte_count -= len(piece)


def _read_idx_header(head: bytes) -> ArrayHeader:
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_TYPES or not head[3]:
        raise ValueError("not an array: expected an idx, .npy or .npz file")
    offset = 4 + 4 * head[3]
    if len(head) < offset:
        raise ValueError("the header is truncated")
    shape = tuple(np.frombuffer(head[4:offset], ">u4").tolist())
    return ArrayHeader(shape, False, np.dtype(_IDX_TYPES[head[2]]), offset)


def read_npy_header(head: bytes) -> ArrayHeader:
    stream = io.BytesIO(head)
    try:
        is_old = npy_format.read_magic(stream) == (1, 0)
        read = npy_format.read_array_header_1_0 if is_old else npy_format.read_array_header_2_0
        with _PARSING:
            shape, is_fortran, dtype = read(stream)
    except Exception as error:  # noqa: BLE001 - the header is Python source, parsed by NumPy
        raise ValueError(f"not a .npy file, or damaged: {error}") from None
    _check_dtype(dtype, "iufbUS")
    return ArrayHeader(shape, is_fortran, dtype, stream.tell())


def npy_features(data: bytes, name: str) -> dict[str, Any]:
    """The features of a `.npy` file, as `array_features`."""
    header = read_npy_header(data)
    header.check_size(len(data))
    values = np.frombuffer(memoryview(data)[header.offset :], header.dtype)
    array = values.reshape(header.shape, order="F" if header.is_fortran else "C")
    return array_features(array, name)


def array_features(array: npt.NDArray[Any], name: str) -> dict[str, Any]:
    """The flat values of an array as a feature, and its shape as `<name>/shape`."""
    _check_dtype(array.dtype, "iufb")
    values = array.ravel()
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{values.max()} does not fit int64")
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
    if values.dtype.kind == "f" and np.isinf(stored).sum() != np.isinf(values).sum():
        raise ValueError("a value does not fit a 32-bit float")
    return {name: stored, f"{name}/shape": list(array.shape)}


def _check_dtype(dtype: np.dtype[Any], kinds: str) -> None:
    if dtype.kind not in kinds:
        raise ValueError(f"the array has type {dtype}; expected integers, floats or bools")
