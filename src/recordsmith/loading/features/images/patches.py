"""Random patches of large images, of which only the part that a patch needs is decoded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from recordsmith.format.example import Schema
from recordsmith.format.example.keys import IMAGE
from recordsmith.image import MAX_PIXELS, Fit, Flip, Layout, Placement, Window, find_parts
from recordsmith.loading.features.feature import BatchRows, ColumnRequest, Feature, ImageFeature
from recordsmith.loading.features.images.frames import checked_size, one_thread_in_opencv
from recordsmith.loading.features.images.image import DecodedImageBuffer, Image, PixelType, in_words
from recordsmith.loading.features.images.stored_pixels import RawType
from recordsmith.support.errors import CorruptDataError, Defect, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import count_number

Small = Literal["pad", "error"]
"""For an image that is smaller than a patch."""

_NUMBERS = 4  # random ones of a patch: top, left, and whether it is flipped in each direction


@dataclass(frozen=True)
class Patches(ImageFeature):
    """Random patches of large images: (batch, count, height, width, channels), uint8 and RGB.

    Adds `<name>_offsets`, int64, (batch, count, 2): top and left of each patch in pixels of the
    image. A record stays a row; `reshape(-1, *shape[2:])` makes a batch of patches of it. `Mask`
    and `Boxes` follow the patches. Only what the patches need is decoded: the tiles that they touch
    of JPEGs with tiles (`pack --tiles`), of other baseline JPEGs each patch or all rows down to the
    lowest one, whichever is faster, and the rows of PNGs. Pixels are those of the whole image.

    The positions depend on the seed, epoch and place of the record, as those of `random-crop` do.

    Attributes:
        size: height and width of a patch in pixels; one number for both.
        count: the number of patches of each image. They may overlap.
        key: the key of the feature in the records.
        channels, dtype, mean, std, layout: as in `Image`; with CHW, (batch, count, channels,
            height, width).
        flip: flip each patch at random, horizontal, vertical or both, with probability 1/2. Offsets
            are those of the patch before.
        small: an image smaller than a patch is padded at the bottom and right, black, with offset
            0; or it is an error. All patches of an image that is not larger than a patch are equal,
            except for flips.
        raw_shape, raw_dtype: as in `Image`.
        max_pixels: as in `Image`; counts the pixels that are decoded at once.

    Example:
        loader = rs.Loader(dataset, {"image": rs.Patches(16, count=4)}, batch_size=8)
        print(next(iter(loader))["image"].shape)  # (8, 4, 16, 16, 3)
    """

    size: tuple[int, int] | int
    count: int
    _: KW_ONLY
    key: str = IMAGE
    channels: int = 3
    dtype: PixelType | None = None
    mean: float | Sequence[float] | None = None
    std: float | Sequence[float] | None = None
    layout: Layout = "HWC"
    flip: Flip | None = None
    small: Small = "pad"
    raw_shape: Sequence[int | str] | None = None
    raw_dtype: RawType = "uint8"
    max_pixels: int = MAX_PIXELS
    image: Image = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_word("small", self.small, get_args(Small))
        image = Image(
            self.key,
            checked_size(self.size, "crop-or-pad", can_pad=False),
            "crop-or-pad",
            channels=self.channels,
            dtype=self.dtype,
            mean=self.mean,
            std=self.std,
            layout=self.layout,
            flip=self.flip,
            raw_shape=self.raw_shape,
            raw_dtype=self.raw_dtype,
            max_pixels=self.max_pixels,
        )
        count = count_number("count", self.count, 65_536)
        checked: dict[str, Any] = {"image": image, "size": image.size, "count": count}
        checked |= {"mean": image.mean, "std": image.std, "dtype": image.dtype}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def for_schema(self, schema: Schema) -> Patches:
        image = self.image.for_schema(schema)
        if image.stored_kind == "bytes":
            return self
        patches = copy(self)
        object.__setattr__(patches, "image", image)
        return patches

    def requests(self) -> Mapping[str, ColumnRequest]:
        return self.image.requests()

    def outputs(self, name: str) -> tuple[str, ...]:
        return (name, f"{name}_offsets")

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        self.image.check(name, features)

    @property
    def is_random(self) -> bool:
        return True

    def begin(self, name: str, rows: BatchRows) -> PatchBuffer:
        one_thread_in_opencv()  # for processes that unpickle the loader
        return PatchBuffer(self, name, rows)


class PatchBuffer(DecodedImageBuffer):
    """The patches of a batch in the making; attributes as in ImageBuffer."""

    def __init__(self, patches: Patches, name: str, rows: BatchRows) -> None:
        self._is_small_allowed = patches.small == "pad"
        self._count = patches.count
        self.patches = (patches.count,)
        super().__init__(patches.image, name, rows)
        corners = [(0, 0) if place is None else place[:2] for place in self.placements]
        offsets = np.array(corners, np.int64).reshape(rows.count, self._count, 2)
        self.entries[f"{name}_offsets"] = offsets

    def _placed(self, fit: Fit, rows: BatchRows) -> tuple[list[Placement | None], tuple[int, int]]:
        assert fit.size is not None
        numbers = rows.random_numbers.uniform(f"{self._name}/patches", _NUMBERS * self._count)
        of_patches = numbers.reshape(rows.count, self._count, _NUMBERS).tolist()
        placements = [
            None if size is None else _random_patch(size, fit.size, fit.flip, of_patch)
            for size, of_row in zip(self.sizes, of_patches, strict=True)
            for of_patch in of_row
        ]
        return placements, fit.size

    def _checked(self, size: tuple[int, int]) -> tuple[int, int]:
        """Raise CorruptDataError if an image is smaller than a patch, but must not be."""
        frame: Any = self._feature.size
        if not self._is_small_allowed and (size[0] < frame[0] or size[1] < frame[1]):
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"the image {self._feature.key!r} is smaller than a patch",
                found=in_words(size),
                expected=f"at least {in_words(frame)}",
                remedy=f"Pass {option('small', 'pad')} to pad such images.",
                feature=self._feature.key,
            )
        return size

    def fill(self, row: int) -> None:
        start = row * self._count
        placements = [place for place in self.placements[start : start + self._count] if place]
        frames = list(zip(self._out[row], placements, strict=True))
        raw = self._stored.numbers(row)
        if raw is not None:
            for out, placement in frames:
                self._place(out, placement, self._part_of(raw, placement), 1)
            return
        feature, size = self._feature, self.sizes[row]
        windows = [Window(*placement[:4]) for placement in placements]
        assert size is not None
        for file, patches in find_parts(
            *self._stored.file(row), windows, max_pixels=feature.max_pixels
        ):
            with self._stored.room(file, channels=feature.channels, extra=self._extra):
                part = file.decode(
                    channels=feature.channels,
                    bits=self._bits,
                    max_pixels=feature.max_pixels,
                )
                is_whole = part.pixels.shape[:2] == size  # also if the part is damaged
                decoded = self.decoded_counts[row] + part.pixel_count
                self.decoded_counts[row] = min(decoded, math.prod(size))
                for patch in range(self._count) if is_whole else patches:
                    self._place(*frames[patch], part, 1)
                if is_whole:
                    return


def _random_patch(
    size: tuple[int, int], frame: tuple[int, int], flip: Flip | None, numbers: Sequence[float]
) -> Placement:
    """Place one patch; all positions at which it lies in the image are equally likely."""
    rows, columns = (min(side, length) for side, length in zip(size, frame, strict=True))
    top, left = (
        int(number * (side - length + 1))
        for number, side, length in zip(numbers, size, (rows, columns), strict=False)
    )
    return Placement(
        top, left, rows, columns, rows, columns, 0, 0, *frame,
        is_mirrored=flip in ("horizontal", "both") and numbers[2] < 0.5,
        is_upside_down=flip in ("vertical", "both") and numbers[3] < 0.5,
    )  # fmt: skip
