"""`ObjectReader`: an open object."""

from __future__ import annotations

import errno
import io
from typing import TYPE_CHECKING, Any

from recordsmith.stores.parallel_reads import REQUEST_BYTES, Range, ReadAhead
from recordsmith.support.errors import FileAccessError

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from recordsmith.support.buffers import Int64Array

_HEAD_BYTES = 1 << 20


class ObjectReader(io.RawIOBase):
    """An open object: a file that is read in order, and its bytes anywhere.

    Reading in order is for one thread; `read_at`, `read_pieces` and `read_headers` are thread-safe
    and do not move the position.
    """

    size_bytes: int
    """The size of the object; a file that grows has its current size."""

    def read_at(self, start: int, stop: int) -> bytes:
        """Return the bytes start:stop, fewer if the object ends before."""
        raise NotImplementedError

    def read_pieces(
        self,
        begins: Int64Array,
        ends: Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> bool:
        """Read pieces to a buffer; return whether all of them exist.

        Args:
            begins, ends: int64, (count,): the pieces are the bytes [begins[i], ends[i]).
            places: int64, (count,): they go to out[places[i]:].
            out: uint8, large enough for all.
        """
        view = memoryview(out)  # type: ignore[arg-type] # for Python 3.11 and older
        for begin, end, place in zip(begins.tolist(), ends.tolist(), places.tolist(), strict=True):
            data = self.read_at(begin, end)
            view[place : place + len(data)] = data
            if len(data) < end - begin:
                return False
        return True

    def read_headers(self, start: int, stop: int, gap: int, out: npt.NDArray[np.uint8]) -> int:
        """Read headers, each of which states in its first 8 bytes where the next one begins.

        Args:
            start: where the first header begins.
            stop: no header ends after it.
            gap: between the header and the next one are `gap` bytes, and the number of bytes that
                the header states (uint64, little-endian).
            out: uint8, (most, size): the headers.

        Returns:
            The number of headers that were read.
        """
        most, size = out.shape
        for number in range(most):
            header = self.read_at(start, start + size) if start + size <= stop else b""
            if len(header) < size:
                return number
            out[number] = memoryview(header)
            start += size + gap + int.from_bytes(header[:8], "little")
        return int(most)

    def read_head(self, count: int) -> bytes:
        """Return the first bytes, and stay where the reader is.

        Over a network, the same request gets bytes for the reads that follow.
        """
        return self.read_at(0, count)

    def read_uncached(self, start: int, stop: int) -> bytes | None:
        """Return bytes as the device has them now, past all caches; None if that is impossible."""
        return self.read_at(start, stop)

    def drop_cached(self) -> None:
        """Drop what is cached of the object, as far as that is possible."""

    def map(self) -> mmap.mmap | None:
        """Return a memory map of the object, where there are such maps."""
        return None

    def readable(self) -> bool:
        return True


class RangeReader(ObjectReader):
    """Reads one version of an object by ranges."""

    _ahead: ReadAhead | None = None

    def __init__(self, store: Any, info: tuple[str, int, str]) -> None:
        """`store`: a `Store`; `info`: the `ObjectInfo` of the version."""
        self._store = store
        self._key, self.size_bytes, self._version = info
        self._at = 0
        self._ahead = ReadAhead(self._view, self.size_bytes) if store.is_remote else None

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size_bytes}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "the position is negative")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, target: Any) -> int:
        view = memoryview(target).cast("B")
        stop = self._at + len(view)
        data: bytes | memoryview
        if self._ahead is None:
            data = self.read_at(self._at, stop)
        else:
            data = self._ahead.read(self._at, stop)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        data = self.read_at(self._at, self.size_bytes)
        self._at += len(data)
        return data

    def read_at(self, start: int, stop: int) -> bytes:
        stop = min(stop, self.size_bytes)
        if start >= stop:
            return b""
        if stop - start <= REQUEST_BYTES or self._ahead is None:
            data: bytes = self._store.read(self._key, start, stop, self._version)
            return data
        requested = Range(self._key, start, stop, self._version)
        return bytes(next(data for _, data in self._store.read_many([requested])))

    def read_head(self, count: int) -> bytes:
        if self._ahead is None:
            return self.read_at(0, count)
        head = self.read_at(0, max(count, _HEAD_BYTES))
        self._ahead.begin_with(head)
        return head[:count]

    def _view(
        self, start: int, stop: int, allocate: Callable[[], memoryview] | None = None
    ) -> memoryview:
        view: memoryview = self._store.read_view(self._key, start, stop, self._version, allocate)
        return view

    def close(self) -> None:
        if self._ahead is not None and not self.closed:
            self._ahead.close()
        super().close()

    def read_pieces(
        self,
        begins: Int64Array,
        ends: Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> bool:
        if len(ends) and ends.max() > self.size_bytes:
            return False
        view = memoryview(out)  # type: ignore[arg-type] # for Python 3.11 and older
        ranges = (
            Range(self._key, start, stop, self._version)
            for start, stop in zip(begins.tolist(), ends.tolist(), strict=True)
        )
        for index, data in self._store.read_many(ranges):
            place, byte_count = int(places[index]), int(ends[index] - begins[index])
            if len(data) < byte_count:
                raise FileAccessError(
                    errno.EIO, "it ends before its stated size", self._store.name_of(self._key)
                )
            view[place : place + byte_count] = data
        return True
