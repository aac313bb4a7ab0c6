"""Pixels as records store them: an encoded file, or a raw array.

The shape of a raw array is declared, with integers or with the keys of features that hold them.
Sizes are checked before anything is decoded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Column
from recordsmith.image import (
    ImageHeader,
    PartFile,
    Window,
    check_size,
    find_part,
    read_image_header,
    reserve_for_decoding,
)
from recordsmith.loading.features.bytes import is_number_type, types_of_size
from recordsmith.loading.features.feature import NUMBERS, ColumnRequest
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import count_number, is_whole

_LARGEST_IMAGE_COUNT = 65_536
_SAMPLED_BYTES = 16

RawType = Literal["uint8", "uint16"]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class RawShape:
    """A raw array: its sides, each a number or the key of a feature, and its dtype."""

    sides: tuple[int | str, ...]
    dtype: RawType

    def requests(self) -> dict[str, ColumnRequest]:
        """Return the columns that hold sides; compatible with a Scalar of the same key."""
        return {side: ColumnRequest(NUMBERS, ()) for side in self.sides if isinstance(side, str)}

    def shapes(self, columns: Mapping[str, Column], row_count: int) -> list[Shape]:
        """Return the declared shape of each row, which is not checked."""
        sides = [
            np.asarray(columns[side]).tolist() if isinstance(side, str) else [side] * row_count
            for side in self.sides
        ]
        return list(zip(*sides, strict=True))

    def check(self, shape: Shape, data: memoryview, key: str, max_pixels: int | None) -> None:
        """Raise CorruptDataError unless the bytes are an array of this shape."""
        names = " x ".join(str(side) for side in self.sides)
        sizes = " x ".join(str(side) for side in shape)
        if not all(float(side).is_integer() and side > 0 for side in shape):
            raise _shape_error(
                key, f"{key!r} has an invalid shape", f"{names} = {sizes}", "positive integers"
            )
        byte_count = math.prod(int(side) for side in shape) * np.dtype(self.dtype).itemsize
        if byte_count != len(data):
            raise _shape_error(
                key,
                f"{key!r} has the wrong size",
                f"{len(data):,} bytes",
                f"{byte_count:,} for {names} = {sizes} of {self.dtype}",
                remedy=self._suggest(shape, len(data), key),
            )
        if len(shape) == 3 and shape[2] > 4:
            raise _shape_error(
                key, f"{key!r} has the wrong number of channels", str(shape[2]), "1 to 4"
            )
        if max_pixels is not None and shape[0] * shape[1] > max_pixels:
            raise _shape_error(
                key,
                f"{key!r} has too many pixels",
                sizes,
                f"at most {max_pixels:,}",
                remedy=f"Pass a larger {option('max_pixels')} if the shape is right.",
            )

    def _suggest(self, shape: Shape, byte_count: int, key: str) -> str:
        """What to type if the bytes are pixels of another type; empty if they are not."""
        fitting = types_of_size(math.prod(int(side) for side in shape), byte_count)
        if "uint16" in fitting:
            return f"Pass {option('raw_dtype', 'uint16')} if pixels have 16 bits."
        return _other_pixels(key, fitting[0]) if fitting and fitting[0] != "uint8" else ""

    def view(self, shape: Shape, data: memoryview) -> npt.NDArray[Any]:
        """Return a read-only view of the data, (height, width, channels)."""
        sides = tuple(int(side) for side in shape)
        numbers = np.frombuffer(data.toreadonly(), np.dtype(self.dtype).newbyteorder("<"))
        return numbers.reshape(sides if len(sides) == 3 else (*sides, 1))


class StoredPixels:
    """The images or masks of a batch as records store them."""

    def __init__(
        self,
        data: list[memoryview],
        columns: Mapping[str, Column],
        key: str,
        raw: RawShape | None,
        max_pixels: int,
        *,
        noun: str = "image",
    ) -> None:
        """`data`: their bytes.

        noun: what errors call them.
        """
        self._key = key
        self._subject = f"the {noun} {key!r}"
        self._raw = raw
        self._max_pixels = max_pixels
        self._data = data
        self._heads: list[ImageHeader | None] = [None] * len(self._data)
        self._shapes = raw.shapes(columns, len(self._data)) if raw else []

    def is_empty(self, row: int) -> bool:
        """Whether an image has no bytes."""
        return not len(self._data[row])

    def sample(self, row: int) -> tuple[int, bytes, bytes]:
        """Return the length and a few bytes of an image; those of equal images are equal."""
        data = self._data[row]
        middle = len(data) // 2
        return (
            len(data),
            bytes(data[middle : middle + _SAMPLED_BYTES]),
            bytes(data[-_SAMPLED_BYTES:]),
        )

    def are_equal(self, row: int, other: int) -> bool:
        """Whether two images have the same bytes."""
        return bytes(self._data[row]) == bytes(self._data[other])

    def look(self, row: int, *, is_cropped: bool = False) -> tuple[int, int]:
        """Return height and width of a row without decoding it."""
        if self._raw is None:
            head = self._heads[row] = read_image_header(self._data[row])
            if not is_cropped:
                check_size(head.height, head.width, self._max_pixels, subject=self._subject)
            return head.height, head.width
        shape = self._shapes[row]
        limit = None if is_cropped else self._max_pixels
        self._raw.check(shape, self._data[row], self._key, limit)
        return int(shape[0]), int(shape[1])

    def numbers(self, row: int) -> npt.NDArray[Any] | None:
        """Return a raw array after `look`, (height, width, channels); None for a file."""
        return None if self._raw is None else self._raw.view(self._shapes[row], self._data[row])

    def part(self, row: int, window: Window, divisor: int = 1) -> PartFile:
        """Return the file to decode for a window of an image, after `look`."""
        return find_part(*self.file(row), window, divisor=divisor)

    def room(
        self, part: PartFile, *, channels: int, divisor: int = 1, extra: int = 0
    ) -> AbstractContextManager[None]:
        """Reserve the memory to decode a file; see `reserve_for_decoding`."""
        return reserve_for_decoding(
            part.data,
            part.head,
            max_pixels=self._max_pixels,
            channels=channels,
            divisor=divisor,
            extra=extra + part.unpacked_bytes,
            subject=self._subject,
        )

    def file(self, row: int) -> tuple[memoryview, ImageHeader]:
        """Return the bytes and the header of a file after `look`."""
        head = self._heads[row]
        assert head is not None
        return self._data[row], head


def check_image_count(count: object, raw: RawShape | None) -> None:
    """Check how many images a feature has in each record."""
    if count is None:
        return
    is_list = count in ("ragged", "padded")
    if not is_list and isinstance(count, str):
        check_word("count", count, ("ragged", "padded"))
    is_list = is_list or count_number("count", count, _LARGEST_IMAGE_COUNT) > 1
    if is_list and raw is not None and raw.requests():
        raise OptionError(
            f"{option('raw_shape')} has the keys of features, so a record has one image",
            option="count",
            value=count,
            remedy=f"Leave {option('count')} out, or pass numbers as {option('raw_shape')}.",
        )


def _other_pixels(key: str, dtype: str) -> str:
    return (
        f"Read {dtype} pixels as numbers: rs.Raw({key!r}, (height, width, channels), {dtype!r}) "
        f"for images of one size, or rs.Bytes({key!r}) and np.frombuffer for others."
    )


def raw_shape(sides: object, dtype: object, channel_words: str, key: str) -> RawShape | None:
    """Check the `raw_shape` and `raw_dtype` of the feature `key`; return None without them."""
    if dtype not in ("uint8", "uint16"):
        raise OptionError(
            option="raw_dtype",
            value=dtype,
            expected="'uint8' or 'uint16'",
            remedy=_other_pixels(key, dtype) if is_number_type(dtype) else "",
        )
    if sides is None:
        if dtype != "uint8":
            raise OptionError(
                f"{option('raw_dtype', dtype)} needs {option('raw_shape')}",
                option="raw_dtype",
                value=dtype,
                remedy=f"Pass {option('raw_shape')}, or leave {option('raw_dtype')} out.",
            )
        return None
    is_shape = (
        isinstance(sides, (tuple, list))
        and len(sides) in (2, 3)
        and all(side if isinstance(side, str) else is_whole(side) and side > 0 for side in sides)
    )
    if not is_shape:
        raise OptionError(
            option="raw_shape",
            value=sides,
            expected=f"height, width{channel_words}, each an integer or the key of a feature, "
            "such as ('height', 'width', 3)",
        )
    return RawShape(tuple(sides), dtype)  # type: ignore[arg-type]


def _shape_error(
    key: str, problem: str, found: str, expected: str, *, remedy: str = ""
) -> DataError:
    return CorruptDataError(
        Defect.FEATURE_SHAPE, problem, found=found, expected=expected, remedy=remedy, feature=key
    )
