"""Segmentation masks, and masks of objects, transformed exactly as their image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Schema
from recordsmith.format.example.keys import OBJECT_MASK
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
    ImageCount,
    Kept,
    RowFeature,
    images_in,
    number_of_images,
)
from recordsmith.loading.features.images.boxes import (
    BoxBuffer,
    boxes_to_follow,
    followed_boxes,
)
from recordsmith.loading.features.images.frames import checked_size, place_all
from recordsmith.loading.features.images.image import in_words
from recordsmith.loading.features.images.image_lists import (
    ImageLists,
    check_leader,
    image_outputs,
    keep_images,
    leading,
    limited,
)
from recordsmith.loading.features.images.patches import Patches
from recordsmith.loading.features.images.stored_pixels import (
    RawShape,
    check_image_count,
    image_requests,
    raw_shape,
)
from recordsmith.loading.features.numbers import TooLong
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, Defect, OptionError, option
from recordsmith.support.explaining import check_option, check_word
from recordsmith.support.number_options import is_whole, whole_number
from recordsmith.support.words import count as counted

_LARGEST_STORED = 65_535

MaskType = Literal["uint8", "uint16", "int32", "int64"]


@dataclass(frozen=True)
class Mask(RowFeature):
    """Segmentation masks: the class of each pixel, (batch, height, width).

    A mask is cropped, resized, padded and flipped with its image, by nearest neighbour, so it gets
    no new values. Masks of `Patches` are (batch, count, height, width). Values are palette indices
    or grey levels. Where only the upper part of a mask is used, the rest of a PNG is not decoded.

    Masks of objects, a list of one for each object of an image, such as `image/object/mask`, are a
    RaggedArray whose values are (masks, height, width), or padded: (batch, n, height, width). Next
    to `Boxes`, they are the masks of exactly the boxes in the batch, in the same order; the masks
    of dropped boxes are not decoded. Without `Boxes`, all masks stay.

    Attributes:
        key: the key of the feature in the records.
        of: the name of the Image or Patches that it follows, or of the Boxes whose objects they
            are, with their image. Default: the only one.
        size, fit: as in `Image`, for masks that follow no Image.
        values: new class numbers by stored ones, such as {255: 1} for masks of 0 and 255; others
            stay. They are replaced before the mask is resized and padded.
        fill: the value of padding, such as 0, or the value that a loss ignores, such as 255.
        dtype: uint8, uint16, int32 or int64.
        raw_shape: for masks stored as raw arrays: height and width, each a number or the key of
            the feature that holds it; a third side must be 1.
        raw_dtype: of raw arrays: uint8 or uint16.
        max_pixels: a mask, or the part of it that is decoded, with more pixels is an error.
        count: how many masks each record has, as in `Image`: one for each image, or "ragged" or
            "padded" for masks of objects. Default for `image/object/mask`: "ragged". A mask without
            bytes has only the value `fill`, but one of an object is an error.
        length, too_long: of padded rows of masks, as in `Padded`; those of `Boxes` are as long as
            the rows of boxes.

    Example:
        features = {"image": rs.Image(size=224), "mask": rs.Mask(fill=255)}
        objects = {"boxes": rs.Boxes(), "masks": rs.Mask("image/object/mask", count="padded")}
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
    count: ImageCount = None
    length: int | None = None
    too_long: TooLong = "error"

    def __post_init__(self) -> None:
        check_word("dtype", self.dtype, get_args(MaskType))
        limits = np.iinfo(self.dtype)
        whole_number("fill", self.fill, int(limits.min), int(limits.max))
        if self.values is not None:
            object.__setattr__(self, "values", _checked_values(self.values, limits))
        whole_number("max_pixels", self.max_pixels, 1, HIGHEST_MAX_PIXELS)
        raw = self.stored()
        check_image_count(self, raw)
        is_flat = raw is None or raw.sides[2:] in ((), (1,))
        check_option(is_flat, "raw_shape", self.raw_shape, "height and width of a mask")
        if self.fit is not None:
            check_word("fit", self.fit, get_args(FitKind))
        expected = f"None with a {option('size')} or {option('fit')} of its own"
        check_option(self.of is None or not self.is_alone, "of", self.of, expected)
        if self.is_alone:
            object.__setattr__(self, "size", checked_size(self.size, self.fit or "resize"))

    def requests(self) -> Mapping[str, ColumnRequest]:
        return image_requests(self)

    def for_schema(self, schema: Schema) -> Mask:
        count = number_of_images(self.count, self.key, schema)
        if self.count is None and self.key == OBJECT_MASK:
            count = "ragged"
        return self if count == self.count else replace(self, count=count)

    def outputs(self, name: str) -> tuple[str, ...]:
        return image_outputs(name, self.fit, self.count)

    @property
    def is_alone(self) -> bool:
        """Whether it has its own size and follows no image."""
        return self.size is not None or self.fit is not None

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        of = self._check_boxes(name, features)
        if self.is_alone:
            self._check_alone(name, features)
            return
        check_leader(name, of, features)
        images = images_in(features)
        if not images:
            raise OptionError(
                f"feature {name!r}: a Mask needs an Image to follow, or its own {option('size')}",
                option="size",
                remedy=f"Declare an Image, or pass {option('size')}.",
            )
        image = next(iter(images.values())) if of is None else images[of]
        allowed: list[ImageCount] = [image.image_count or 1]
        if allowed == [1]:  # or masks of objects
            allowed += ["padded"] if isinstance(image, Patches) else ["ragged", "padded"]
        if (self.count or 1) not in allowed:
            raise OptionError(
                f"feature {name!r}: {option('count', self.count)} does not fit the images that "
                "the masks follow",
                option="count",
                value=self.count,
                expected=" or ".join(map(repr, allowed)),
            )

    def _check_boxes(self, name: str, features: Mapping[str, Feature]) -> str | None:
        """Return the name of the image to follow: that of the boxes, if masks are of objects."""
        if not isinstance(self.count, str):
            return self.of
        boxes = boxes_to_follow(name, self.of, features)
        if boxes is None:
            return self.of
        if self.length is not None:
            raise OptionError(
                f"feature {name!r} has as many masks as {boxes!r} has boxes",
                option="length",
                value=self.length,
                remedy=f"Pass {option('length')} to {boxes!r} instead.",
            )
        return features[boxes].of  # type: ignore[attr-defined, no-any-return]

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
        return MaskBuffer(self, name, rows)

    def geometry(self) -> Fit:
        """Return the placement rule of masks without an image."""
        return Fit(self.fit or "resize", cast("tuple[int, int] | None", self.size))

    def stored(self) -> RawShape | None:
        """Return the layout of raw arrays; None for files."""
        return raw_shape(self.raw_shape, self.raw_dtype, "", self.key)


