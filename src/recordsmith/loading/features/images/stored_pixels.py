"""Pixels as records store them: an encoded file, or a raw array.

A raw array is a byte string, or a list of numbers. Its shape is declared, with integers or with the
keys of features that hold them.
Sizes are checked before anything is decoded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, Kind, RaggedArray
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
from recordsmith.loading.features.numbers import as_dtype, check_room
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_option
from recordsmith.support.number_options import count_number, is_whole

_LARGEST_IMAGE_COUNT = 65_536
_SAMPLED_BYTES = 16

LevelType = Literal["uint8", "uint16"]
"""Of pixels from black to white: from 0 to the largest number."""
RawType = Literal["uint8", "uint16", "int16", "float16", "float32", "float64"]
"""Of raw pixels; those that are not levels are not scaled."""
Shape = tuple[int, ...]
Data: TypeAlias = memoryview | npt.NDArray[Any]


@dataclass(frozen=True)
class RawShape:
    """A raw array: its sides, each a number or the key of a feature, and its dtype.

    channels: how many it must have; None for 1 to 4, which are converted.
    """

    sides: tuple[int | str, ...]
    dtype: RawType
    channels: int | None = None

    @property
    def is_scaled(self) -> bool:
        """Whether pixels are levels, which float32 has from 0 to 1."""
        return self.dtype in get_args(LevelType)

    @property
    def list_kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of lists of numbers that can be pixels of this type."""
        return ("int64",) if self.is_scaled else NUMBERS

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

    def check(self, shape: Shape, data: Data, key: str, max_pixels: int | None) -> None:
        """Raise CorruptDataError unless the data are an array of this shape."""

        def error(problem: str, found: str, expected: str, remedy: str = "") -> DataError:
            return CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"{key!r} has {problem}",
                found=found,
                expected=expected,
                remedy=remedy,
                feature=key,
            )

        names, sizes = (" x ".join(map(str, sides)) for sides in (self.sides, shape))
        if not all(float(side).is_integer() and side > 0 for side in shape):
            raise error("an invalid shape", f"{names} = {sizes}", "positive integers")
        length, unit, remedy = math.prod(int(side) for side in shape), "values", ""
        if isinstance(data, memoryview):
            fitting = types_of_size(length, len(data))
            unit, length = "bytes", length * np.dtype(self.dtype).itemsize
            if fitting and self.dtype not in fitting:
                remedy = f"Pass {option('raw_dtype', fitting[0])} if pixels are such numbers."
        if length != len(data):
            expected = f"{length:,} for {names} = {sizes} of {self.dtype}"
            raise error("the wrong size", f"{len(data):,} {unit}", expected, remedy)
        channels = int(shape[2]) if len(shape) == 3 else 1
        if channels > 4 if self.channels is None else channels != self.channels:
            expected = str(self.channels or "1 to 4")
            raise error("the wrong number of channels", str(channels), expected)
        if max_pixels is not None and shape[0] * shape[1] > max_pixels:
            remedy = f"Pass a larger {option('max_pixels')} if the shape is right."
            raise error("too many pixels", sizes, f"at most {max_pixels:,}", remedy)

    def view(self, shape: Shape, data: Data) -> npt.NDArray[Any]:
        """Return a read-only view of the data, (height, width, channels)."""
        sides = tuple(int(side) for side in shape)
        if isinstance(data, memoryview):
            data = np.frombuffer(data.toreadonly(), np.dtype(self.dtype).newbyteorder("<"))
        numbers = data
        return numbers.reshape(sides if len(sides) == 3 else (*sides, 1))


