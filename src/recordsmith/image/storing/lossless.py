"""Rewrite image files losslessly, to be smaller or faster to decode. The packages are extras.

oxipng recompresses PNG and keeps colour type and bit depth. mozjpeg makes JPEG progressive; jpeglib
converts progressive to baseline by moving the coefficients. All metadata segments of a JPEG are
copied byte for byte from the original; an image that cannot be rewritten so is left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recordsmith.errors import MissingExtraError
from recordsmith.image.formats.jpeg import Segment, all_segments, read_frame, segments
from recordsmith.image.storing.lossless_checks import (
    BASELINE,
    NotLosslessError,
    check_is_plain,
    check_same_pixels,
    is_metadata,
    scans,
)
from recordsmith.image.storing.tiles import keep_interval
from recordsmith.stores.local.scratch import convert_by_files

_PNG_LEVEL = 2


def shrink_png(data: bytes) -> bytes:
    """Recompress a PNG. Returns `data` itself if that gains nothing.

    Raises:
        NotLosslessError: the image is damaged.
        MissingExtraError: pyoxipng is not installed.
    """
    try:
        import oxipng
    except ImportError:
        raise MissingExtraError("shrink", "pyoxipng") from None
    try:
        smaller = oxipng.optimize_from_memory(
            data,
            level=_PNG_LEVEL,
            strip=oxipng.StripChunks.none(),
            bit_depth_reduction=False,
            color_type_reduction=False,
            palette_reduction=False,
            grayscale_reduction=False,
        )
    except oxipng.PngError as error:
        raise NotLosslessError(str(error)) from None
    return smaller if len(smaller) < len(data) else data


def shrink_jpeg(data: bytes) -> bytes:
    """Recompress a JPEG as progressive, without restart intervals.

    Returns `data` itself if that gains nothing.

    Raises:
        NotLosslessError: the image is damaged, or rewriting would lose something.
        MissingExtraError: mozjpeg-lossless-optimization is not installed.
    """
    try:
        import mozjpeg_lossless_optimization
    except ImportError:
        raise MissingExtraError("shrink", "mozjpeg-lossless-optimization") from None
    check_is_plain(data)
    try:
        coded = mozjpeg_lossless_optimization.optimize(data)
    except ValueError as error:
        raise NotLosslessError(str(error)) from None
    smaller = _copy_metadata(data, coded)
    return smaller if len(smaller) < len(data) else data


def to_baseline(data: bytes) -> bytes:
    """Convert a JPEG to baseline with optimal Huffman tables. Keeps its restart interval.

    Both images are decoded to verify that the pixels are the same.

    Raises:
        NotLosslessError: the image is damaged, or rewriting would lose something.
        MissingExtraError: jpeglib is not installed.
    """
    try:
        import jpeglib
    except ImportError:
        raise MissingExtraError("shrink", "jpeglib") from None
    check_is_plain(data)
    coded = _coded_pixels(data)
    rewritten = keep_interval(data, _copy_metadata(data, _recode(jpeglib, coded)))
    check_same_pixels(data, rewritten)
    return rewritten


def _coded_pixels(data: bytes) -> bytes:
    """A JPEG without metadata."""
    return data[:2] + _select(data, lambda segment: not is_metadata(segment)) + scans(data)


def _copy_metadata(data: bytes, coded: bytes) -> bytes:
    """The coded pixels of one JPEG with the metadata of another."""
    without_metadata = _select(coded, lambda segment: not is_metadata(segment))
    return data[:2] + _select(data, is_metadata) + without_metadata + scans(coded)


def _select(data: bytes, wanted: Callable[[Segment], bool]) -> bytes:
    return b"".join(data[part.start : part.stop] for part in segments(data) if wanted(part))


def _recode(jpeglib: Any, coded: bytes) -> bytes:
    """Rewrite through temporary files, which jpeglib requires; thread-safe without metadata."""

    def rewrite(source: str, target: str) -> None:
        try:
            image = jpeglib.read_dct(source)
            image.load()
            image.qt = -1  # keep the quantization tables and component names of the file
            image.write_dct(target, flags=["+OPTIMIZE_CODING"])
        except (OSError, ValueError, KeyError) as error:
            raise NotLosslessError(str(error)) from None

    rewritten = convert_by_files(coded, rewrite)
    frame = read_frame(rewritten)
    if frame is None or frame.marker not in BASELINE or all_segments(rewritten)[1] is None:
        raise NotLosslessError("jpeglib did not write an image")
    return rewritten
