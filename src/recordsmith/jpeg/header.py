"""Parse the structure of a JPEG file without decoding it: segments, frame header, end.

Follows ITU T.81, annex B. These functions do not raise on damaged data; unreadable parts count as
missing.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

START = b"\xff\xd8"
APP0, APP1, APP2, APP15, COMMENT = 0xE0, 0xE1, 0xE2, 0xEF, 0xFE
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # table B.1
PROGRESSIVE_HUFFMAN = 0xC2
PROGRESSIVE = frozenset((PROGRESSIVE_HUFFMAN, 0xC6, 0xCA, 0xCE))
SCAN = 0xDA
_END = 0xD9
END = b"\xff\xd9"
EXIF = b"Exif\0\0"
_MARKER_AND_LENGTH = struct.Struct(">HH").unpack_from
_FRAME = struct.Struct(">BHHB").unpack_from
_FRAME_STOP = 4 + struct.calcsize(">BHHB")  # from the marker
_KEPT_BYTES = 1 << 14
_FRAME_MARKERS = frozenset(0xFF00 | marker for marker in FRAMES)
_EXIF_MARKER = 0xFF00 | APP1
_PLAIN_MARKERS = frozenset((0xFFC4, *range(0xFFDB, 0xFFFF)))  # followed by a length
_WITHOUT_PARAMETERS = frozenset((0x00, 0x01, *range(0xD0, 0xD8)))  # a stuffed byte is not a marker
_WITHOUT_LENGTH = _WITHOUT_PARAMETERS | {0xD8, _END}
_ADOBE_MARKER = b"\xff\xee"
_ASSUMED_TRANSFORMS = {3: 1, 4: 2}  # by component count; the only other valid one is 0
_SKIPPED = frozenset((0xDC, COMMENT))  # by libjpeg, as are all APP0 to APP15
_READ_OF_SKIPPED = {APP0: 14, 0xEE: 12}  # libjpeg reads the first bytes of these
_MARKER = re.compile(rb"\xff[^\x00\xff]")
MARKER_IN_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")  # neither a stuffed byte nor a restart


class Segment(NamedTuple):
    """A piece of a JPEG file: `data[start:stop]`, marker and length included."""

    marker: int
    start: int
    stop: int


class FrameHeader(NamedTuple):
    """The frame header.

    Attributes:
        marker: the coding: 0xC0 baseline, 0xC2 progressive, …
        start: its offset in the file.
        precision: bits per sample.
    """

    marker: int
    start: int
    precision: int
    height: int
    width: int
    component_count: int


_last_head: tuple[bytes, tuple[FrameHeader | None, int | None]] = b"\0", (None, None)
"""The last header that `read_head` parsed, up to the end of its frame header, and the result."""


def segments(data: bytes | memoryview, start: int = 2) -> Iterator[Segment]:
    """Iterate over the segments from `start` up to and including the header of a scan."""
    at, end = start, len(data) - 3
    while at < end and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # no length follows
            at += 2
            continue
        stop = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == _END or stop > len(data):
            return
        yield Segment(marker, at, stop)
        if marker == SCAN:
            return
        at = stop


def read_head(data: bytes | memoryview) -> tuple[FrameHeader | None, int | None]:
    """The frame header of a JPEG, and the offset of the TIFF structure in its EXIF segment.

    Each is None if missing. Both are read in one pass, for the speed of packing, which asks twice
    for each image; images from one encoder often have the same header as well.
    """
    global _last_head  # noqa: PLW0603 - replaced as a whole, so threads may share it
    header, found = _last_head
    if data[: len(header)] == header:
        return found
    if data[:2] != START:
        return None, None
    at, exif = 2, None
    try:
        while True:
            marker, length = _MARKER_AND_LENGTH(data, at)
            if marker in _FRAME_MARKERS:
                found = FrameHeader(marker & 0xFF, at, *_FRAME(data, at + 4)), exif
                if at <= _KEPT_BYTES:
                    _last_head = bytes(data[: at + _FRAME_STOP]), found
                return found
            if marker == _EXIF_MARKER and exif is None and data[at + 4 : at + 10] == EXIF:
                exif = at + 4 + len(EXIF)
            elif marker not in _PLAIN_MARKERS:
                return _read_odd_head(data, at, exif)
            at += 2 + length
    except struct.error:  # the data ends before the frame header
        return None, exif


def _read_odd_head(
    data: bytes | memoryview, at: int, exif: int | None
) -> tuple[FrameHeader | None, int | None]:
    """The same from `at` on, for files with fill bytes or markers without a length."""
    for marker, start, stop in segments(data, at):
        if marker in FRAMES and stop - start >= 10:
            return FrameHeader(marker, start, *_FRAME(data, start + 4)), exif
        if marker == APP1 and exif is None and data[start + 4 : start + 10] == EXIF:
            exif = start + 4 + len(EXIF)
    return None, exif


def read_frame(data: bytes | memoryview) -> FrameHeader | None:
    """The frame header of a JPEG; None if missing."""
    return read_head(data)[0]


def with_plain_header(data: bytes) -> bytes:
    """Remove from the header of a JPEG what makes libjpeg warn: garbage between segments, an
    unknown JFIF version, an unknown Adobe transform.

    Returns `data` itself if the header is clean.
    """
    kept = [data[:2]]
    start = data.find(b"\xff", 2)
    while start >= 0:
        at = start
        while data[at : at + 1] == b"\xff":
            at += 1
        marker = data[at] if at < len(data) else _END
        length = int.from_bytes(data[at + 1 : at + 3], "big")
        if marker not in _WITHOUT_PARAMETERS:
            if marker in (SCAN, _END, 0xD8) or length < 2:
                kept.append(data[at - 1 :])
                break
            kept.append(data[at - 1 : at + 1 + length])
            at += length
        start = data.find(b"\xff", at + 1)
    frame = read_frame(b"".join(kept))
    clean = b"".join(_plain_segment(segment, frame) for segment in kept)
    return data if clean == data else clean


def _plain_segment(segment: bytes, frame: FrameHeader | None) -> bytes:
    if segment[:2] == b"\xff\xe0" and segment[4:9] == b"JFIF\0":
        return segment[:9] + b"\1" + segment[10:]
    if segment[:2] == _ADOBE_MARKER and segment[4:9] == b"Adobe" and len(segment) >= 16:
        assumed = _ASSUMED_TRANSFORMS.get(frame.component_count) if frame else None
        if assumed is not None and segment[15] not in (0, assumed):
            return segment[:15] + bytes((assumed,)) + segment[16:]
    return segment


def unfinished_segment(data: bytes) -> int | None:
    """The offset of the marker whose segment is truncated at the end of a JPEG without end mark.

    libjpeg waits for more bytes there, and TensorFlow decodes the image without them. None if the
    file ends with a segment or within one that libjpeg skips: TensorFlow rejects such an image.
    """
    parts, _ = all_segments(data)
    scans = [part.stop for part in parts if part.marker == SCAN]
    marker = _MARKER.search(data, scans[-1] if scans else 2)
    while marker is not None:
        code, at = data[marker.end() - 1], marker.end()
        if code not in _WITHOUT_LENGTH:
            length = int.from_bytes(data[at : at + 2], "big")
            is_skipped = code in _SKIPPED or APP0 <= code <= APP15
            read = min(length, 2 + _READ_OF_SKIPPED.get(code, 0)) if is_skipped else length
            if len(data) < at + max(length, 2):
                return marker.start() if at < len(data) < at + max(read, 2) else None
            at += length
        marker = _MARKER.search(data, at)
    return len(data) if data.endswith(b"\xff") else None


def sampling_factors(data: bytes | memoryview, frame: FrameHeader) -> list[tuple[int, int]]:
    """The sampling factors of each component of a JPEG, horizontal and vertical."""
    first = frame.start + 11
    factors = data[first : first + 3 * frame.component_count : 3]
    return [(byte >> 4, byte & 15) for byte in factors]


def find_frame(data: bytes | memoryview) -> FrameHeader | None:
    """The frame header of a JPEG, even if garbage precedes it; None for other bytes."""
    frame = read_frame(data)
    if frame is None and data[:3] == START + b"\xff":
        return read_frame(with_plain_header(bytes(data)))
    return frame


def has_end(data: bytes) -> bool:
    """Whether a JPEG has an end mark. One before the frame header belongs to a thumbnail."""
    frame = find_frame(data)
    return frame is not None and data.rfind(END) >= frame.start


def bytes_per_pixel(data: memoryview, channels: int, divisor: int) -> float:
    """The peak memory of decoding a JPEG at 1/`divisor` of its size."""
    frame = find_frame(data)
    assert frame is not None
    decoded = 7 if channels == 4 else 4 if frame.component_count == 4 else 3
    return _coefficient_bytes(data, frame) + decoded / divisor**2


def _coefficient_bytes(data: memoryview, frame: FrameHeader) -> int:
    """The bytes per pixel that libjpeg keeps for a JPEG with several scans: 2 per coefficient."""
    if frame.marker not in PROGRESSIVE:
        scan = next((segment for segment in segments(data) if segment.marker == SCAN), None)
        if scan is None or data[scan.start + 4] == frame.component_count:
            return 0
    factors = sampling_factors(data, frame) or [(1, 1)]
    samples = sum(across * down for across, down in factors)
    largest = max(across for across, _ in factors) * max(down for _, down in factors)
    return -(-2 * samples // max(1, largest))


def is_progressive(data: bytes | memoryview) -> bool:
    """Whether an image is a progressive JPEG. Reads only the header."""
    frame = read_frame(data)
    return frame is not None and frame.marker in PROGRESSIVE


def all_segments(data: bytes) -> tuple[list[Segment], int | None]:
    """All segments of a JPEG, including those between scans, and the offset after its end mark.

    The offset is None if there is no end mark. Other data may follow in the file.
    """
    found: list[Segment] = []
    at = 2
    while True:
        here = list(segments(data, at))
        found.extend(here)
        at = here[-1].stop if here else at
        marker = MARKER_IN_SCAN.search(data, at)
        if marker is None:
            return found, None
        if data[marker.end() - 1] == _END:
            return found, marker.end()
        if not here or here[-1].marker != SCAN:  # neither a scan nor its end: damaged
            return found, None
        at = marker.end() - 2