class StoredPixels:
    """The images or masks of a batch as records store them."""

    def __init__(
        self, feature: Any, columns: Mapping[str, Column], data: list[Data], noun: str = "image"
    ) -> None:
        """`feature`: an Image or Mask.

        data: of each image.
        noun: what errors call them.
        """
        self._key, self._max_pixels = feature.key, feature.max_pixels
        self._subject = f"the {noun} {feature.key!r}"
        self._raw = raw = feature.stored()
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
            data: Any = self._data[row]
            head = self._heads[row] = read_image_header(data)
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

    def pixels(self, part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a part of `numbers` as levels, or as float32.

        Raises:
            CorruptDataError: a number of a list is not of the declared type.
        """
        assert self._raw is not None
        if not part.flags.aligned:  # unaligned arrays break C code
            part = part.copy()
        dtype = self._raw.dtype if self._raw.is_scaled else "float32"
        return as_dtype(self._key, part, dtype, name="raw_dtype")  # type: ignore[no-any-return]

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
        head, data = self._heads[row], self._data[row]
        assert head is not None
        assert isinstance(data, memoryview)
        return data, head


def check_image_count(feature: Any, raw: RawShape | None) -> None:
    """Check how many images an Image or Mask has in each record."""
    count, length = feature.count, feature.length
    check_room(length, feature.too_long)
    expected = f"None without {option('count', 'padded')}"
    check_option(length is None or count == "padded", "length", length, expected)
    if count is None:
        return
    is_list = isinstance(count, str)
    is_word = not is_list or count in ("ragged", "padded")
    expected = "a number of images, 'ragged' or 'padded'"
    check_option(is_word, "count", count, expected)
    is_one = not is_list and count_number("count", count, _LARGEST_IMAGE_COUNT) == 1
    expected = f"None where {option('raw_shape')} has the keys of features"
    check_option(is_one or raw is None or not raw.requests(), "count", count, expected)


def image_requests(feature: Any, kind: Kind = "bytes") -> dict[str, ColumnRequest]:
    """Return what an Image or Mask reads: byte strings, or lists of the numbers of its pixels.

    Raises:
        OptionError: a list has the pixels of any number of images.
    """
    raw, count = feature.stored(), feature.count
    sides = raw.requests() if raw else {}
    shape: Any = "ragged"
    if isinstance(count, str):
        if kind != "bytes":
            raise OptionError(option="count", value=count, expected="a number for lists of numbers")
    elif kind == "bytes" or not sides:
        shape = () if count is None else (count,)
        shape += () if kind == "bytes" else tuple(map(int, raw.sides))
    return {feature.key: ColumnRequest((kind,), shape), **sides}


def stored_images(column: Any, raw: RawShape | None) -> tuple[list[Data], Int64Array]:
    """Return the data of all images of a column, and the row splits that divide them."""
    row_splits = np.arange(len(column) + 1)
    if isinstance(column, RaggedArray):
        if isinstance(column.values, BytesArray):
            return list(column.values.views()), column.row_splits
        return list(column), row_splits  # the numbers of one image
    if isinstance(column, BytesArray):
        data: list[Data] = list(column.views())
    else:
        assert raw is not None
        data = list(column.reshape(-1, math.prod(raw.sides)))
    return data, row_splits * (len(data) // max(1, len(column)))


def raw_shape(
    sides: object, dtype: object, channel_words: str, key: str, *, dtypes: Any = LevelType
) -> RawShape | None:
    """Check the `raw_shape` and `raw_dtype` of the feature `key`; return None without them."""
    allowed = get_args(dtypes)
    remedy = f"Read {dtype} numbers with rs.Raw({key!r}, shape, {dtype!r})."
    remedy = remedy if is_number_type(dtype) else ""
    check_option(dtype in allowed, "raw_dtype", dtype, " or ".join(map(repr, allowed)), remedy)
    if sides is None:
        expected = f"'uint8' without {option('raw_shape')}"
        check_option(dtype == "uint8", "raw_dtype", dtype, expected)
        return None
    is_shape = (
        isinstance(sides, (tuple, list))
        and len(sides) in (2, 3)
        and all(side if isinstance(side, str) else is_whole(side) and side > 0 for side in sides)
    )
    expected = f"height, width{channel_words}, each an integer or the key of a feature, "
    check_option(is_shape, "raw_shape", sides, expected + "such as ('height', 'width', 3)")
    return RawShape(tuple(sides), dtype)  # type: ignore[arg-type]
