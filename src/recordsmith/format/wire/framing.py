"""Records <-> bytes in memory: encode frames and scan buffers for them.

Adds types, defect names and messages to the compiled kernel. Scanning does not copy payloads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.format.wire import kernel
from recordsmith.support.buffers import BytesLike, Int64Array, as_view
from recordsmith.support.errors import CorruptDataError, Defect

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
_CUT = "Wait until the file is complete, or fetch it again; the records before are intact."
_ZEROS = (
    "Fetch the file again: it continues with zeros, which an interrupted copy or program leaves in "
    "space that it allocated."
)
_CONVERTED = (
    "Fetch the file again in binary mode: it was copied in text mode, which changed LF to CR LF."
)


class Frames(NamedTuple):
    """The records that a scan found.

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
    """Return the CRC-32C of `data`; `value` is the checksum of the bytes before it."""
    return kernel.crc32c(data, value)


def stored_crc(crc: int) -> bytes:
    """Mask a checksum as frames store it, as in tensorflow/core/lib/hash/crc32c.h."""
    rotated = crc >> 15 | crc << 17
    return ((rotated + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def starts_with_frame(head: bytes) -> bool:
    """Return whether these bytes begin with a length and its checksum."""
    stored = head[8:HEADER_BYTES]
    return len(stored) == 4 and stored_crc(crc32c(head[:8])) == stored


def is_frame(header: BytesLike, payload: BytesLike, footer: BytesLike) -> bool:
    """Return whether a payload is intact and has the length that its header states."""
    head = bytes(header)
    return (
        starts_with_frame(head)
        and int.from_bytes(head[:8], "little") == len(payload)
        and stored_crc(crc32c(payload)) == bytes(footer)
    )


def encode_record(payload: BytesLike) -> bytes:
    """Frame one payload."""
    return kernel.frame_list([payload])


def encode_records(payloads: Iterable[BytesLike]) -> bytes:
    """Frame many payloads, end to end."""
    return kernel.frame_list(list(payloads))


def encode_record_into(payload: BytesLike, frames: bytearray, at: int) -> int | None:
    """Frame one payload into `frames` at byte `at`; return the end, or None if it does not fit."""
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

    The scan ends at the first defect without raising; the records before it are intact.

    Args:
        start: where the first frame begins.
        check_payloads: whether to check the checksums of payloads; those of lengths always are.
        limit: end the scan after this number of records.
        expected: an estimate of the number of records; a good one saves time.
    """
    first = start
    capacity = min(expected if limit is None else limit, (len(buffer) - start) // FRAME_BYTES + 1)
    pieces: list[tuple[Int64Array, Int64Array]] = []
    record_count = 0
    while True:
        starts, lengths = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        count, start, code = kernel.scan(buffer, start, starts, lengths, check_payloads)
        pieces.append((starts[:count], lengths[:count]))
        record_count += count
        if code != _END or start == len(buffer) or record_count == limit:
            break
        # room for the rest, estimated from the records so far
        capacity = record_count * (len(buffer) - start) // (start - first) * 9 // 8 + 64
        if limit is not None:
            capacity = min(capacity, limit - record_count)
    if len(pieces) == 1:
        starts, lengths = pieces[0]
    else:
        starts, lengths = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return Frames(starts, lengths, start, _DEFECTS.get(code))


def check_frames(buffer: BytesLike, start: int = 0) -> tuple[int, int, Defect | None]:
    """Check both checksums of the records in `buffer` as `scan` does, and count them.

    Returns:
        The number of intact records, and where and why the check ended, as in `Frames`.
    """
    count, stop, code = kernel.check(buffer, start)
    return count, stop, _DEFECTS.get(code)


def find_header(buffer: BytesLike, end: int) -> int | None:
    """Find the first 12 bytes that are a length with its checksum, of a frame that ends by `end`.

    `end` counts from the start of the buffer and may lie after it. Returns None if nothing is
    found. The place may be inside a payload: only the frames before it can decide that.
    """
    header_at = kernel.find_header(buffer, 0, len(buffer), end)
    return None if header_at == len(buffer) else header_at


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
    """Copy the payloads of some frames and check both checksums.

    Args:
        begins, ends: int64, (count,): the frames are buffer[begins[i]:ends[i]].
        places: int64, (count,): their payloads go to out[places[i]:].
        out: uint8, large enough for all.
        whole: copy the frames, not only their payloads.

    Returns:
        How many were copied: count, or the index of the first frame that is damaged or missing;
        scan its bytes for the defect.
    """
    return kernel.gather(buffer, begins, ends, places, out, check_payloads, whole)[0]


def lengths_of_headers(headers: npt.NDArray[np.uint8], room: int) -> tuple[Int64Array, int]:
    """Read the lengths of payloads from the headers of frames that follow each other.

    Args:
        headers: uint8, (count, HEADER_BYTES).
        room: the number of bytes from the first header on.

    Returns:
        The lengths of the frames whose headers are valid and that lie in these bytes, int64,
        (count,); and where the last of them ends.
    """
    lengths = np.empty(len(headers), np.int64)
    count, stop = kernel.lengths_of_headers(headers, room, lengths)
    return lengths[:count], stop


def _is_converted(frame: memoryview, length: int) -> bool:
    """Return whether the payload is valid after each CR LF is changed back to LF."""
    stop = length + FOOTER_BYTES
    rest = bytes(frame[HEADER_BYTES : HEADER_BYTES + 2 * stop]).replace(b"\r\n", b"\n")[:stop]
    return len(rest) == stop and stored_crc(crc32c(rest[:length])) == rest[length:]


def describe_defect(
    frames: Frames, buffer: BytesLike, *, record: int, offset: int
) -> CorruptDataError:
    """Return the error for the defect that ended `frames`."""
    assert frames.defect is not None
    header = bytes(buffer[frames.stop : frames.stop + HEADER_BYTES])
    left = len(buffer) - frames.stop
    length = int.from_bytes(header[:8], "little")
    problem, found, expected, remedy = "", "", "", _CUT
    if frames.defect is Defect.TRUNCATED_HEADER:
        problem = "the file ends in the header of a record"
        found, expected = f"{left} bytes", f"{HEADER_BYTES}"
    elif frames.defect is Defect.LENGTH_CRC:
        problem = f"the length {length} does not match its checksum"
        found, expected = header[8:].hex(), stored_crc(crc32c(header[:8])).hex()
        if not any(header):
            remedy = _ZEROS
        elif offset == 0:
            remedy = "Check that this is a TFRecord file; if it is, its first bytes are damaged."
        else:
            remedy = (
                "Fetch the file again; the records before are intact, but the start of the next "
                "one is unknown."
            )
    elif frames.defect is Defect.TRUNCATED_PAYLOAD:
        problem = "the file ends in the middle of a record"
        found, expected = f"{left} bytes", f"{length + FRAME_BYTES}"
    else:
        stored_at = frames.stop + HEADER_BYTES + length
        payload = as_view(buffer)[frames.stop + HEADER_BYTES : stored_at]
        problem = f"the payload of {length} bytes does not match its checksum"
        found = bytes(buffer[stored_at : stored_at + FOOTER_BYTES]).hex()
        expected = stored_crc(crc32c(payload)).hex()
        if record == 0 and _is_converted(as_view(buffer)[frames.stop :], length):
            remedy = _CONVERTED
        else:
            remedy = "Fetch the file again: the record changed after it was written."
    return CorruptDataError(
        frames.defect,
        problem,
        found=found,
        expected=expected,
        remedy=remedy,
        record=record,
        offset=offset,
    )
