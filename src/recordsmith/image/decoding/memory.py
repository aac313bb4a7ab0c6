"""Limit the memory of image decoding: per image by `max_pixels`, for all threads to 1 GiB.

The peak is estimated from the header before decoding: the decoder's memory and all copies. An image
that exceeds its limit raises CorruptDataError. A thread waits while the images of other threads
leave too little memory. Images of up to a megapixel are not counted and never wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.image.formats.header import ImageHeader, unreadable
from recordsmith.image.formats.registry import named_format
from recordsmith.image.image_options import HIGHEST_MAX_PIXELS, MAX_PIXELS
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import option
from recordsmith.support.threads import renew_in_children

MAX_BYTES = 1 << 30
"""The limit for all threads of a process together."""

BYTES_PER_PIXEL = 4
"""Multiplied by `max_pixels`, the limit for one image."""

UNCOUNTED_PIXELS = 1 << 20
"""Images of at most this size are not counted; they take a few megabytes per thread."""

_STRIP = 1 << 17  # pixels of larger images to convert at once


class Memory:
    """A number of bytes that threads share, first come, first served."""

    def __init__(self, byte_count: int) -> None:
        self._byte_count = byte_count
        self.renew_lock()

    def renew_lock(self) -> None:
        """Free everything: in a forked process, no other thread holds memory."""
        self._changed = threading.Condition()
        self._free = self._byte_count
        self._queue: deque[object] = deque()

    def take(self, byte_count: int) -> int:
        """Wait until bytes are free, and take them.

        Returns:
            How many were taken: `byte_count`, or all if it is more than all.
        """
        byte_count = min(byte_count, self._byte_count)
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                self._changed.wait_for(
                    lambda: self._queue[0] is ticket and self._free >= byte_count
                )
                self._free -= byte_count
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
        return byte_count

    def give_back(self, byte_count: int) -> None:
        """Free what `take` returned."""
        with self._changed:
            self._free = min(
                self._free + byte_count, self._byte_count
            )  # may be free already after a fork
            self._changed.notify_all()


_memory = Memory(MAX_BYTES)
_thread = threading.local()  # `reservation`: the _Reservation of this thread
_NOTHING_HELD: AbstractContextManager[None] = nullcontext()

renew_in_children(_memory)


def reserve_for_decoding(
    data: BytesLike,
    header: ImageHeader,
    *,
    max_pixels: int | None,
    channels: int = 3,
    divisor: int = 1,
    extra: int = 0,
    subject: str | None = None,
) -> AbstractContextManager[None]:
    """Reserve the memory for decoding an image and using its pixels, for the duration of the block.

    A thread that already holds memory for the image reserves nothing more, to avoid deadlocks.

    Args:
        max_pixels: the limit of pixels; None for the default, where users have no option for it.
        channels: the number of channels after decoding.
        divisor: for JPEG, decode at 1/`divisor` of its size.
        extra: bytes per pixel that are needed after decoding. They do not count for the limit of
            one image.
        subject: as in `check_size`.
    """
    pixel_count = header.height * header.width
    most = MAX_PIXELS if max_pixels is None else max_pixels
    if pixel_count > most:
        check_size(header.height, header.width, most, subject=subject, is_fixed=max_pixels is None)
    if pixel_count <= UNCOUNTED_PIXELS:
        return _NOTHING_HELD
    peak = peak_bytes(data, header, channels=channels, divisor=divisor)
    limit = BYTES_PER_PIXEL * max(most, MAX_PIXELS)
    _check_peak(peak, limit, subject, is_fixed=max_pixels is None)
    if getattr(_thread, "reservation", None) is not None:
        return _NOTHING_HELD
    return _Reservation(peak + extra * pixel_count, limit)


def reserve_memory(byte_count: int) -> AbstractContextManager[None]:
    """Reserve memory for another operation on a large image, for the duration of the block.

    Small amounts are not counted. A thread that already holds memory reserves nothing more.
    """
    if (
        byte_count <= BYTES_PER_PIXEL * UNCOUNTED_PIXELS
        or getattr(_thread, "reservation", None) is not None
    ):
        return _NOTHING_HELD
    return _Reservation(byte_count, MAX_BYTES)


def reserve_more(byte_count: int) -> None:
    """Increase the memory that this thread holds, before another decoder tries the same image.

    Call it only while no pixels are in memory: other threads may take the memory in between.
    """
    reservation = getattr(_thread, "reservation", None)
    if reservation is not None:
        reservation.exchange(byte_count)


def check_size(
    height: int,
    width: int,
    max_pixels: int,
    *,
    subject: str | None = None,
    problem: str = "is too large to decode",
    is_fixed: bool = False,
) -> None:
    """Raise CorruptDataError if an image has more pixels than `max_pixels`.

    Args:
        subject: the image in the error, such as "the mask 'm'", if it has its own `max_pixels`.
        problem: what the error says about it.
        is_fixed: users have no option for the limit.
    """
    if height * width > max_pixels:
        remedy = "" if is_fixed else f"If you trust the file, increase {_limit_of(subject)}."
        if height * width > HIGHEST_MAX_PIXELS:
            remedy = (
                "Make the image smaller. Or divide a JPEG into tiles with `recordsmith reshard "
                "PATH OUT --tiles`, so that crops decode only a part of it."
            )
        raise unreadable(
            f"{subject or 'the image'} {problem}",
            found=f"{width:,} x {height:,} pixels",
            expected=f"at most {max_pixels:,}",
            remedy=remedy,
        )


def _limit_of(subject: str | None) -> str:
    return option("max_pixels") + (f" of {subject}" if subject else "")


class _Reservation:
    """The memory that one thread holds for one image."""

    def __init__(self, byte_count: int, limit: int) -> None:
        self._byte_count = byte_count
        self._limit = limit
        self._held = 0

    def __enter__(self) -> None:
        self._held = _memory.take(self._byte_count)
        _thread.reservation = self

    def __exit__(self, *error: object) -> None:
        _thread.reservation = None
        _memory.give_back(self._held)

    def exchange(self, byte_count: int) -> None:
        _check_peak(byte_count, self._limit)
        if byte_count <= self._held:
            return
        held, self._held = self._held, 0
        _memory.give_back(held)
        self._held = _memory.take(byte_count)


def _check_peak(
    peak: int, limit: int, subject: str | None = None, *, is_fixed: bool = False
) -> None:
    if peak > limit:
        bytes_allowed = f"which allows {BYTES_PER_PIXEL} bytes for each pixel"
        increase = "" if is_fixed else f", or increase {_limit_of(subject)}, {bytes_allowed}"
        raise unreadable(
            f"{subject or 'the image'} needs too much memory to decode",
            found=f"about {peak >> 20:,} MiB",
            expected=f"at most {limit >> 20:,} MiB",
            remedy=f"Resize the image{increase}.",
        )


def peak_bytes(data: BytesLike, header: ImageHeader, *, channels: int = 3, divisor: int = 1) -> int:
    """Estimate the peak memory of decoding in bytes, without the encoded image itself."""
    peak, pixel_count = named_format(header.format).peak, header.height * header.width
    if not isinstance(peak, int):
        return int(peak(as_view(data), channels, divisor) * pixel_count)
    return (max(peak, 7) if channels == 4 else peak) * pixel_count  # alpha is added to a copy


def convert_rows(
    pixels: npt.NDArray[Any], convert: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Convert pixels, in strips of rows if the image is large.

    Args:
        pixels: (height, width, …), contiguous. Overwritten if the result is not larger, to avoid a
            second copy.
        convert: converts some rows; each row is independent of the others.
    """
    height, width = pixels.shape[:2]
    step = max(1, _STRIP // max(1, width))
    if height <= step or height * width <= UNCOUNTED_PIXELS:
        return convert(pixels)
    first = convert(pixels[:step])
    row_bytes = first.nbytes // step
    shape = (height, *first.shape[1:])
    if row_bytes <= pixels.nbytes // height and pixels.flags.writeable:
        flat = pixels.reshape(-1).view(np.uint8)[: height * row_bytes]
        out = flat.view(first.dtype).reshape(shape)
    else:
        out = np.empty(shape, first.dtype)
    out[:step] = first
    for top in range(step, height, step):
        out[top : top + step] = convert(pixels[top : top + step])
    return out


def image_to_array(image: Any, convert: Callable[[Any], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Convert a Pillow image to an array, in strips of rows if it is large.

    Pillow makes several copies when it converts and exports; strips keep them small.
    """
    step = max(1, _STRIP // max(1, image.width))
    if image.height <= step or image.height * image.width <= UNCOUNTED_PIXELS:
        return convert(image)
    out: Any = None
    for top in range(0, image.height, step):
        bottom = min(top + step, image.height)
        part = convert(image.crop((0, top, image.width, bottom)))
        if out is None:
            out = np.empty((image.height, *part.shape[1:]), part.dtype)
        out[top:bottom] = part
    return out  # type: ignore[no-any-return]
