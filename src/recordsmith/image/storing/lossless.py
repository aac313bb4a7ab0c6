"""Divide JPEGs into tiles losslessly, so that crops decode faster.

All metadata segments are copied byte for byte; an image that cannot be rewritten so is left
unchanged.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from recordsmith.image.decoding.jpeg_pixels import decode_jpeg
from recordsmith.image.decoding.memory import reserve_memory
from recordsmith.image.image_options import MAX_PIXELS
from recordsmith.jpeg import (
    APP0,
    APP15,
    COMMENT,
    DONE,
    SCAN,
    TOO_LARGE,
    all_segments,
    can_be_cut,
    read_frame,
    read_mcus,
    with_interval,
)
from recordsmith.support.errors import CorruptDataError

MIN_SIDE = 128
"""Tiles gain nothing in images with a shorter side than this, in pixels."""

GROWTH = 0.02
"""The most that a file may grow, as a share of its size."""

_USUAL_WIDTHS = range(64, 129)  # of a tile in pixels; measured: see docs/performance/benchmarks.md
_MIN_WIDTH = 32
_VERIFYING = 12  # bytes per pixel
BASELINE = (0xC0, 0xC1)
"""Frames of baseline and extended sequential JPEGs, Huffman-coded."""


class NotLosslessError(Exception):
    """A JPEG cannot be rewritten without loss."""


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
    mcus = read_mcus(data) if is_plain(data) else None
    if mcus is None or not can_be_cut(data):
        raise NotLosslessError
    mcu_height, mcu_width, row_count, row_length, interval = mcus
    pixel_count = mcu_height * row_count * mcu_width * row_length
    for length in _intervals(row_length, mcu_width):
        if interval and interval <= length and row_length % interval == 0:
            return data
        code, tiled = with_interval(data, length)
        if code == TOO_LARGE or len(tiled) - len(data) > GROWTH * len(data):
            continue
        if code != DONE:
            raise NotLosslessError
        if pixel_count <= max_pixels:
            with reserve_memory(_VERIFYING * pixel_count):
                is_same = have_same_pixels(data, tiled)
        else:
            code, plain = with_interval(tiled, interval)
            is_same = code == DONE and coded_scans(plain) == coded_scans(data)
        if not is_same:
            raise NotLosslessError
        return tiled
    return data


def is_plain(data: bytes, frames: Collection[int] = BASELINE) -> bool:
    """Whether a JPEG is of a kind that can be rewritten correctly. `frames`: their markers."""
    frame = read_frame(data)
    if frame is None or frame.marker not in frames or not frame.height or not frame.width:
        return False
    if frame.precision != 8 or frame.component_count not in (1, 3, 4):
        return False
    segments, stop = all_segments(data)
    if stop is None or data[stop:].strip(b"\0"):
        return False
    markers = [segment.marker for segment in segments]
    after_scan = markers[markers.index(SCAN) :] if SCAN in markers else []
    return not any(map(is_metadata, after_scan))


def is_metadata(marker: int) -> bool:
    """Whether a segment of a JPEG is metadata: APP0 to APP15, or a comment."""
    return APP0 <= marker <= APP15 or marker == COMMENT


def have_same_pixels(first: bytes, second: bytes) -> bool:
    """Whether two JPEGs decode to the same pixels without a complaint."""
    damage: list[str] = []
    try:
        before, after = (
            decode_jpeg(data, *frame[3:], on_damage=damage.append)
            for data in (first, second)
            if (frame := read_frame(data)) is not None
        )
    except CorruptDataError:
        return False
    return not damage and np.array_equal(before, after)


def coded_scans(data: bytes) -> bytes:
    """Everything after the header of the first scan, up to the end mark."""
    segments, stop = all_segments(data)
    return data[next(segment.stop for segment in segments if segment.marker == SCAN) : stop]


def _intervals(row_length: int, mcu_width: int) -> list[int]:
    """The intervals that divide a row of MCUs into tiles, from the preferred one on."""
    widths = {
        length: length * mcu_width
        for length in range(1, row_length + 1)
        if row_length % length == 0
    }
    is_usual = any(width in _USUAL_WIDTHS for width in widths.values())
    least = _USUAL_WIDTHS.start if is_usual else _MIN_WIDTH
    return [length for length, width in widths.items() if width >= least]
