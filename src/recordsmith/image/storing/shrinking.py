"""Recompress PNG and JPEG files without changing pixels, by the packages of the extra `shrink`."""

from __future__ import annotations

from typing import Any

from recordsmith.image.storing.lossless import (
    BASELINE,
    NotLosslessError,
    coded_scans,
    have_same_pixels,
    is_metadata,
    is_plain,
)
from recordsmith.jpeg import DONE, PROGRESSIVE_HUFFMAN, segments, with_interval
from recordsmith.stores import convert_by_files
from recordsmith.support.errors import MissingExtraError

_PNG_LEVEL = 2
_RESTART_INTERVAL = 0xDD  # the marker that defines it


def shrink_png(data: bytes) -> bytes:
    """Recompress a PNG. Returns `data` itself if that gains nothing."""
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
    except oxipng.PngError:
        raise NotLosslessError from None
    return smaller if len(smaller) < len(data) else data


def shrink_jpeg(data: bytes) -> bytes:
    """Recompress a JPEG as progressive, without restart intervals.

    Returns `data` itself if that gains nothing.
    """
    try:
        import mozjpeg_lossless_optimization
    except ImportError:
        raise MissingExtraError("shrink", "mozjpeg-lossless-optimization") from None
    _check_is_plain(data)
    try:
        coded = mozjpeg_lossless_optimization.optimize(data)
    except ValueError:
        raise NotLosslessError from None
    smaller = _with_metadata(data, coded)
    return smaller if len(smaller) < len(data) else data


def to_baseline(data: bytes) -> bytes:
    """Convert a JPEG to baseline with optimal Huffman tables. Keeps its restart interval.

    Both images are decoded to verify that the pixels are the same.
    """
    try:
        import jpeglib
    except ImportError:
        raise MissingExtraError("shrink", "jpeglib") from None
    _check_is_plain(data)
    rewritten = _with_metadata(data, _recode(jpeglib, data[:2] + _pixels_of(data)))
    if interval := restart_interval(data):
        code, rewritten = with_interval(rewritten, interval)
        if code != DONE:
            raise NotLosslessError
    if not have_same_pixels(data, rewritten):
        raise NotLosslessError
    return rewritten


def restart_interval(data: bytes) -> int:
    """The restart interval of the first scan of a JPEG; 0 for none."""
    interval = 0
    for marker, start, stop in segments(data):
        if marker == _RESTART_INTERVAL and stop - start == 6:
            interval = int.from_bytes(data[start + 4 : stop], "big")
    return interval


def _check_is_plain(data: bytes) -> None:
    if not is_plain(data, (*BASELINE, PROGRESSIVE_HUFFMAN)):
        raise NotLosslessError


def _with_metadata(data: bytes, coded: bytes) -> bytes:
    metadata = (data[part.start : part.stop] for part in segments(data) if is_metadata(part.marker))
    return b"".join((data[:2], *metadata, _pixels_of(coded)))


def _pixels_of(data: bytes) -> bytes:
    """All of a JPEG but its first mark and its metadata."""
    parts = (
        data[part.start : part.stop] for part in segments(data) if not is_metadata(part.marker)
    )
    return b"".join((*parts, coded_scans(data)))


def _recode(jpeglib: Any, coded: bytes) -> bytes:
    """Rewrite through temporary files, which jpeglib requires; thread-safe without metadata."""

    def rewrite(source: str, target: str) -> None:
        try:
            image = jpeglib.read_dct(source)
            image.load()
            image.qt = -1  # keep the quantization tables and component names of the file
            image.write_dct(target, flags=["+OPTIMIZE_CODING"])
        except (OSError, ValueError, KeyError):
            raise NotLosslessError from None

    rewritten = convert_by_files(coded, rewrite)
    if not is_plain(rewritten):
        raise NotLosslessError
    return rewritten
