"""Decode only the part of an image that is used.

A smaller JPEG is cut out of a baseline JPEG: the restart intervals that the window touches where
the image has tiles (each row of MCUs consists of whole intervals), otherwise the rows down to the
last one needed. Its pixels are those of the whole image, bit for bit. Other images are decoded
whole.

Damage in the decoded part is found as when the whole image is decoded, which then happens. Damage
elsewhere goes unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recordsmith.buffers import BytesLike
from recordsmith.image.decoding.exact import ExactPixels
from recordsmith.image.decoding.jpeg_pixels import decode_cut
from recordsmith.image.decoding.memory import peak_bytes, reserve_for_decoding, reserve_more
from recordsmith.image.decoding.pixels import ImageHead, convert_pixels, decode_pixels
from recordsmith.image.kernel.cutting import cut_jpeg
from recordsmith.image.storing.image_options import MAX_PIXELS


class Window(NamedTuple):
    """A rectangle in the pixels of an image."""

    top: int
    left: int
    height: int
    width: int


class Part(NamedTuple):
    """Decoded pixels of an image, and where they begin in it.

    Attributes:
        pixels: (height, width, channels).
        top, left: in pixels of the image at full size, multiples of 8.
    """

    pixels: ExactPixels
    top: int
    left: int


@dataclass(frozen=True, slots=True)
class PartFile:
    """An image file that has all pixels of a window: the image, or a smaller one cut out of it.

    Attributes:
        data, head: the file and its header.
        top, left: where it begins in the image.
        whole: the image that it is cut out of; None for the image itself.
    """

    data: BytesLike
    head: ImageHead
    top: int = 0
    left: int = 0
    whole: tuple[BytesLike, ImageHead] | None = None

    def decode(
        self,
        *,
        channels: int = 3,
        bits: int | None = 8,
        divisor: int = 1,
        max_pixels: int = MAX_PIXELS,
    ) -> Part:
        """Decode the file; see `decode_part`."""
        if self.whole is None:
            pixels = decode_pixels(
                self.data, self.head, channels=channels, bits=bits, divisor=divisor
            )
            return Part(pixels, self.top, self.left)
        cut = decode_cut(self.data, *self.head[1:], channels=channels, divisor=divisor)
        if cut is not None:
            return Part(convert_pixels(cut, channels, bits), self.top, self.left)
        data, head = self.whole  # damaged: decoders differ in what they accept of whole images
        with reserve_for_decoding(
            data, *head[:3], max_pixels=max_pixels, channels=channels, divisor=divisor
        ):
            pixel_count = head.height * head.width
            reserve_more(
                peak_bytes(data, head.format, pixel_count, channels=channels, divisor=divisor)
            )
            pixels = decode_pixels(data, head, channels=channels, bits=bits, divisor=divisor)
        return Part(pixels, 0, 0)


def find_part(data: BytesLike, head: ImageHead, window: Window, *, divisor: int = 1) -> PartFile:
    """Return the smallest file to decode for a window of an image.

    Args:
        head: the header of the image, from `read_image_head`.
        divisor: the file will be decoded at 1/`divisor` of its size.
    """
    if head.format == "jpeg" and window[2:] != head[1:3]:
        cut = cut_jpeg(data, *window, divisor)
        if cut is not None:
            file, top, left, height, width = cut
            part = head._replace(height=height, width=width)
            return PartFile(file, part, top, left, (data, head))
    return PartFile(data, head)


def decode_part(
    data: BytesLike,
    head: ImageHead,
    window: Window,
    *,
    channels: int = 3,
    bits: int | None = 8,
    divisor: int = 1,
    max_pixels: int = MAX_PIXELS,
) -> Part:
    """Decode a part of an image that contains a window.

    Args:
        head: its header, from `read_image_head`.
        window: in pixels of the image at full size.
        channels, bits, divisor: as of `decode_pixels`.
        max_pixels: the most pixels to decode, at full size.

    Returns:
        At least the pixels of the window, equal to those of the decoded image.

    Raises:
        CorruptDataError: unreadable-image: the part is damaged, or too large.
    """
    file = find_part(data, head, window, divisor=divisor)
    with reserve_for_decoding(
        file.data, *file.head[:3], max_pixels=max_pixels, channels=channels, divisor=divisor
    ):
        return file.decode(channels=channels, bits=bits, divisor=divisor, max_pixels=max_pixels)
