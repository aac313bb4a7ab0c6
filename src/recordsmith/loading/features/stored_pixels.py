"""How do pixels lie in a record? As the bytes of a file, or as rows of numbers without a header.

The shape of the latter is not in their bytes: it is declared, with whole numbers or with the keys
of the record's features that hold them. Sizes are known, and checked, before anything is decoded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Column
from recordsmith.image.pixels import PictureHead, look_at_picture
from recordsmith.loading.features.contract import NUMBERS, Request, Rows
from recordsmith.loading.options import is_whole

RawType = Literal["uint8", "uint16"]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class RawShape:
    """Rows of numbers: their sides, each a number or the key of a feature, and their type."""

    sides: tuple[int | str, ...]
    dtype: RawType

    def requests(self) -> dict[str, Request]:
        """The columns that hold sides. As a Scalar's, which may read them too."""
        return {side: Request(NUMBERS, ()) for side in self.sides if isinstance(side, str)}

    def shapes(self, columns: Mapping[str, Column], row_count: int) -> list[Shape]:
        """The shape that each row claims to have; what it claims may be nonsense."""
        sides = [
            np.asarray(columns[side]).tolist() if isinstance(side, str) else [side] * row_count
            for side in self.sides
        ]
        return list(zip(*sides, strict=True))

    def check(self, shape: Shape, data: memoryview, key: str, max_pixels: int) -> None:
        """Raise CorruptDataError unless the bytes are numbers of this shape."""
        names = " x ".join(str(side) for side in self.sides)
        words = " x ".join(str(side) for side in shape)
        if not all(float(side).is_integer() and side > 0 for side in shape):
            raise _misshapen(f"{key!r} has the shape {names}, which is {words}: no sides of pixels")
        byte_count = math.prod(int(side) for side in shape) * np.dtype(self.dtype).itemsize
        if byte_count != len(data):
            raise _misshapen(
                f"{key!r} has {len(data):,} bytes; expected {byte_count:,} for {names} of "
                f"{self.dtype}, which is {words}"
            )
        if len(shape) == 3 and shape[2] > 4:
            raise _misshapen(f"{key!r} has {shape[2]} channels; expected 1 to 4")
        if shape[0] * shape[1] > max_pixels:
            raise _misshapen(
                f"{key!r} has {words} pixels, more than the {max_pixels:,} of max_pixels"
            )

    def view(self, shape: Shape, data: memoryview) -> npt.NDArray[Any]:
        """The numbers, (height, width, channels), in the memory of the data."""
        sides = tuple(int(side) for side in shape)
        numbers = np.frombuffer(data, np.dtype(self.dtype).newbyteorder("<"))
        return numbers.reshape(sides if len(sides) == 3 else (*sides, 1))


class StoredPixels:
    """The pictures, or the masks, of a batch as they lie in their records."""

    def __init__(self, rows: Rows, key: str, raw: RawShape | None, max_pixels: int) -> None:
        self._key = key
        self._raw = raw
        self._max_pixels = max_pixels
        self._data = list(cast("Any", rows.columns[key]).views())
        self._heads: list[PictureHead | None] = [None] * rows.count
        self._shapes = raw.shapes(rows.columns, rows.count) if raw else []

    def look(self, row: int) -> tuple[int, int]:
        """Height and width of one, without decoding it.

        Raises:
            CorruptDataError: it is none, or larger than is allowed.
        """
        if self._raw is None:
            head = self._heads[row] = look_at_picture(self._data[row], max_pixels=self._max_pixels)
            return head.height, head.width
        shape = self._shapes[row]
        self._raw.check(shape, self._data[row], self._key, self._max_pixels)
        return int(shape[0]), int(shape[1])

    def numbers(self, row: int) -> npt.NDArray[Any] | None:
        """The numbers of one that was looked at, (height, width, channels); None of a file."""
        return None if self._raw is None else self._raw.view(self._shapes[row], self._data[row])

    def file(self, row: int) -> tuple[memoryview, PictureHead]:
        """The file of one that was looked at, and what its header says."""
        head = self._heads[row]
        assert head is not None
        return self._data[row], head


def raw_shape(sides: object, dtype: object, channel_words: str) -> RawShape | None:
    """What a feature's `raw_shape` and `raw_dtype` say; None without them.

    Raises:
        OptionError: they are wrong, or contradict each other.
    """
    if dtype not in ("uint8", "uint16"):
        raise OptionError(f"raw_dtype is {dtype!r}; expected 'uint8' or 'uint16'")
    if sides is None:
        if dtype != "uint8":
            raise OptionError(
                f"raw_dtype is {dtype!r}, but there is no raw_shape: files say themselves what "
                "their pixels are"
            )
        return None
    is_shape = (
        isinstance(sides, (tuple, list))
        and len(sides) in (2, 3)
        and all(side if isinstance(side, str) else is_whole(side) and side > 0 for side in sides)
    )
    if not is_shape:
        raise OptionError(
            f"raw_shape is {sides!r}; expected height, width{channel_words}, each a whole number "
            "or the key of a feature, such as ('height', 'width', 3)"
        )
    return RawShape(tuple(sides), dtype)  # type: ignore[arg-type]


def _misshapen(detail: str) -> CorruptDataError:
    return CorruptDataError(Defect.FEATURE_SHAPE, detail)
