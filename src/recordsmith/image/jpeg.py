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
_MARKER_IN_SCAN = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]")  # no stuffed byte, no restart


class Segment(NamedTuple):
    """A piece of a JPEG file: `data[start:stop]`, marker and length included."""

    marker: int
    start: int
    stop: int


class Frame(NamedTuple):
    """What the frame header says.

    marker: how it is coded: 0xC0 baseline, 0xC2 progressive, …
    precision: bits of a sample.
    """

    marker: int
    precision: int
    height: int
    width: int
    component_count: int


def segments(data: bytes, start: int = 2) -> Iterator[Segment]:
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


def read_frame(data: bytes) -> Frame | None:
    """What the frame header of a JPEG says; None where there is none."""
    if data[:2] != START:
        return None
    for marker, start, stop in segments(data):
        if marker in FRAMES and stop - start >= 10:
            return Frame(marker, *struct.unpack_from(">BHHB", data, start + 4))
    return None


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
