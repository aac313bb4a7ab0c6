"""TFRecord frames and Examples in plain Python: what a user writes without any library.

The inputs are made with it, so that no peer reads its own writing; one peer of `pack` and the
protobuf peer of `columns` use it too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES, FRAME_BYTES = 12, 16
"""Before a payload; and before and after it."""

Checksum = Callable[[bytes], int]


def find_checksum() -> Checksum:
    """CRC-32C of the first package that has it compiled.

    Raises:
        ImportError: neither google-crc32c nor crc32c is installed.
    """
    try:
        import google_crc32c

        checksum: Checksum = google_crc32c.value
    except ImportError:
        import crc32c

        checksum = crc32c.crc32c
    return checksum


def mask(checksum: int) -> int:
    """A checksum as frames store it: rotated by 15 bits, and moved on."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame(payload: bytes, checksum: Checksum) -> bytes:
    """One record."""
    length = _LENGTH.pack(len(payload))
    return b"".join(
        (
            length,
            _CHECKSUM.pack(mask(checksum(length))),
            payload,
            _CHECKSUM.pack(mask(checksum(payload))),
        )
    )


def read_payloads(data: bytes, checksum: Checksum) -> Iterator[bytes]:
    """The payloads of a whole file in memory, both checksums checked."""
    at = 0
    while at < len(data):
        head = data[at : at + 8]
        (length,) = _LENGTH.unpack(head)
        payload = data[at + 12 : at + 12 + length]
        (head_sum,) = _CHECKSUM.unpack_from(data, at + 8)
        (payload_sum,) = _CHECKSUM.unpack_from(data, at + 12 + length)
        if head_sum != mask(checksum(head)) or payload_sum != mask(checksum(payload)):
            raise ValueError(f"the record at byte {at} is damaged")
        yield payload
        at += length + 16


def payload_of(frame: bytes, checksum: Checksum) -> bytes:
    """The payload of one whole frame, both checksums checked."""
    (head_sum,) = _CHECKSUM.unpack_from(frame, 8)
    (payload_sum,) = _CHECKSUM.unpack_from(frame, len(frame) - 4)
    payload = frame[HEADER_BYTES:-4]
    if head_sum != mask(checksum(frame[:8])) or payload_sum != mask(checksum(payload)):
        raise ValueError("a record is damaged")
    return payload


def frame_places(path: Path) -> list[tuple[int, int]]:
    """(where it begins, how long it is) of each frame of a file; nothing is checked."""
    data, at, places = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        places.append((at, length + FRAME_BYTES))
        at += length + FRAME_BYTES
    return places


def varint(value: int) -> bytes:
    """A number of 64 bits, seven a byte, the lowest first."""
    value &= 0xFFFFFFFFFFFFFFFF
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(number: int, data: bytes) -> bytes:
    """A protobuf field that holds bytes."""
    return bytes((number << 3 | 2,)) + varint(len(data)) + data


def feature(value: Any) -> bytes:
    """A tf.train.Feature of an int, a list of ints, bytes, or a list of floats."""
    if isinstance(value, bytes):
        return delimited(1, delimited(1, value))
    if isinstance(value, int):
        return delimited(3, delimited(1, varint(value)))
    if value and isinstance(value[0], float):
        return delimited(2, delimited(1, struct.pack(f"<{len(value)}f", *value)))
    return delimited(3, delimited(1, b"".join(map(varint, value))))


def sequence_example(context: Mapping[str, Any], lists: Mapping[str, list[bytes]]) -> bytes:
    """A tf.train.SequenceExample with a byte string in each step."""
    entries = [
        delimited(1, delimited(1, key.encode()) + delimited(2, steps))
        for key, values in lists.items()
        for steps in (b"".join(delimited(1, feature(value)) for value in values),)
    ]
    return example(context) + delimited(2, b"".join(entries))


def example(features: Mapping[str, Any]) -> bytes:
    """A tf.train.Example with its features in the order of the dict."""
    entries = [
        delimited(1, delimited(1, key.encode()) + delimited(2, feature(value)))
        for key, value in features.items()
    ]
    return delimited(1, b"".join(entries))
