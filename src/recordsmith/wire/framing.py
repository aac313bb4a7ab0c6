"""Records <-> bytes in memory: encode frames, and scan a buffer for them.

A thin layer over the compiled kernel that adds types, defect names and words. It knows no paths,
and never copies a payload when scanning.
"""

from __future__ import annotations

import os
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
_ZEROS = (
    "There are only zeros here: space that was set aside and never written, as a copy or a program "
    "leaves it that was stopped."
)
_CONVERTED = (
    "It is right once every CR LF in it is a LF again: the file was copied in text mode, which "
    "changes binary data. Fetch it again in binary mode."
)
_POLYNOMIAL = 0x82F63B78  # of CRC-32C, reflected


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


def join_crc32c(first: int, second: int, size: int) -> int:
    """The CRC-32C of two pieces one after the other, from those of each; the second has `size`
    bytes.

    Going on over n bytes is a multiplication by x^(8n) modulo the polynomial.
    """
    power, factor, left = 1 << 31, 1 << 23, size  # x^0 and x^8, as reflected polynomials
    while left:
        if left & 1:
            power = _product(power, factor)
        factor = _product(factor, factor)
        left >>= 1
    return _product(power, first) ^ second


def _product(one: int, other: int) -> int:
    """Of two reflected polynomials over GF(2), modulo that of CRC-32C."""
    product = 0
    while one:
        if one & 1 << 31:
            product ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product


def stored_crc(crc: int) -> bytes:
    """A checksum as a frame stores it: rotated by 15 bits, and moved on, as in
    tensorflow/core/lib/hash/crc32c.h.
    """
    rotated = crc >> 15 | crc << 17
    return ((rotated + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def begins_frame(head: bytes) -> bool:
    """Whether these bytes begin with a length and its checksum."""
    stored = head[8:HEADER_BYTES]
    return len(stored) == 4 and stored_crc(crc32c(head[:8])) == stored


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


class CheckedFrames(NamedTuple):
    """What a check found.

    record_count: intact records.
    stop: where it ended: the end of the buffer, or the frame that `defect` is about.
    defect: what ended it, or None when it reached the end of the buffer.
    """

    record_count: int
    stop: int
    defect: Defect | None


def check_frames(buffer: BytesLike, start: int = 0) -> CheckedFrames:
    """Check both checksums of the records in `buffer`, as `scan` does, and only count them."""
    count, stop, code = kernel.check(buffer, start)
    return CheckedFrames(count, stop, _DEFECTS.get(code))


def find_header(buffer: BytesLike, end: int) -> int | None:
    """The first place with 12 bytes that are a length with its checksum, of a frame that ends at
    `end` or before; that counts from the start of the buffer, and may lie behind it.

    None if there is no such place. It may be inside of a payload: only the frames before it tell.
    """
    place = kernel.find_header(buffer, 0, len(buffer), end)
    return None if place == len(buffer) else place


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


def read_pieces(
    file: int,
    begins: Int64Array,
    ends: Int64Array,
    places: Int64Array,
    out: npt.NDArray[np.uint8],
) -> bool:
    """Read pieces of an open file, one after the other; whether all of them were there.

    Args:
        file: its descriptor; where it stands does not matter and is not changed.
        begins, ends: int64, (count,): the pieces are the bytes [begins[i], ends[i]).
        places: int64, (count,): they go to out[places[i]:].
        out: uint8; has to have room for all.

    Raises:
        OSError: the system could not read one.
    """
    count, error = kernel.read_pieces(file, begins, ends, places, out)
    if error:
        raise OSError(error, os.strerror(error))
    return count == len(begins)


def read_lengths(file: int, start: int, size: int, limit: int) -> tuple[Int64Array, int]:
    """How long the payloads in an open file are, by reading the headers only.

    Args:
        file: its descriptor.
        start: where a frame begins.
        size: how many bytes the file has.
        limit: so many at most.

    Returns:
        The lengths, int64, (count,); and where the next frame begins, or one that is not right or
        not whole.

    Raises:
        OSError: the system could not read one.
    """
    lengths = np.empty(limit, np.int64)
    count, stop, error = kernel.read_lengths(file, start, size, lengths)
    if error:
        raise OSError(error, os.strerror(error))
    return lengths[:count], stop


def _is_converted(frame: memoryview, length: int) -> bool:
    """Whether a payload is right once each CR LF in it is LF again, as text mode makes of LF."""
    stop = length + FOOTER_BYTES
    rest = bytes(frame[HEADER_BYTES : HEADER_BYTES + 2 * stop]).replace(b"\r\n", b"\n")[:stop]
    return len(rest) == stop and stored_crc(crc32c(rest[:length])) == rest[length:]


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
            f"{stored_crc(crc32c(header[:8])).hex()}. "
            + (
                _ZEROS
                if not any(header)
                else "Either this is no TFRecord file, or its first bytes are damaged."
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
            f"{stored_crc(crc32c(payload)).hex()}. "
            + (
                _CONVERTED
                if position == 0 and _is_converted(as_view(buffer)[frames.stop :], length)
                else "At least one bit of this record changed after it was written; fetch the file "
                "again."
            )
        )
    return CorruptDataError(frames.defect, detail, position=position, offset=offset)
