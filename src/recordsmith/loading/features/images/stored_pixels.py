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
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

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
from recordsmith.loading.features.feature import NUMBERS, ColumnRequest, ImageCount
from recordsmith.loading.features.numbers import as_dtype, check_room
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
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

    def list_request(self, kind: Kind, count: ImageCount) -> ColumnRequest:
        """Return the request of a list with the pixels of one image, or of `count` images.

        Raises:
            OptionError: it has the pixels of any number of images.
        """
        if isinstance(count, str):
            raise OptionError(
                f"{option('count', count)} needs images of byte strings",
                option="count",
                value=count,
                remedy=f"Pass a number as {option('count')}.",
            )
        if self.requests():
            return ColumnRequest((kind,), "ragged")
        sides = tuple(int(side) for side in self.sides)
        return ColumnRequest((kind,), sides if count is None else (count, *sides))

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
        names = " x ".join(str(side) for side in self.sides)
        sizes = " x ".join(str(side) for side in shape)
        if not all(float(side).is_integer() and side > 0 for side in shape):
            raise _shape_error(
                key, f"{key!r} has an invalid shape", f"{names} = {sizes}", "positive integers"
            )
        length, unit, remedy = math.prod(int(side) for side in shape), "values", ""
        if isinstance(data, memoryview):
            unit, remedy = "bytes", self._suggest(length, len(data), key)
            length *= np.dtype(self.dtype).itemsize
        if length != len(data):
            raise _shape_error(
                key,
                f"{key!r} has the wrong size",
                f"{len(data):,} {unit}",
                f"{length:,} for {names} = {sizes} of {self.dtype}",
                remedy=remedy,
            )
        channels = int(shape[2]) if len(shape) == 3 else 1
        if channels > 4 if self.channels is None else channels != self.channels:
            raise _shape_error(
                key,
                f"{key!r} has the wrong number of channels",
                str(channels),
                str(self.channels or "1 to 4"),
            )
        if max_pixels is not None and shape[0] * shape[1] > max_pixels:
            raise _shape_error(
                key,
                f"{key!r} has too many pixels",
                sizes,
                f"at most {max_pixels:,}",
                remedy=f"Pass a larger {option('max_pixels')} if the shape is right.",
            )

    def _suggest(self, value_count: int, byte_count: int, key: str) -> str:
        """What to type if the bytes are pixels of another type; empty if they are not."""
        fitting = types_of_size(value_count, byte_count)
        if not fitting or self.dtype in fitting:
            return ""
        if "uint16" in fitting:
            return f"Pass {option('raw_dtype', 'uint16')} if pixels have 16 bits."
        return _other_pixels(key, fitting[0])

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
        self,
        data: list[Data],
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
    if length is not None and count != "padded":
        raise OptionError(
            f"{option('length')} needs {option('count', 'padded')}",
            option="length",
            value=length,
            remedy=f"Pass {option('count', 'padded')}.",
        )
    if count is None:
        return
    is_list = isinstance(count, str)
    if is_list and count not in ("ragged", "padded"):
        raise OptionError(
            option="count", value=count, expected="a number of images, 'ragged' or 'padded'"
        )
    if (
        (is_list or count_number("count", count, _LARGEST_IMAGE_COUNT) > 1)
        and raw is not None
        and raw.requests()
    ):
        raise OptionError(
            f"{option('raw_shape')} has the keys of features, so a record has one image",
            option="count",
            value=count,
            remedy=f"Leave {option('count')} out, or pass numbers as {option('raw_shape')}.",
        )


class StoredImages(NamedTuple):
    """The data of all images of a column; row i has data[row_splits[i]:row_splits[i + 1]]."""

    data: list[Data]
    row_splits: Int64Array

    @classmethod
    def of(cls, column: Any, raw: RawShape | None) -> StoredImages:
        """Return the images of a column: byte strings, or lists of numbers with the pixels."""
        row_count = len(column)
        if isinstance(column, RaggedArray):
            splits = column.row_splits
            if isinstance(column.values, BytesArray):
                return cls(list(column.values.views()), splits)
            numbers = [column.values[start:stop] for start, stop in pairwise(splits.tolist())]
            return cls(numbers, np.arange(row_count + 1))
        if isinstance(column, BytesArray):
            data: list[Data] = list(column.views())
        else:
            assert raw is not None
            data = list(column.reshape(-1, math.prod(raw.sides)))
        return cls(data, np.arange(row_count + 1) * (len(data) // max(1, row_count)))


def _other_pixels(key: str, dtype: str) -> str:
    if dtype in get_args(RawType):
        shape = "(height, width, channels)"
        return f"Read them with rs.Image({key!r}, raw_shape={shape}, raw_dtype={dtype!r})."
    return (
        f"Read {dtype} pixels as numbers: rs.Raw({key!r}, (height, width, channels), {dtype!r}) "
        f"for images of one size, or rs.Bytes({key!r}) and np.frombuffer for others."
    )


def raw_shape(
    sides: object, dtype: object, channel_words: str, key: str, *, dtypes: Any = LevelType
) -> RawShape | None:
    """Check the `raw_shape` and `raw_dtype` of the feature `key`; return None without them."""
    if dtype not in get_args(dtypes):
        raise OptionError(
            option="raw_dtype",
            value=dtype,
            expected=" or ".join(map(repr, get_args(dtypes))),
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