class MaskBuffer(BatchBuffer):
    """The masks of a batch in the making."""

    def __init__(self, feature: Mask, name: str, rows: BatchRows) -> None:
        self._feature = feature
        self._tables: dict[np.dtype[Any], npt.NDArray[Any]] = {}  # of `values`, by stored dtype
        boxes, image = _followed(feature, rows)
        count = feature.count if image is None else image.count
        are_of_objects = isinstance(feature.count, str) and not isinstance(count, str)
        patches = () if image is None else image.patches
        axes = patches if are_of_objects else ()
        self._lists = lists = ImageLists(
            rows,
            feature,
            "mask",
            lambda counts: self._kept(rows, counts, boxes, image, axes if are_of_objects else None),
            axes,
        )
        self._stored = lists.stored
        self._image_sizes: list[tuple[int, int] | None] | None = None
        self._placements: list[Placement | None]
        if image is not None and are_of_objects:
            per_row, frames, patches = math.prod(patches), lists.frames, ()
            self._image_sizes = [None if at < 0 else image.sizes[at // per_row] for at in frames]
            self._placements = [None if at < 0 else image.placements[at] for at in frames]
        elif image is not None:
            self._image_sizes, self._placements = image.sizes, image.placements
        sizes = lists.each(rows, self._look)
        if image is None:
            fit = feature.geometry()
            self._placements, frame = place_all(fit, sizes, name, rows, lists.row_splits)
        else:
            frame = image.frame
        out = rows.allocate(name, (len(lists.frames), *patches, *frame), np.dtype(feature.dtype))
        self._frames = out.reshape(len(self._placements), *frame)
        super().__init__(lists.entries(name, out, self._placements))
        self._per_mask = math.prod(patches)

    def _kept(
        self,
        rows: BatchRows,
        counts: Int64Array,
        boxes: BoxBuffer | None,
        image: ImageBuffer | None,
        patches: tuple[int, ...] | None,
    ) -> Kept:
        """Return which masks of their records the rows have; those with too many or few fail.

        patches: the number of patches of an image; None for masks that are not of objects.
        """
        key = self._feature.key
        area = math.prod((image.frame if image else self._feature.geometry().size) or ())
        if boxes is not None:
            kept, noun = limited(boxes.kept, rows, key, "mask", area), "box"
        elif image is not None and patches is None:
            kept, noun = image.kept, "image"
        else:
            per_row = math.prod(patches or ())
            kept = keep_images(rows, counts, self._feature, "mask", area * per_row)
            index = np.repeat(np.arange(rows.count), per_row)
            return kept._replace(numbers=kept.numbers[index])
        for row in np.flatnonzero(counts != kept.counts).tolist():
            error = CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {key!r} does not have a mask for each {noun}",
                found=counted(counts[row], "mask"),
                expected=f"{kept.counts[row]:,}",
                feature=key,
                record=row,
            )
            rows.fail(row, error)
        return kept

    def fill(self, row: int) -> None:
        for number in self._lists.of_row(row):
            self._lists.call(self._fill_mask, number)

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

    def _look(self, number: int) -> tuple[int, int] | None:
        """Return the size of a mask, which must be that of its image, without decoding it.

        None for one without bytes.
        """
        size = None if self._image_sizes is None else self._image_sizes[number]
        if size is None and self._feature.count is not None and self._stored.is_empty(number):
            return None
        # an image that is cropped may be larger than what is decoded of it
        is_cropped = self._image_sizes is not None or self._feature.geometry().crops
        found = self._stored.look(number, is_cropped=is_cropped)
        if self._image_sizes is not None and found != size:
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"the mask {self._feature.key!r} differs in size from its image",
                found=in_words(found),
                expected=in_words(size or (0, 0)),
                feature=self._feature.key,
            )
        return found


def _followed(feature: Mask, rows: BatchRows) -> tuple[BoxBuffer | None, ImageBuffer | None]:
    """Return the boxes and the images that masks follow."""
    boxes = followed_boxes(feature.of, rows) if isinstance(feature.count, str) else None
    if feature.is_alone:
        return boxes, None
    return boxes, leading(feature.of, rows) if boxes is None else boxes.images


def _checked_values(values: object, limits: np.iinfo[Any]) -> dict[int, int]:
    checked = {}
    pairs: Any = values.items() if isinstance(values, Mapping) else [(values, None)]
    for old, new in pairs:
        is_stored = is_whole(old) and 0 <= old <= _LARGEST_STORED
        if not is_stored or not is_whole(new) or not limits.min <= new <= limits.max:
            raise OptionError(
                f"{option('values')} has {old!r:.40}: {new!r:.40}",
                option="values",
                value=values,
                expected=f"a dict of class numbers that {limits.dtype} can hold by stored ones "
                f"from 0 to {_LARGEST_STORED}, such as {{255: 1}}",
            )
        checked[int(old)] = int(new)
    return checked
