"""What is in a JPEG file, without decoding it: its segments, its frame, where it ends.

Markers and their meaning are those of ITU T.81, annex B. Nothing here looks at pixels, and
nothing that is broken raises: what cannot be read is not there.
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
EXIF = b"Exif\0\0"
_MARKER_AND_LENGTH = struct.Struct(">HH").unpack_from
_FRAME = struct.Struct(">BHHB").unpack_from
_FRAME_MARKERS = frozenset(0xFF00 | marker for marker in FRAMES)
_EXIF_MARKER = 0xFF00 | APP1
_PLAIN_MARKERS = frozenset((0xFFC4, *range(0xFFDB, 0xFFFF)))  # whose length follows
_MARKER_IN_SCAN = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]")  # no stuffed byte, no restart


class Segment(NamedTuple):
    """A piece of a JPEG file: `data[start:stop]`, marker and length included."""

    marker: int
    start: int
    stop: int


class Frame(NamedTuple):
    """What the frame header says.

    marker: how it is coded: 0xC0 baseline, 0xC2 progressive, …
    start: where it begins in the file.
    precision: bits of a sample.
    """

    marker: int
    start: int
    precision: int
    height: int
    width: int
    component_count: int


def segments(data: bytes | memoryview, start: int = 2) -> Iterator[Segment]:
    """The segments that follow each other from `start` on, up to the header of a scan or the end.

    The last one is the scan's header; its coded data follows.
    """
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


def read_head(data: bytes | memoryview) -> tuple[Frame | None, int | None]:
    """What the frame header of a JPEG says, and where the TIFF structure of its EXIF begins.

    None for what is not there. In one walk, as every picture that is packed is asked this.
    """
    if data[:2] != START:
        return None, None
    at, exif = 2, None
    try:
        while True:
            marker, length = _MARKER_AND_LENGTH(data, at)
            if marker in _FRAME_MARKERS:
                return Frame(marker & 0xFF, at, *_FRAME(data, at + 4)), exif
            if marker == _EXIF_MARKER and exif is None and data[at + 4 : at + 10] == EXIF:
                exif = at + 4 + len(EXIF)
            elif marker not in _PLAIN_MARKERS:
                return _read_odd_head(data, at, exif)
            at += 2 + length
    except struct.error:  # it ends before its frame
        return None, exif


def _read_odd_head(
    data: bytes | memoryview, at: int, exif: int | None
) -> tuple[Frame | None, int | None]:
    """The same from `at` on, where there are fill bytes or markers without a length."""
    for marker, start, stop in segments(data, at):
        if marker in FRAMES and stop - start >= 10:
            return Frame(marker, start, *_FRAME(data, start + 4)), exif
        if marker == APP1 and exif is None and data[start + 4 : start + 10] == EXIF:
            exif = start + 4 + len(EXIF)
    return None, exif


def read_frame(data: bytes | memoryview) -> Frame | None:
    """What the frame header of a JPEG says; None where there is none."""
    return read_head(data)[0]


def is_progressive(data: bytes) -> bool:
    """Whether a picture is a JPEG that is coded in several scans over the whole picture.

    Only the header is read. Bytes that are no JPEG are not progressive.
    """
    frame = read_frame(data)
    return frame is not None and frame.marker in PROGRESSIVE


def all_segments(data: bytes) -> tuple[list[Segment], int | None]:
    """The segments of a whole JPEG, also those between its scans, and where it ends.

    The end is behind the end mark; None where there is none. More may follow in the file: a
    second picture, a film, zeros.
    """
    found: list[Segment] = []
    at = 2
    while True:
        here = list(segments(data, at))
        found.extend(here)
        at = here[-1].stop if here else at
        marker = _MARKER_IN_SCAN.search(data, at)
        if marker is None:
            return found, None
        if data[marker.end() - 1] == _END:
            return found, marker.end()
        if not here or here[-1].marker != SCAN:  # neither a scan nor its end: not understood
            return found, None
        at = marker.end() - 2
