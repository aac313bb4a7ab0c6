"""Decode only the part of an image that is used.

A smaller JPEG is cut out of a baseline JPEG: the restart intervals that the window touches where
the image has tiles (each row of MCUs consists of whole intervals), otherwise rows or the Huffman
codes of its blocks, whichever is faster. Its pixels are those of the whole image, bit for bit. The
first rows of a PNG are decoded alone if they are few. Other images are decoded whole.

Damage in the decoded part is found as when the whole image is decoded, which then happens. Damage
elsewhere goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.decoders import ExactPixels, decode_png_rows
from recordsmith.image.decoding.jpeg_pixels import decode_cut
from recordsmith.image.decoding.memory import (
    check_size,
    peak_bytes,
    reserve_for_decoding,
    reserve_more,
)
from recordsmith.image.decoding.pixels import convert_pixels, decode_pixels
from recordsmith.image.formats.header import ImageHeader
from recordsmith.image.formats.png import is_interlaced
from recordsmith.image.image_options import MAX_PIXELS
from recordsmith.jpeg import cut_cost, cut_jpeg
from recordsmith.support.buffers import BytesLike, as_view

_FIRST = (0, 0)  # the interval at the start of the scan
_FEW_ROWS = 2 / 3  # of a PNG; decompressing more of them first takes as long as decoding all


class Window(NamedTuple):
    top: int
    left: int
    height: int
    width: int


class Part(NamedTuple):
    """Decoded pixels of an image, and where they begin in it.

    pixels: (height, width, channels).
    top, left: in pixels of the image at full size, multiples of 8.
    pixel_count: how many pixels were decoded, counted at full size.
    """

    pixels: ExactPixels
    top: int
    left: int
    pixel_count: int = 0


@dataclass(frozen=True, slots=True)
class PartFile:
    """An image file that has all pixels of a window: the image, or a smaller one cut out of it.

    data, head: the file and its header. The header of a PNG may have fewer rows than the file, of
        which only these are decoded.
    top, left: where it begins in the image.
    whole: the image that it is cut out of; None for the image itself.
    """

    data: BytesLike
    head: ImageHeader
    top: int = 0
    left: int = 0
    whole: tuple[BytesLike, ImageHeader] | None = None

    @property
    def pixel_count(self) -> int:
        """How many pixels are decoded, counted at full size."""
        return self.head.height * self.head.width

    @property
    def unpacked_bytes(self) -> int:
        """Bytes per pixel of the rows of a PNG that are decompressed before they are decoded."""
        return 8 if self.head.format == "png" and self.whole is not None else 0

    def decode(
        self,
        *,
        channels: int = 3,
        bits: int | None = 8,
        divisor: int = 1,
        max_pixels: int = MAX_PIXELS,
        out: npt.NDArray[np.uint8] | None = None,
    ) -> Part:
        """Decode the file; see `decode_part`, and `decode_pixels` for `out`."""
        if self.whole is None:
            pixels = decode_pixels(
                self.data, self.head, channels=channels, bits=bits, divisor=divisor, out=out
            )
            return Part(pixels, self.top, self.left, self.pixel_count)
        cut: ExactPixels | None = None
        if self.head.format == "png":
            cut = decode_png_rows(bytes(self.data), self.head.height)
        else:
            cut = decode_cut(self.data, *self.head[1:4], channels=channels, divisor=divisor)
        if cut is not None:
            return Part(convert_pixels(cut, channels, bits), self.top, self.left, self.pixel_count)
        whole = PartFile(*self.whole)  # damaged: decoders differ in what they accept of it
        data, head = self.whole
        check_size(*head[1:3], max_pixels, problem="is damaged, and too large to decode whole")
        with reserve_for_decoding(
            data, head, max_pixels=max_pixels, channels=channels, divisor=divisor
        ):
            reserve_more(peak_bytes(data, head, channels=channels, divisor=divisor))
            return whole.decode(channels=channels, bits=bits, divisor=divisor)


def find_part(data: BytesLike, head: ImageHeader, window: Window, *, divisor: int = 1) -> PartFile:
    """Return the smallest file to decode for a window of an image."""
    return _find_part(data, head, window, divisor, _FIRST)[0]


def _find_part(
    data: BytesLike, head: ImageHeader, window: Window, divisor: int, interval: tuple[int, int]
) -> tuple[PartFile, tuple[int, int]]:
    """As `find_part`; also an interval to find that of windows further below sooner."""
    if head.format == "jpeg" and window[2:] != head[1:3]:
        cut = cut_jpeg(data, *window, divisor, interval)
        if cut is not None:
            file, top, left, height, width, interval = cut
            part = head._replace(height=height, width=width)
            return PartFile(file, part, top, left, (data, head)), interval
    bottom = window.top + window.height
    rows = find_rows(data, head, bottom if bottom <= _FEW_ROWS * head.height else head.height)
    return rows, interval


def find_rows(data: BytesLike, head: ImageHeader, row_count: int) -> PartFile:
    """Return the file to decode for the first rows of an image: part of a PNG, or all of it."""
    if head.format == "png" and row_count < head.height and not is_interlaced(as_view(data)):
        return PartFile(data, head._replace(height=row_count), whole=(data, head))
    return PartFile(data, head)


def find_parts(
    data: BytesLike, head: ImageHeader, windows: Sequence[Window], *, max_pixels: int = MAX_PIXELS
) -> list[tuple[PartFile, list[int]]]:
    """Return the files to decode for several windows of an image, and the windows that each has.

    One file has all windows, unless files for each of them are decoded faster, or it has more than
    `max_pixels` pixels. Files of single windows are sorted by their top.
    """
    union, numbers = covering(windows), [*range(len(windows))]
    is_alone = False
    if head.format == "jpeg" and len(windows) > 1:
        cost = sum(_cost(data, head, window) for window in windows)
        is_alone = cost < _cost(data, head, union)
    if not is_alone:
        file = find_part(data, head, union)
        if head.format != "jpeg" or len(windows) == 1 or file.pixel_count <= max_pixels:
            return [(file, numbers)]
    files, interval = [], _FIRST
    for number in sorted(numbers, key=lambda number: windows[number].top):
        file, interval = _find_part(data, head, windows[number], 1, interval)
        files.append((file, [number]))
    return files


def has_bands(data: BytesLike, head: ImageHeader, height: int) -> bool:
    """Whether bands of so many rows can be decoded alone, without the rows above them.

    That is so in a JPEG with tiles, or with restart intervals of few rows.
    """
    if head.format != "jpeg" or height >= head.height:
        return False
    last = Window(head.height - height, 0, height, head.width)
    # the lowest band of other JPEGs takes longer: the codes above it are skipped
    return 4 * _cost(data, head, last) < head.height * head.width


def _cost(data: BytesLike, head: ImageHeader, window: Window) -> int:
    """The time to decode a window of a JPEG: that of decoding so many pixels."""
    cost = cut_cost(data, *window)
    return head.height * head.width if cost is None else cost


def covering(windows: Sequence[Window]) -> Window:
    """Return the smallest window that contains all of some windows."""
    top = min(window.top for window in windows)
    left = min(window.left for window in windows)
    bottom = max(window.top + window.height for window in windows)
    right = max(window.left + window.width for window in windows)
    return Window(top, left, bottom - top, right - left)


def decode_part(
    data: BytesLike,
    head: ImageHeader,
    window: Window,
    *,
    channels: int = 3,
    bits: int | None = 8,
    divisor: int = 1,
    max_pixels: int = MAX_PIXELS,
) -> Part:
    """Decode a part of an image that contains a window.

    Args:
        head: its header, from `read_image_header`.
        window: in pixels of the image at full size.
        channels, bits, divisor: as in `decode_pixels`.
        max_pixels: the most pixels to decode, at full size.

    Returns:
        At least the pixels of the window, equal to those of the decoded image.
    """
    file = find_part(data, head, window, divisor=divisor)
    with reserve_for_decoding(
        file.data,
        file.head,
        max_pixels=max_pixels,
        channels=channels,
        divisor=divisor,
        extra=file.unpacked_bytes,
    ):
        return file.decode(channels=channels, bits=bits, divisor=divisor, max_pixels=max_pixels)
