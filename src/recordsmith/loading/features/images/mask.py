"""Segmentation masks, transformed exactly as their image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Schema
from recordsmith.image import (
    HIGHEST_MAX_PIXELS,
    MAX_PIXELS,
    Fit,
    FitKind,
    Placement,
    Window,
    covering,
    decode_mask,
    find_rows,
    place_mask,
)
from recordsmith.loading.features.feature import (
    BatchBuffer,
    BatchRows,
    ColumnRequest,
    Feature,
    ImageBuffer,
    RowFeature,
    add_image_number,
    images_in,
    number_of_images,
)
from recordsmith.loading.features.images.frames import checked_size, inner_sizes, place_all
from recordsmith.loading.features.images.stored_pixels import (
    RawShape,
    StoredPixels,
    check_image_count,
    raw_shape,
)
from recordsmith.support.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import is_whole, whole_number
from recordsmith.support.words import suggest_names


def check_leader(name: str, of: str | None, features: Mapping[str, Feature]) -> None:
    """Raise OptionError if the images that the feature `name` follows are missing or ambiguous."""
    images = images_in(features)
    if of is not None and of not in images:
        hint = suggest_names(of, images, "the loader has no Image")
        raise OptionError(
            f"feature {name!r}: {of!r} is not an Image or Patches; {hint}",
            option="of",
            value=of,
        )
    if of is None and len(images) > 1:
        raise OptionError(
            f"feature {name!r} could follow {' or '.join(map(repr, images))}",
            option="of",
            remedy=f"Pass {' or '.join(option('of', image) for image in images)}.",
        )


def leading(of: str | None, rows: BatchRows) -> ImageBuffer | None:
    """Return the images to follow, already begun; None without images."""
    images = {
        name: buffer for name, buffer in rows.buffers.items() if isinstance(buffer, ImageBuffer)
    }
    return next(iter(images.values()), None) if of is None else images[of]


_LARGEST_STORED = 65_535

MaskType = Literal["uint8", "uint16", "int32", "int64"]


@dataclass(frozen=True)
class Mask(RowFeature):
    """Segmentation masks: the class of each pixel, (batch, height, width).

    A mask is cropped, resized, padded and flipped with its image, by nearest neighbour, so it gets
    no new values. Masks of `Patches` are (batch, count, height, width). Values are palette indices
    or grey levels. Where only the upper part of a mask is used, the rest of a PNG is not decoded.

    Attributes:
        key: the key of the feature in the records.
        of: the name of the Image or Patches that it follows. Default: the only one.
        size, fit: as in `Image`, for masks that follow no Image.
        values: new class numbers by stored ones, such as {255: 1} for masks of 0 and 255; others
            stay. They are replaced before the mask is resized and padded.
        fill: the value of padding, such as 0, or the value that a loss ignores, such as 255.
        dtype: uint8, uint16, int32 or int64.
        raw_shape: for masks stored as raw arrays: height and width, each a number or the key of
            the feature that holds it; a third side must be 1.
        raw_dtype: of raw arrays: uint8 or uint16.
        max_pixels: a mask, or the part of it that is decoded, with more pixels is an error.
        count: how many masks each record has, as in `Image`; one without bytes has only the value
            `fill`.

    Example:
        features = {"image": rs.Image(size=224), "mask": rs.Mask(fill=255)}
    """

    key: str = "image/segmentation/class/encoded"
    of: str | None = None
    _: KW_ONLY
    size: tuple[int, int] | int | None = None
    fit: FitKind | None = None
    values: Mapping[int, int] | None = field(default=None, hash=False)
    fill: int = 0
    dtype: MaskType = "uint8"
    raw_shape: Sequence[int | str] | None = None
    raw_dtype: Literal["uint8", "uint16"] = "uint8"
    max_pixels: int = MAX_PIXELS
    count: int | None = None

    def __post_init__(self) -> None:
        check_word("dtype", self.dtype, get_args(MaskType))
        limits = np.iinfo(self.dtype)
        whole_number("fill", self.fill, int(limits.min), int(limits.max))
        if self.values is not None:
            object.__setattr__(self, "values", _checked_values(self.values, limits))
        whole_number("max_pixels", self.max_pixels, 1, HIGHEST_MAX_PIXELS)
        raw = self.stored()
        check_image_count(self.count, raw)
        if raw is not None and len(raw.sides) == 3 and raw.sides[2] != 1:
            raise OptionError(
                option="raw_shape", value=self.raw_shape, expected="height and width of a mask"
            )
        if self.fit is not None:
            check_word("fit", self.fit, get_args(FitKind))
        if self.of is not None and (self.size is not None or self.fit is not None):
            raise OptionError(
                f"{option('of', self.of)} excludes {option('size')} and {option('fit')}",
                option="of",
                value=self.of,
                remedy=f"Leave {option('size')} and {option('fit')} out.",
            )
        if self.size is not None or self.fit is not None:
            object.__setattr__(self, "size", checked_size(self.size, self.fit or "resize"))

    def requests(self) -> Mapping[str, ColumnRequest]:
        raw = self.stored()
        shape = () if self.count is None else (self.count,)
        return {self.key: ColumnRequest(("bytes",), shape)} | (raw.requests() if raw else {})

    def for_schema(self, schema: Schema) -> Mask:
        count = number_of_images(self.count, self.key, schema)
        return self if count == self.count else replace(self, count=count)

    def outputs(self, name: str) -> tuple[str, ...]:
        return (name, f"{name}_sizes") if self.fit == "pad" else (name,)

    @property
    def is_alone(self) -> bool:
        """Whether it has its own size and follows no image."""
        return self.size is not None or self.fit is not None

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        if self.is_alone:
            self._check_alone(name, features)
            return
        check_leader(name, self.of, features)
        if not images_in(features):
            raise OptionError(
                f"feature {name!r}: a Mask needs an Image to follow, or its own {option('size')}",
                option="size",
                remedy=f"Declare an Image, or pass {option('size')}.",
            )
        images = images_in(features)
        image = next(iter(images.values())) if self.of is None else images[self.of]
        if (image.image_count or 1) != (self.count or 1):
            raise OptionError(
                f"feature {name!r}: a record has {self.count or 1} of these masks, but "
                f"{image.image_count or 1} of the images that they follow",
                option="count",
                value=self.count,
                expected="a mask for each image",
            )

    def _check_alone(self, name: str, features: Mapping[str, Feature]) -> None:
        """Raise OptionError if all images are transformed at random."""
        images = images_in(features)
        if images and all(image.is_random for image in images.values()):
            raise OptionError(
                f"feature {name!r}: a Mask with its own size or fit does not follow "
                f"{next(iter(images))!r}, "
                "which is cropped or flipped at random",
                option="size" if self.size is not None else "fit",
                remedy=f"Leave {option('size')} and {option('fit')} out.",
            )

    def begin(self, name: str, rows: BatchRows) -> MaskBuffer:
        return MaskBuffer(self, name, rows, None if self.is_alone else leading(self.of, rows))

    def geometry(self) -> Fit:
        """Return the placement rule of masks without an image."""
        return Fit(self.fit or "resize", cast("tuple[int, int] | None", self.size))

    def stored(self) -> RawShape | None:
        """Return the layout of raw arrays; None for files."""
        return raw_shape(self.raw_shape, self.raw_dtype, "", self.key)


class MaskBuffer(BatchBuffer):
    """The masks of a batch in the making."""

    def __init__(
        self, feature: Mask, name: str, rows: BatchRows, image: ImageBuffer | None
    ) -> None:
        self._feature = feature
        self._tables: dict[np.dtype[Any], npt.NDArray[Any]] = {}  # of `values`, by stored dtype
        self._stored = StoredPixels(
            rows.columns, feature.key, feature.stored(), feature.max_pixels, noun="mask"
        )
        self._image_count = feature.count
        sizes = rows.each(lambda number: self._look(number, image), feature.count)
        self._placements: list[Placement | None]
        patches: tuple[int, ...] = ()
        masks = () if feature.count is None else (feature.count,)
        if image is None:
            self._placements, frame = place_all(feature.geometry(), sizes, name, rows)
        else:
            self._placements, frame = image.placements, image.frame
            patches = () if image.patch_count is None else (image.patch_count,)
        out = rows.allocate(name, (rows.count, *masks, *patches, *frame), np.dtype(feature.dtype))
        super().__init__({name: out})
        if feature.fit == "pad":
            inner_size = inner_sizes(self._placements).reshape(rows.count, *masks, 2)
            self.entries[f"{name}_sizes"] = inner_size
        self._frames = out.reshape(rows.count * math.prod(masks + patches), *frame)
        self._per_mask = math.prod(patches)

    def fill(self, row: int) -> None:
        per_row = self._image_count or 1
        for number in range(row * per_row, (row + 1) * per_row):
            try:
                self._fill_mask(number)
            except DataError as error:
                add_image_number(error, number, self._image_count)
                raise

    def _fill_mask(self, number: int) -> None:
        start, stop = number * self._per_mask, (number + 1) * self._per_mask
        placements = [placement for placement in self._placements[start:stop] if placement]
        frames = self._frames[start:stop]
        if not placements:  # without bytes
            frames[...] = self._feature.fill
            return
        window = covering([Window(*placement[:4]) for placement in placements])
        top, left, height, width = window
        raw = self._stored.numbers(number)
        if raw is not None:
            part = raw[top : top + height, left : left + width, 0]
            self._place(part, top, left, placements, frames)
            return
        data, head = self._stored.file(number)
        file = find_rows(data, head, top + height)
        row_count = file.head.height if file.whole else None
        with self._stored.room(file, channels=1):
            self._place(decode_mask(data, row_count), 0, 0, placements, frames)

    def _place(
        self,
        numbers: npt.NDArray[Any],
        top: int,
        left: int,
        placements: Sequence[Placement],
        frames: npt.NDArray[Any],
    ) -> None:
        """Write the numbers, which begin at `top` and `left` of the mask, into the frames."""
        feature = self._feature
        numbers = self._replaced(numbers)
        largest = np.iinfo(feature.dtype).max
        if np.iinfo(numbers.dtype).max > largest and numbers.max() > largest:
            raise CorruptDataError(
                Defect.UNREADABLE_IMAGE,
                f"the mask {feature.key!r} has a value that {feature.dtype} cannot hold",
                found=str(numbers.max()),
                expected=f"at most {largest}",
                remedy=f"Pass {option('dtype', 'uint16')}.",
                feature=feature.key,
            )
        for placement, frame in zip(placements, frames, strict=True):
            place_mask(numbers, placement, frame, top=top, left=left, fill=feature.fill)

    def _replaced(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a mask with the values that the feature declares, in a dtype that holds them."""
        values = self._feature.values
        if not values:
            return numbers
        table = self._tables.get(numbers.dtype)
        if table is None:
            stored = np.iinfo(numbers.dtype)
            table = np.arange(stored.max + 1, dtype=np.int64)
            for old, new in values.items():
                if old <= stored.max:
                    table[old] = new
            if table.min() >= 0 and table.max() <= stored.max:
                table = table.astype(numbers.dtype)
            self._tables[numbers.dtype] = table
        return table.take(numbers)

    def _look(self, number: int, image: ImageBuffer | None) -> tuple[int, int] | None:
        """Return the size of a mask, which must be that of its image, without decoding it.

        None for one without bytes.
        """
        if self._image_count is not None and self._stored.is_empty(number):
            if image is None or image.sizes[number] is None:
                return None
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"the mask {self._feature.key!r} is empty, but its image is not",
                feature=self._feature.key,
            )
        # an image that is cropped may be larger than what is decoded of it
        is_cropped = image is not None or self._feature.geometry().crops
        height, width = self._stored.look(number, is_cropped=is_cropped)
        if image is not None and image.sizes[number] != (height, width):
            image_height, image_width = image.sizes[number] or (0, 0)
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"the mask {self._feature.key!r} differs in size from its image",
                found=f"{width} x {height}",
                expected=f"{image_width} x {image_height}",
                feature=self._feature.key,
            )
        return height, width


def _checked_values(values: object, limits: np.iinfo[Any]) -> dict[int, int]:
    expected = "a dict of class numbers by stored ones, such as {255: 1}"
    if not isinstance(values, Mapping):
        raise OptionError(option="values", value=values, expected=expected)
    checked = {}
    for old, new in values.items():
        if not (is_whole(old) and 0 <= old <= _LARGEST_STORED):
            raise OptionError(
                f"{option('values')} has the stored class number {old!r:.40}",
                option="values",
                value=old,
                expected=f"an integer from 0 to {_LARGEST_STORED}",
            )
        if not (is_whole(new) and limits.min <= new <= limits.max):
            raise OptionError(
                f"{option('values')} has the class number {new!r:.40}",
                option="values",
                value=new,
                expected=f"an integer that {limits.dtype} can hold",
            )
        checked[int(old)] = int(new)
    return checked
