"""Checks of JPEGs before and after lossless rewriting."""

from __future__ import annotations

import numpy as np

from recordsmith.errors import CorruptDataError
from recordsmith.image.decoding.jpeg_pixels import decode_jpeg
from recordsmith.image.formats.jpeg import (
    APP0,
    APP15,
    COMMENT,
    PROGRESSIVE_HUFFMAN,
    SCAN,
    Segment,
    all_segments,
    read_frame,
)

BASELINE = frozenset((0xC0, 0xC1))
"""Markers of frame headers: baseline and extended sequential, Huffman-coded."""


class NotLosslessError(Exception):
    """An image cannot be rewritten without loss. Internal to this package."""


def check_is_plain(data: bytes) -> None:
    """Check that a JPEG is of a kind that can be rewritten correctly.

    Raises:
        NotLosslessError: it is not.
    """
    frame = read_frame(data)
    if frame is None or frame.marker not in BASELINE | {PROGRESSIVE_HUFFMAN}:
        raise NotLosslessError("it is not Huffman-coded")
    if frame.precision != 8 or frame.component_count not in (1, 3, 4):
        raise NotLosslessError("it does not have 1, 3 or 4 channels of 8 bits")
    parts, stop = all_segments(data)
    if stop is None or not frame.height or not frame.width:
        raise NotLosslessError("its size or its end is missing")
    if data[stop:].strip(b"\0"):
        raise NotLosslessError("data follows the image")
    if any(is_metadata(part) for part in parts[_first_scan(parts) :]):
        raise NotLosslessError("metadata lies between its scans")


def check_same_pixels(first: bytes, second: bytes) -> None:
    """Decode two JPEGs, and check that they have the same pixels.

    Raises:
        NotLosslessError: they differ, or one of them is damaged.
    """
    damage: list[str] = []
    try:
        one, two = (
            decode_jpeg(data, *frame[3:], on_damage=damage.append)
            for data in (first, second)
            if (frame := read_frame(data)) is not None
        )
    except CorruptDataError as error:
        raise NotLosslessError(error.detail) from None
    if damage:
        raise NotLosslessError(damage[0])
    if not np.array_equal(one, two):
        raise NotLosslessError("the pixels changed")


def scans(data: bytes) -> bytes:
    """Everything after the header of the first scan, up to the end mark."""
    parts, stop = all_segments(data)
    return data[parts[_first_scan(parts)].stop : stop]


def _first_scan(parts: list[Segment]) -> int:
    """The index of the header of the first scan."""
    return next(number for number, part in enumerate(parts) if part.marker == SCAN)


def is_metadata(segment: Segment) -> bool:
    """Whether a segment holds metadata: APP0 to APP15, or a comment."""
    return APP0 <= segment.marker <= APP15 or segment.marker == COMMENT
