"""Divide JPEGs into tiles losslessly, so that crops decode faster.

All metadata segments are copied byte for byte; an image that cannot be rewritten so is left
unchanged.
"""

from __future__ import annotations

import numpy as np

from recordsmith.errors import CorruptDataError
from recordsmith.image.decoding.jpeg_pixels import decode_jpeg
from recordsmith.image.decoding.memory import reserve_memory
from recordsmith.image.formats.jpeg import (
    APP0,
    APP15,
    COMMENT,
    SCAN,
    Segment,
    all_segments,
    read_frame,
)
from recordsmith.image.kernel import tiling
from recordsmith.image.storing.image_options import MAX_PIXELS

BASELINE = frozenset((0xC0, 0xC1))
"""Markers of frame headers: baseline and extended sequential, Huffman-coded."""

TILING_PROBLEMS = {
    tiling.UNSUPPORTED: "it is not a baseline JPEG with one scan",
    tiling.DAMAGED: "it is damaged",
    tiling.TOO_LARGE: "it would become much larger",
    tiling.NO_CODE: "its Huffman tables are full",
}


class NotLosslessError(Exception):
    """An image cannot be rewritten without loss. Internal to this package."""


def check_is_plain(data: bytes) -> None:
    """Check that a JPEG is of a kind that can be rewritten correctly."""
    frame = read_frame(data)
    if frame is None or frame.marker not in BASELINE:
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
    """Decode two JPEGs, and check that they have the same pixels."""
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


def check_tiling(code: int) -> None:
    """Raise NotLosslessError for a result of the kernel `tiling` other than DONE."""
    if code != tiling.DONE:
        raise NotLosslessError(TILING_PROBLEMS[code])


LEAST_SIDE = 128
"""Tiles gain nothing in images with a shorter side than this, in pixels."""

GROWTH = 0.02
"""The most that a file may grow, as a share of its size."""

_USUAL_WIDTHS = range(64, 129)  # of a tile in pixels; measured: see docs/performance.md
_LEAST_WIDTH = 32
_VERIFYING = 12  # bytes per pixel


def add_tiles(data: bytes, *, max_pixels: int = MAX_PIXELS) -> bytes:
    """Divide a baseline JPEG into tiles.

    Tiles are 64 to 128 pixels wide if possible, else 32 or more, and wider if the file would grow
    by more than 2 %.

    Args:
        max_pixels: images of up to this size are decoded before and after, to verify that the
            pixels are the same. For larger ones, the tiles are removed again, which must give the
            same scan.

    Returns:
        The new file; `data` itself if it has tiles, or would grow by more than 2 %.
    """
    check_is_plain(data)
    mcus = tiling.read_mcus(data)
    if mcus is None or not tiling.can_be_cut(data):
        raise NotLosslessError(TILING_PROBLEMS[tiling.UNSUPPORTED])
    mcu_height, mcu_width, row_count, row_length, interval = mcus
    pixel_count = mcu_height * row_count * mcu_width * row_length
    for wanted in _intervals(row_length, mcu_width):
        if interval and interval <= wanted and row_length % interval == 0:
            return data
        code, tiled = tiling.with_interval(data, wanted)
        if code == tiling.TOO_LARGE or len(tiled) - len(data) > GROWTH * len(data):
            continue
        check_tiling(code)
        if pixel_count <= max_pixels:
            with reserve_memory(_VERIFYING * pixel_count):
                check_same_pixels(data, tiled)
        else:
            code, plain = tiling.with_interval(tiled, interval)
            check_tiling(code)
            if scans(plain) != scans(data):
                raise NotLosslessError("the scan changed")
        return tiled
    return data


def _intervals(row_length: int, mcu_width: int) -> list[int]:
    """The intervals that divide a row of MCUs into tiles, from the preferred one on."""
    widths = {
        length: length * mcu_width
        for length in range(1, row_length + 1)
        if row_length % length == 0
    }
    is_usual = any(width in _USUAL_WIDTHS for width in widths.values())
    least = _USUAL_WIDTHS.start if is_usual else _LEAST_WIDTH
    return [length for length, width in widths.items() if width >= least]
