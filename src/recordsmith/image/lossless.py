"""Picture files with the same pixels in other bytes: smaller, or faster to decode.

PNG by oxipng, which filters and deflates anew and here changes neither colour type nor bits, as
readers tell them apart; JPEG by mozjpeg, which makes them progressive; and the other way,
progressive to baseline, by jpeglib, which moves the coefficients. Packages are extras.

Of a JPEG everything that is no coded pixel, profile, EXIF, Adobe's and JFIF's segments, is taken
over from the original byte by byte. What cannot be carried over stays as it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from recordsmith.errors import MissingExtraError
from recordsmith.image.jpeg import (
    APP0,
    APP15,
    COMMENT,
    PROGRESSIVE_HUFFMAN,
    SCAN,
    Segment,
    all_segments,
    read_frame,
    segments,
)

_BASELINE = frozenset((0xC0, 0xC1))
_PNG_LEVEL = 2


class CannotKeepError(Exception):
    """This picture cannot be rewritten without loss; it stays as it is. Never leaves the layer."""


def shrink_png(data: bytes) -> bytes:
    """The same PNG, filtered and deflated better; `data` itself where that gains nothing.

    Raises:
        CannotKeepError: it is damaged.
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
        raise CannotKeepError(str(error)) from None
    return smaller if len(smaller) < len(data) else data


def shrink_jpeg(data: bytes) -> bytes:
    """The same JPEG, progressive and coded better; `data` itself where that gains nothing.

    Raises:
        CannotKeepError: it is damaged, or of a kind that would lose something.
        MissingExtraError: mozjpeg-lossless-optimization is not installed.
    """
    try:
        import mozjpeg_lossless_optimization
    except ImportError:
        raise MissingExtraError("shrink", "mozjpeg-lossless-optimization") from None
    _check_is_plain(data)
    try:
        coded = mozjpeg_lossless_optimization.optimize(data)
    except ValueError as error:
        raise CannotKeepError(str(error)) from None
    smaller = _with_words_of(data, coded)
    return smaller if len(smaller) < len(data) else data


def to_baseline(data: bytes) -> bytes:
    """The same JPEG in one scan from top to bottom, with the best Huffman tables.

    That the pixels are the same is proved by decoding both.

    Raises:
        CannotKeepError: it is damaged, or of a kind that would lose something.
        MissingExtraError: jpeglib is not installed.
    """
    try:
        import jpeglib
    except ImportError:
        raise MissingExtraError("shrink", "jpeglib") from None
    _check_is_plain(data)
    coded = _coded_pixels(data)
    rewritten = _with_words_of(data, _recode(jpeglib, coded))
    if not _same_pixels(data, rewritten):
        raise CannotKeepError("the pixels changed")
    return rewritten


def _check_is_plain(data: bytes) -> None:
    """Only what the rewriters are known to do right: Huffman codes, 8 bits, nothing behind."""
    frame = read_frame(data)
    if frame is None or frame.marker not in _BASELINE | {PROGRESSIVE_HUFFMAN}:
        raise CannotKeepError("it is not coded with Huffman codes")
    if frame.precision != 8 or frame.component_count not in (1, 3, 4):
        raise CannotKeepError("it has other samples than those of 8 bits in 1, 3 or 4 channels")
    parts, stop = all_segments(data)
    if stop is None or not frame.height or not frame.width:
        raise CannotKeepError("its size or its end is not where it should be")
    if data[stop:].strip(b"\0"):
        raise CannotKeepError("there is something behind the picture")
    if any(_is_word(part) for part in parts[_first_scan(parts) :]):
        raise CannotKeepError("there are words between its scans")


def _first_scan(parts: list[Segment]) -> int:
    return next(number for number, part in enumerate(parts) if part.marker == SCAN)


def _is_word(segment: Segment) -> bool:
    """Whether a segment says something about the picture: APP0 to APP15, or a comment."""
    return APP0 <= segment.marker <= APP15 or segment.marker == COMMENT


def _coded_pixels(data: bytes) -> bytes:
    """A JPEG without anything but its coded pixels."""
    return data[:2] + _picked(data, lambda segment: not _is_word(segment)) + _scans(data)


def _with_words_of(data: bytes, coded: bytes) -> bytes:
    """The coded pixels of one JPEG, with what another says about them."""
    without_words = _picked(coded, lambda segment: not _is_word(segment))
    return data[:2] + _picked(data, _is_word) + without_words + _scans(coded)


def _picked(data: bytes, wanted: Callable[[Segment], bool]) -> bytes:
    return b"".join(data[part.start : part.stop] for part in segments(data) if wanted(part))


def _scans(data: bytes) -> bytes:
    """Everything behind the first scan's header."""
    parts, stop = all_segments(data)
    return data[parts[_first_scan(parts)].stop : stop]


def _recode(jpeglib: Any, coded: bytes) -> bytes:
    """By files, as jpeglib knows nothing else; without words in them it is safe in threads."""
    with tempfile.TemporaryDirectory(prefix="recordsmith-") as folder:
        source, target = os.path.join(folder, "in.jpg"), os.path.join(folder, "out.jpg")
        with open(source, "wb") as file:
            file.write(coded)
        try:
            picture = jpeglib.read_dct(source)
            picture.load()
            picture.qt = -1  # as in the file, and with it the names of the components
            picture.write_dct(target, flags=["+OPTIMIZE_CODING"])
        except (OSError, ValueError, KeyError) as error:
            raise CannotKeepError(str(error)) from None
        with open(target, "rb") as file:
            rewritten = file.read()
    frame = read_frame(rewritten)
    if frame is None or frame.marker not in _BASELINE or all_segments(rewritten)[1] is None:
        raise CannotKeepError("jpeglib wrote no picture")
    return rewritten


def _same_pixels(first: bytes, second: bytes) -> bool:
    import cv2

    flags = cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION
    one, two = (cv2.imdecode(np.frombuffer(data, np.uint8), flags) for data in (first, second))
    return one is not None and two is not None and np.array_equal(one, two)
