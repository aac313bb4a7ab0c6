"""Add restart intervals to JPEGs losslessly, so that a crop is decoded without the rest.

An interval is a run of MCUs (minimum coded units, blocks of 8 or 16 pixels a side) that is decoded
on its own. If each row of MCUs consists of whole intervals, they are tiles.
"""

from __future__ import annotations

from recordsmith.image.decoding.memory import reserve_memory
from recordsmith.image.kernel import tiling
from recordsmith.image.storing.image_options import MAX_PIXELS
from recordsmith.image.storing.lossless import (
    TILING_PROBLEMS,
    NotLosslessError,
    check_is_plain,
    check_same_pixels,
    check_tiling,
    scans,
)

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

    Raises:
        NotLosslessError: the image is damaged or of another kind.
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
