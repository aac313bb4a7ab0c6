"""Arrays in files, read by rows: idx files of MNIST, `.npy`, `.npz`.

Nothing is unpickled, and no header is believed: the bytes that it announces must be there.
Compressed files and the members of `.npz` files are read into temporary files, up to what is
announced.
"""

from __future__ import annotations

import io
import math
import threading
import weakref
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from recordsmith.errors import RecordsmithError, SourceError
from recordsmith.sources.files.gzip_files import inflated, is_gzip
from recordsmith.stores import Location, ObjectReader
from recordsmith.stores.local.scratch import ScratchFile

_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NPY_MAGIC = b"\x93NUMPY"
_ZIP_MAGIC = b"PK\x03\x04"
_PIECE_BYTES = 1 << 20
_ROWS_AT_ONCE_BYTES = 1 << 24
_MAX_MEMBERS = 1000

# NumPy parses headers as Python source, and Python before 3.11.8 fails at random ("recursion depth
# mismatch") where several threads do so at once
_PARSING = threading.Lock()

LARGEST_HEADER = 1 << 20
"""In bytes; NumPy writes 128."""


class StoredArray(NamedTuple):
    """An array in a file. Thread-safe.

    name: for messages.
    offset: of the first row in bytes.
    """

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
        self._zip: zipfile.ZipFile | None = None
        head = location.read(0, 4)
        self._reader = location.open_read()
        weakref.finalize(self, self._reader.close)
        if location.read(0, len(_NPY_MAGIC)) == _NPY_MAGIC:
            self._arrays[""] = self._npy(str(location), self._reader)
        elif head == _ZIP_MAGIC:
            self._zip = self._open_zip()
        else:
            self._arrays[""] = self._idx(head)

    def names(self) -> list[str]:
        if self._zip is None:
            return list(self._arrays)
        return [name.removesuffix(".npy") for name in self._zip.namelist() if name.endswith(".npy")]

    def array(self, name: str) -> StoredArray:
        """One array; that of a `.npz` file is copied once, which checks its checksum."""
        with self._lock:
            if name not in self._arrays:
                self._arrays[name] = self._member(name)
            return self._arrays[name]

    # -- formats ---------------------------------------------------------------------------------

    def _idx(self, head: bytes) -> StoredArray:
        reader, stream = self._reader, None
        if is_gzip(self.location):
            stream = inflated(self.location)
            first = b"".join(_first_bytes(stream, 4 + 4 * 255))
            head = first[:4]
        else:
            first = reader.read_at(0, 4 + 4 * 255)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_TYPES or not head[3]:
            raise self._damaged("not an array: expected an idx, .npy or .npz file")
        offset = 4 + 4 * head[3]
        if len(first) < offset:
            raise self._damaged("the header is truncated")
        shape = tuple(np.frombuffer(first[4:offset], ">u4").tolist())
        dtype = np.dtype(_IDX_TYPES[head[2]])
        expected = offset + math.prod(shape) * dtype.itemsize
        if stream is not None:
            spooled = ScratchFile([first])
            size = _spool(spooled, stream, len(first), expected)
            reader = spooled
        else:
            size = reader.size_bytes
        return self._array(str(self.location), reader, shape, dtype, offset, size)

    def _npy(self, name: str, reader: ObjectReader) -> StoredArray:
        shape, dtype, offset = self._header(name, reader.read_at(0, LARGEST_HEADER))
        return self._array(name, reader, shape, dtype, offset, reader.size_bytes)

    def _open_zip(self) -> zipfile.ZipFile:
        try:
            archive = zipfile.ZipFile(self._reader)
        except RecordsmithError:
            raise
        except Exception as error:  # noqa: BLE001 - of zipfile, for any damage
            raise self._damaged(f"not a .npz file, or damaged: {error}") from None
        names = archive.namelist()
        if len(names) > _MAX_MEMBERS or len(set(names)) < len(names):
            raise self._damaged(
                f"{len(names):,} members, some of one name; expected at most {_MAX_MEMBERS:,} "
                "arrays with different names"
            )
        return archive

    def _member(self, name: str) -> StoredArray:
        assert self._zip is not None
        place = f"{self.location}, array {name!r}"
        info = self._zip.getinfo(f"{name}.npy")
        try:
            with self._zip.open(info) as stream:
                pieces = iter(lambda: stream.read(_PIECE_BYTES), b"")
                head = b"".join(_first_bytes(pieces, LARGEST_HEADER))
                shape, dtype, offset = self._header(place, head)
                spooled = ScratchFile([head])
                expected = offset + math.prod(shape) * dtype.itemsize
                size = _spool(spooled, pieces, len(head), expected)
        except RecordsmithError:
            raise
        except Exception as error:  # noqa: BLE001 - of zipfile and three decompressors
            raise self._damaged(f"{place}: {error}") from None
        return self._array(place, spooled, shape, dtype, offset, size)

    def _header(self, place: str, head: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
        try:
            shape, is_fortran, dtype, offset = read_npy_header(head)
        except ValueError as error:
            raise self._damaged(f"{place}: {error}") from None
        if is_fortran and len(shape) > 1:
            raise SourceError(
                f"{place}: the array is in Fortran order",
                path=self.location,
                remedy="Save it again with numpy.save(path, numpy.ascontiguousarray(array)).",
            )
        return shape, dtype, offset

    def _array(
        self,
        name: str,
        reader: ObjectReader,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        offset: int,
        stop: int,
    ) -> StoredArray:
        """An array whose bytes are offset:stop of a file, after a check that all are there."""
        announced = math.prod(shape) * dtype.itemsize
        if not announced or any(side < 0 for side in shape):
            raise self._damaged(f"{name}: the array is empty: its shape is {shape}")
        if not shape or announced != stop - offset:
            problem = f"{stop - offset:,} bytes follow"
            values = " x ".join(f"{side:,}" for side in shape) or "one"
            if announced < stop - offset:
                problem = "more bytes follow"
            raise self._damaged(
                f"{name}: the header announces {values} values of {dtype}, but {problem}"
            )
        return StoredArray(name, reader, shape, dtype, offset)

    def _damaged(self, problem: str) -> SourceError:
        problem = problem.removeprefix(f"{self.location}: ")
        return SourceError(problem, path=self.location, remedy="Fetch or write the file again.")


def _first_bytes(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield pieces until there are so many bytes."""
    while count > 0 and (piece := next(pieces, b"")):
        yield piece
        count -= len(piece)


def _spool(file: ScratchFile, pieces: Iterator[bytes], size: int, most: int) -> int:
    """Append pieces to a file of `size` bytes, until they exceed `most`; return its size."""
    while size <= most and (piece := next(pieces, b"")):
        file.append(piece)
        size += len(piece)
    return size


class NpyHeader(NamedTuple):
    """What a `.npy` file announces.

    offset: where the values begin.
    """

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    offset: int


def read_npy_header(head: bytes) -> NpyHeader:
    """Read the header of an array from the first bytes of its file."""
    stream = io.BytesIO(head)
    try:
        version = npy_format.read_magic(stream)
        is_old = version == (1, 0)
        read_header = (
            npy_format.read_array_header_1_0 if is_old else npy_format.read_array_header_2_0
        )
        with _PARSING:
            shape, is_fortran, dtype = read_header(stream)
    except Exception as error:  # noqa: BLE001 - the header is Python source, parsed by NumPy
        raise ValueError(f"not a .npy file, or damaged: {error}") from None
    if dtype.kind not in "iufbUS":
        raise ValueError(f"the array has type {dtype}; expected integers, floats or bools")
    return NpyHeader(shape, is_fortran, dtype, stream.tell())


def npy_features(data: bytes, name: str) -> dict[str, Any]:
    """The features of a `.npy` file, as `array_features`."""
    shape, is_fortran, dtype, offset = read_npy_header(data)
    rest = memoryview(data)[offset:]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(
            f"the header announces {math.prod(shape)} values of {dtype}, but {len(rest)} bytes "
            "follow"
        )
    values = np.frombuffer(rest, dtype)
    return array_features(values.reshape(shape, order="F" if is_fortran else "C"), name)


def array_features(array: npt.NDArray[Any], name: str) -> dict[str, Any]:
    """The flat values of an array as a feature, and its shape as `<name>/shape`."""
    if array.dtype.kind not in "iufb":
        raise ValueError(f"the array has type {array.dtype}; expected integers, floats or bools")
    values = array.ravel()
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{values.max()} does not fit int64")
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
    if values.dtype.kind == "f" and np.isinf(stored).sum() != np.isinf(values).sum():
        raise ValueError("a value does not fit a 32-bit float")
    return {name: stored, f"{name}/shape": list(array.shape)}
