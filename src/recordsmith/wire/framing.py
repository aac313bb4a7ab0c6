"""Records <-> bytes in memory: encode frames, and scan a buffer for them.

A thin layer over the compiled kernel that adds types, defect names and words. It never touches
paths or streams, and never copies a payload when scanning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.wire import kernel

HEADER_BYTES = 12  # length (8) and its checksum (4)
FOOTER_BYTES = 4  # checksum of the payload
FRAME_BYTES = HEADER_BYTES + FOOTER_BYTES

_END, _PARTIAL_HEADER, _PARTIAL_PAYLOAD, _LENGTH_CRC, _PAYLOAD_CRC = range(5)
_DEFECTS = {
    _PARTIAL_HEADER: Defect.TRUNCATED_HEADER,
    _PARTIAL_PAYLOAD: Defect.TRUNCATED_PAYLOAD,
    _LENGTH_CRC: Defect.LENGTH_CRC,
    _PAYLOAD_CRC: Defect.PAYLOAD_CRC,
}
_FIRST_CAPACITY = 1024


class Frames(NamedTuple):
    """What a scan found.

    starts: int64, (count,): where each payload begins in the buffer.
    lengths: int64, (count,): how long each payload is, in bytes.
    stop: where the scan ended: the end of the buffer, or the frame that `defect` is about.
    defect: what ended the scan, or None when it reached the end of the buffer.
    """

    starts: Int64Array
    lengths: Int64Array
    stop: int
    defect: Defect | None


def crc32c(data: BytesLike, value: int = 0) -> int:
    """CRC-32C of `data`; `value` continues the checksum of the bytes before it."""
    return kernel.crc32c(data, value)


def encode_record(payload: BytesLike) -> bytes:
    """Frame one payload."""
    return kernel.frame_list([payload])


def encode_records(payloads: Iterable[BytesLike]) -> bytes:
    """Frame many payloads, one after the other, in one piece of memory."""
    return kernel.frame_list(list(payloads))


def encode_record_into(payload: BytesLike, frames: bytearray, at: int) -> int | None:
    """Frame one payload into `frames` from byte `at`; answers where it ends, or None if it does
    not fit.
    """
    return kernel.frame_into(payload, frames, at) or None


def encode_slices(data: BytesLike, offsets: Int64Array) -> npt.NDArray[np.uint8]:
    """Frame the payloads data[offsets[i]:offsets[i + 1]].

    Args:
        data: the payloads, end to end.
        offsets: int64, (count + 1,), ascending.

    Returns:
        The frames: uint8, (offsets[-1] - offsets[0] + 16 * count,).
    """
    count = len(offsets) - 1
    frames = np.empty(int(offsets[-1] - offsets[0]) + FRAME_BYTES * count, np.uint8)
    kernel.frame_slices(data, offsets, frames)
    return frames


def scan(
    buffer: BytesLike,
    start: int = 0,
    *,
    check_payloads: bool = True,
    limit: int | None = None,
    expected: int = _FIRST_CAPACITY,
) -> Frames:
    """Find the records in `buffer` from byte `start`, without copying them.

    Checksums of lengths are always checked, those of payloads unless `check_payloads` is False.
    The scan ends at the first defect; nothing is raised, and what came before it is intact.
    `limit` ends the scan after so many records. `expected` is about how many there are: a better
    guess saves time.
    """
    first = start
    capacity = min(expected if limit is None else limit, (len(buffer) - start) // FRAME_BYTES + 1)
    pieces: list[tuple[Int64Array, Int64Array]] = []
    found = 0
    while True:
        starts, lengths = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        count, start, code = kernel.scan(buffer, start, starts, lengths, check_payloads)
        pieces.append((starts[:count], lengths[:count]))
        found += count
        if code != _END or start == len(buffer) or found == limit:
            break
        # room for the rest, if it is like what came before: little more than is needed
        capacity = found * (len(buffer) - start) // (start - first) * 9 // 8 + 64
        if limit is not None:
            capacity = min(capacity, limit - found)
    if len(pieces) == 1:
        starts, lengths = pieces[0]
    else:
        starts, lengths = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return Frames(starts, lengths, start, _DEFECTS.get(code))


def gather(
    buffer: BytesLike,
    begins: Int64Array,
    ends: Int64Array,
    places: Int64Array,
    out: npt.NDArray[np.uint8],
    *,
    check_payloads: bool = True,
    whole: bool = False,
) -> int:
    """Copy the payloads of some frames, wherever they lie, with both checksums.

    Args:
        begins, ends: int64, (count,): the frames are buffer[begins[i]:ends[i]].
        places: int64, (count,): their payloads go to out[places[i]:].
        out: uint8; has to have room for all.
        whole: copy the frames, not only their payloads.

    Returns:
        How many were copied: count, or the number of the first frame that is damaged or is not
        there, of which a scan of its bytes tells more.
    """
    return kernel.gather(buffer, begins, ends, places, out, check_payloads, whole)[0]


def describe_defect(
    frames: Frames, buffer: BytesLike, *, position: int, offset: int, size: int | None = None
) -> CorruptDataError:
    """The error for the defect that ended `frames`.

    Args:
        position: the position of the record that is damaged.
        offset: the byte offset of its frame.
        size: the size of the whole file where it is known, for the message.
    """
    assert frames.defect is not None
    header = bytes(buffer[frames.stop : frames.stop + HEADER_BYTES])
    left = len(buffer) - frames.stop
    whole = "" if size is None else f" (the file has {size} bytes)"
    if frames.defect is Defect.TRUNCATED_HEADER:
        detail = (
            f"the file ends {left} bytes into a record's header of {HEADER_BYTES} bytes{whole}. "
            "It was cut off, or is still being written; the records before it are intact."
        )
    elif frames.defect is Defect.LENGTH_CRC:
        detail = (
            f"the length {int.from_bytes(header[:8], 'little')} does not match its checksum: found "
            f"{header[8:].hex()}, expected "
            f"{kernel.masked_crc32c(header[:8]).to_bytes(4, 'little').hex()}. "
            + (
                "Either this is no TFRecord file, or its first bytes are damaged."
                if offset == 0
                else "Where the next record begins is lost; the records before it are intact."
            )
        )
    elif frames.defect is Defect.TRUNCATED_PAYLOAD:
        length = int.from_bytes(header[:8], "little")
        detail = (
            f"the record needs {length + FRAME_BYTES} bytes, but only {left} are left{whole}. "
            "It was cut off, or is still being written; the records before it are intact."
        )
    else:
        length = int.from_bytes(header[:8], "little")
        stored_at = frames.stop + HEADER_BYTES + length
        payload = as_view(buffer)[frames.stop + HEADER_BYTES : stored_at]
        detail = (
            f"the payload of {length} bytes does not match its checksum: found "
            f"{bytes(buffer[stored_at : stored_at + FOOTER_BYTES]).hex()}, expected "
            f"{kernel.masked_crc32c(payload).to_bytes(4, 'little').hex()}. "
            "At least one bit of this record changed after it was written; fetch the file again, "
            "or go on without this record."
        )
    return CorruptDataError(frames.defect, detail, position=position, offset=offset)
