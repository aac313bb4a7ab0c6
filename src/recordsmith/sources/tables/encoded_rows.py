"""Rows that are encoded once, in order, and then copied in any order.

They lie as TFRecord frames in a temporary file without a name, so that copying verifies their
checksums. Memory holds sixteen bytes per row.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recordsmith.format.wire import FRAME_BYTES, crc32c, encode_slices, gather
from recordsmith.sources.problems import Fault
from recordsmith.sources.samples import Sample, unlisted_error
from recordsmith.stores import ScratchFile, release_pages
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import CorruptDataError, Defect

if TYPE_CHECKING:
    import mmap

_PENDING_BYTES = 1 << 20
MAX_FAULTS = 1 << 16
ONE_OF_MANY = Fault("the row cannot be stored, like many rows before it")
_ROWS_AT_ONCE = 1 << 12
_RELEASED_BYTES = 16 << 20


class EncodedRows:
    """Rows as frames in a temporary file.

    faults: why a row cannot be stored, by its number; its payload is empty.
    crc32c: over all frames, after `finish`.
    """

    def __init__(self) -> None:
        self._file = ScratchFile()
        self._lengths = array("q")
        self._pending = bytearray()
        self._offsets: Int64Array = np.zeros(1, np.int64)
        self._map: mmap.mmap | None = None
        self._touched_bytes = 0  # of the map, about
        self.faults: dict[int, Fault] = {}
        self.crc32c = 0

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def sizes(self) -> Int64Array:
        """int64, (rows,): the size of each payload in bytes."""
        return np.frombuffer(self._lengths, np.int64)

    def append(self, payload: bytes) -> None:
        self.extend(payload, np.array([0, len(payload)], np.int64))

    def extend(
        self, data: BytesLike, offsets: Int64Array, faults: Mapping[int, Fault] | None = None
    ) -> None:
        """Add the payloads data[offsets[i]:offsets[i + 1]]."""
        for row, fault in (faults or {}).items():
            is_one_of_many = len(self.faults) >= MAX_FAULTS
            self.faults[len(self) + row] = ONE_OF_MANY if is_one_of_many else fault
        self._pending += encode_slices(data, offsets).data
        self._lengths.frombytes(np.diff(offsets).tobytes())
        if len(self._pending) >= _PENDING_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is buffered; call it once before reading."""
        self._flush()
        self._offsets = offsets_from_lengths(self.sizes + FRAME_BYTES)

    def read(self, number: int) -> bytes:
        if number in self.faults:
            raise self.faults[number].error()
        payload, _ = self._gathered(np.array([number]), whole=False)
        return payload.tobytes()

    def read_frames(self, numbers: Int64Array) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        """Copy the frames of some rows, and verify their checksums.

        Returns:
            The frames end to end, and the sizes of their payloads: int64, (count,).
        """
        return self._gathered(numbers, whole=True)

    def _gathered(
        self, numbers: Int64Array, *, whole: bool
    ) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        lengths = self.sizes[numbers]
        places = offsets_from_lengths(lengths + FRAME_BYTES if whole else lengths)
        out: npt.NDArray[np.uint8] = np.empty(int(places[-1]), np.uint8)
        self._map = self._map or self._file.map()
        order = np.argsort(numbers, kind="stable")  # one pass over the file
        for start in range(0, len(order), _ROWS_AT_ONCE):
            some = order[start : start + _ROWS_AT_ONCE]
            begins, ends = self._offsets[numbers[some]], self._offsets[1:][numbers[some]]
            count = gather(memoryview(self._map), begins, ends, places[some], out, whole=whole)
            if count != len(some):
                raise CorruptDataError(
                    Defect.PAYLOAD_CRC,
                    "a temporary file is damaged",
                    remedy="The disk or its file system is failing; set TMPDIR to another folder.",
                    record=int(numbers[some[count]]),
                )
            self._touched_bytes += int(ends[-1] - begins[0])
            if self._touched_bytes >= _RELEASED_BYTES:
                release_pages(self._map)
                self._touched_bytes = 0
        return out, lengths

    def _flush(self) -> None:
        self._file.append(self._pending)
        self.crc32c = crc32c(self._pending, self.crc32c)
        self._pending = bytearray()


def referenced_row(sample: Sample) -> int:
    """The number of a sample's row in its file."""
    row = (sample.reference or {}).get("row")
    if not isinstance(row, int) or row < 0:
        raise unlisted_error(sample)
    return row
