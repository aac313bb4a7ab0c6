"""Masks: the class number of each pixel, moved exactly as the picture that they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Column
from recordsmith.image import decode_mask
from recordsmith.image.fit import Fit, FitKind, Placement
from recordsmith.image.options import MAX_PIXELS, MOST_PIXELS, check_word
from recordsmith.image.placing import lay_numbers_in_frame
from recordsmith.loading.features.contract import (
    Feature,
    Filling,
    PictureFilling,
    PixelFeature,
    Request,
    Rows,
)
from recordsmith.loading.features.following import check_leader, leading, pictures_in
from recordsmith.loading.features.picture_frames import checked_size, inner_sizes, place_all
from recordsmith.loading.features.pictures import Image
from recordsmith.loading.features.stored_pixels import RawShape, StoredPixels, raw_shape
from recordsmith.loading.options import whole_number

MaskType = Literal["uint8", "uint16", "int32", "int64"]


@dataclass(frozen=True)
class Mask(PixelFeature):
    """The class numbers of pixels: (batch, height, width), as they are stored, never their colours.

    A mask is cut, resized, padded and turned over with its picture, by the nearest neighbour, so
    that no number appears that it has not. Numbers are indices of a palette, or grey levels.

    key: the feature's name in the records.
    of: the name of the Image that it follows; if not said, the only one there is.
    size, fit: as of an Image, where there is none to follow.
    fill: the number that padding gets: 0, or what a loss passes over, such as 255.
    dtype: uint8, uint16, int32 or int64.
    raw_shape: where there are no files but rows of numbers: their height and width, each a number
        or the key of a feature that holds it; a third side must be 1.
    raw_dtype: of these: uint8 or uint16.
    max_pixels: larger masks are errors; they are not decoded.
    """

    key: str = "image/segmentation/class/encoded"
    of: str | None = None
    _: KW_ONLY
    size: tuple[int, int] | int | None = None
    fit: FitKind | None = None
    fill: int = 0
    dtype: MaskType = "uint8"
    raw_shape: Sequence[int | str] | None = None
    raw_dtype: Literal["uint8", "uint16"] = "uint8"
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        check_word("dtype", self.dtype, get_args(MaskType))
        limits = np.iinfo(self.dtype)
        whole_number("fill", self.fill, int(limits.min), int(limits.max))
        whole_number("max_pixels", self.max_pixels, 1, MOST_PIXELS)
        raw = self.stored()
        if raw is not None and len(raw.sides) == 3 and raw.sides[2] != 1:
            raise OptionError(
                f"raw_shape is {self.raw_shape!r}; expected height and width, as a mask has one "
                "number for each pixel"
            )
        if self.fit is not None:
            check_word("fit", self.fit, get_args(FitKind))
        if self.of is not None and (self.size is not None or self.fit is not None):
            raise OptionError(
                f"the mask follows {self.of!r}, which says what becomes of it; leave size and fit "
                "out"
            )
        if self.size is not None or self.fit is not None:
            object.__setattr__(self, "size", checked_size(self.size, self.fit or "resize"))

    def requests(self) -> Mapping[str, Request]:
        raw = self.stored()
        return {self.key: Request(("bytes",), ())} | (raw.requests() if raw else {})

    def outputs(self, name: str) -> tuple[str, ...]:
        return (name, f"{name}_sizes") if self.fit == "pad" else (name,)

    @property
    def is_alone(self) -> bool:
        """Whether it has a size of its own, and follows no picture."""
        return self.size is not None or self.fit is not None

    def leader(self, name: str, features: Mapping[str, Feature]) -> str | None:
        return None if self.is_alone else self.of or next(iter(pictures_in(features)), None)

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        if self.is_alone:
            self._check_alone(name, features)
            return
        check_leader(name, self.of, features)
        if not pictures_in(features):
            raise OptionError(
                f"feature {name!r} is a mask without a size, so it follows an Image, but there is "
                "none; give it a size"
            )

    def _check_alone(self, name: str, features: Mapping[str, Feature]) -> None:
        """Raise OptionError if no picture that there is could lie as the mask does."""
        pictures = {one: features[one] for one in pictures_in(features)}
        if pictures and all(
            isinstance(picture, Image) and picture.geometry().number_count
            for picture in pictures.values()
        ):
            first = next(iter(pictures))
            raise OptionError(
                f"feature {name!r} has a size or fit of its own, so it would not follow {first!r}, "
                "which is cropped or turned over at random; leave size and fit out"
            )

    def begin(self, name: str, rows: Rows) -> MaskFilling:
        return MaskFilling(self, name, rows, None if self.is_alone else leading(self.of, rows))

    def geometry(self) -> Fit:
        """How masks without a picture come to lie in their frame."""
        return Fit(self.fit or "resize", cast("tuple[int, int] | None", self.size))

    def stored(self) -> RawShape | None:
        """How raw numbers lie in the record; None of files."""
        return raw_shape(self.raw_shape, self.raw_dtype, "")


class MaskFilling(Filling):
    """The masks of a batch while they are decoded."""

    def __init__(self, feature: Mask, name: str, rows: Rows, image: PictureFilling | None) -> None:
        self._feature = feature
        self._name = name
        self._stored = StoredPixels(rows, feature.key, feature.stored(), feature.max_pixels)
        self._sizes: list[tuple[int, int] | None] = [None] * rows.count
        for row in range(rows.count):
            if row not in rows.failures:
                try:
                    self._sizes[row] = self._look(row, image)
                except CorruptDataError as error:
                    rows.fail(row, error)
        self._placements: list[Placement | None]
        if image is None:
            self._placements, frame = place_all(feature.geometry(), self._sizes, name, rows)
        else:
            self._placements, frame = image.placements, image.frame
        self._out = rows.allocate(name, (rows.count, *frame), np.dtype(feature.dtype))

    def fill(self, row: int) -> None:
        feature, placement = self._feature, self._placements[row]
        assert placement is not None
        raw = self._stored.numbers(row)
        numbers: npt.NDArray[Any]
        numbers = decode_mask(self._stored.file(row)[0]) if raw is None else raw[:, :, 0]
        largest = np.iinfo(feature.dtype).max
        if np.iinfo(numbers.dtype).max > largest and numbers.max() > largest:
            raise CorruptDataError(
                Defect.UNREADABLE_IMAGE,
                f"the mask has the number {numbers.max()}, and {feature.dtype} holds at most "
                f"{largest}; say dtype='uint16'",
            )
        lay_numbers_in_frame(numbers, placement, self._out[row], fill=feature.fill)

    def example(self, row: int) -> dict[str, Any]:
        entries = {self._name: self._out[row]}
        if self._feature.fit == "pad":
            entries[f"{self._name}_sizes"] = inner_sizes(self._placements[row : row + 1])[0]
        return entries

    def finish(self) -> dict[str, Column]:
        entries: dict[str, Column] = {self._name: self._out}
        if self._feature.fit == "pad":
            entries[f"{self._name}_sizes"] = inner_sizes(self._placements)
        return entries

    def _look(self, row: int, image: PictureFilling | None) -> tuple[int, int]:
        """The size of a mask, without decoding it; it must be that of its picture."""
        height, width = self._stored.look(row)
        if image is not None and image.sizes[row] != (height, width):
            picture_height, picture_width = image.sizes[row] or (0, 0)
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"the mask {self._feature.key!r} has {width} x {height} pixels, and its picture "
                f"has {picture_width} x {picture_height}; expected the same",
            )
        return height, width
