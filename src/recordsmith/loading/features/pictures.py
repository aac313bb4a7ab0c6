"""Pictures: encoded ones, or rows of pixels, decoded straight into the array of a batch.

Which part of a picture is taken and where it goes is known for all rows before the first is
decoded: masks and boxes follow the same placements. Each row is then decoded, resized into its
place, turned over, and written as the numbers that are wanted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.example import Column
from recordsmith.image.fit import CROP_AREA, CROP_RATIO, Fit, FitKind, Flip, Placement
from recordsmith.image.normalising import Layout, Normaliser
from recordsmith.image.options import MAX_PIXELS, MOST_PIXELS, check_word
from recordsmith.image.pixels import decode_pixels, with_bits, with_channels
from recordsmith.image.placing import Interpolation, divisor_for, lay_in_frame
from recordsmith.loading.features.contract import (
    Feature,
    PictureFeature,
    PictureFilling,
    Request,
    Rows,
)
from recordsmith.loading.features.picture_frames import (
    LARGEST_SIDE,
    checked_size,
    inner_sizes,
    one_thread_in_opencv,
    place_all,
)
from recordsmith.loading.features.stored_pixels import RawShape, StoredPixels, raw_shape
from recordsmith.loading.options import whole_number

PixelType = Literal["uint8", "uint16", "float32"]


@dataclass(frozen=True)
class Image(PictureFeature):
    """Pictures of one size: (batch, height, width, channels), uint8 and RGB if not said otherwise.

    OpenCV is set to one thread for the whole process when a loader with pictures is made
    (`cv2.setNumThreads(1)`): the loader's threads share out the rows, and OpenCV's own would be
    in their way; they also hang in a process that is forked after they began.

    key: the feature's name in the records.
    size: height and width in pixels; one number for both.
    fit: how a picture comes to have this size. `resize` stretches it. `crop-or-pad` scales nothing
        and cuts off or pads on both sides alike, as TensorFlow's resize_with_crop_or_pad does.
        `center-crop` keeps the proportions and cuts off what is too much. `contain` keeps the
        proportions and pads, as TensorFlow's resize_with_pad does. `random-crop` stretches a random
        part, as torchvision's RandomResizedCrop does. `pad` needs no size: all are padded at the
        bottom and on the right to the largest of their batch, and `<name>_sizes` (int64,
        (batch, 2)) has the height and the width of what is no padding. Padding is black.
    channels: 1 grey, 3 RGB, 4 RGB and alpha; alpha that is not wanted is dropped.
    dtype: uint8; uint16; or float32, where pixels become 0 to 1.
    mean, std: for float32, (x - mean) / std with x from 0 to 1; one number, or one a channel.
    layout: HWC, or CHW for (batch, channels, height, width).
    flip: which sides change places at random, one time in two.
    shorter_side: for `center-crop` and `pad`, what the shorter side is scaled to before; without
        it as little as covers the size, or not at all.
    longer_side: for `pad`, what the longer side is scaled to; with both the smaller picture counts.
    crop_area, crop_ratio: for `random-crop`, the smallest and the largest share of the picture's
        area, and width for a height of 1; (0.08, 1) and (3/4, 4/3), if not said.
    interpolation: `auto` is linear, and by area where a picture shrinks to less than half.
    exact: decode all pixels of the picture, resize them as fractions, linearly, and round once:
        what TensorFlow's decode_jpeg and resize give, to 0.02 of 255 levels. Otherwise a JPEG that
        shrinks to half or less is decoded at a half, a quarter or an eighth of its size, which is
        faster and looks better; where only a part is taken, it lies then within half a pixel of
        the batch of where it should.
    raw_shape: where there are no files but rows of pixels: their height, width and channels, each
        a number or the key of a feature that holds it: ("height", "width", 3).
    raw_dtype: of these: uint8 or uint16.
    max_pixels: larger pictures are errors; they are not decoded.
    """

    key: str = "image/encoded"
    size: tuple[int, int] | int | None = None
    fit: FitKind = "resize"
    _: KW_ONLY
    channels: int = 3
    dtype: PixelType = "uint8"
    mean: float | Sequence[float] | None = None
    std: float | Sequence[float] | None = None
    layout: Layout = "HWC"
    flip: Flip | None = None
    shorter_side: int | None = None
    longer_side: int | None = None
    crop_area: tuple[float, float] | None = None
    crop_ratio: tuple[float, float] | None = None
    interpolation: Interpolation = "auto"
    exact: bool = False
    raw_shape: Sequence[int | str] | None = None
    raw_dtype: Literal["uint8", "uint16"] = "uint8"
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise OptionError(
                f"key is {self.key!r:.60}; expected the feature that holds the pictures, such as "
                "'image/encoded'; the size is what comes after it, or size=..."
            )
        check_word("fit", self.fit, get_args(FitKind))
        check_word("dtype", self.dtype, get_args(PixelType))
        check_word("layout", self.layout, get_args(Layout))
        check_word("interpolation", self.interpolation, get_args(Interpolation))
        if self.flip is not None:
            check_word("flip", self.flip, get_args(Flip))
        if type(self.channels) is not int or self.channels not in (1, 3, 4):
            raise OptionError(f"channels is {self.channels!r}; expected 1, 3 or 4")
        whole_number("max_pixels", self.max_pixels, 1, MOST_PIXELS)
        self._keep("size", checked_size(self.size, self.fit))
        self._check_fit()
        self._check_numbers()
        self.stored()
        if not isinstance(self.exact, bool):
            raise OptionError(f"exact is {self.exact!r:.60}; expected True or False")
        if self.exact and self.interpolation not in ("auto", "linear"):
            raise OptionError(
                f"exact is linear, as TensorFlow's resize, but interpolation is "
                f"{self.interpolation!r}; leave one of them out"
            )

    def requests(self) -> Mapping[str, Request]:
        raw = self.stored()
        return {self.key: Request(("bytes",), ())} | (raw.requests() if raw else {})

    def outputs(self, name: str) -> tuple[str, ...]:
        return (name, f"{name}_sizes") if self.fit == "pad" else (name,)

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        one_thread_in_opencv()

    def begin(self, name: str, rows: Rows) -> ImageFilling:
        one_thread_in_opencv()  # in a process that got the loader by pickle
        return ImageFilling(self, name, rows)

    def geometry(self) -> Fit:
        """How pictures come to lie in their frame."""
        return Fit(
            self.fit,
            cast("tuple[int, int] | None", self.size),
            self.shorter_side,
            self.longer_side,
            self.crop_area or CROP_AREA,
            self.crop_ratio or CROP_RATIO,
            self.flip,
        )

    def stored(self) -> RawShape | None:
        """How raw pixels lie in the record; None of files."""
        return raw_shape(self.raw_shape, self.raw_dtype, " and channels")

    def normaliser(self) -> Normaliser:
        """What writes pixels as the numbers that are wanted."""
        mean = _for_each_channel(self.mean, self.channels, 0.0)
        std = _for_each_channel(self.std, self.channels, 1.0)
        return Normaliser(self.dtype, self.layout, mean, std)

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_fit(self) -> None:
        for name, kinds in (
            ("shorter_side", ("center-crop", "pad")),
            ("longer_side", ("pad",)),
            ("crop_area", ("random-crop",)),
            ("crop_ratio", ("random-crop",)),
        ):
            if getattr(self, name) is not None and self.fit not in kinds:
                words = " or ".join(f"fit={kind!r}" for kind in kinds)
                raise OptionError(f"{name} is for {words}, but fit is {self.fit!r}; leave it out")
        for name in ("shorter_side", "longer_side"):
            if getattr(self, name) is not None:
                self._keep(name, whole_number(name, getattr(self, name), 1, LARGEST_SIDE))
        if self.fit == "center-crop" and self.shorter_side is not None:
            least = min(cast("tuple[int, int]", self.size))
            if self.shorter_side < least:
                raise OptionError(
                    f"shorter_side is {self.shorter_side}, which does not cover the size "
                    f"{self.size}; expected at least {least}"
                )
        if self.crop_area is not None:
            self._keep("crop_area", _checked_range("crop_area", self.crop_area, 1.0))
        if self.crop_ratio is not None:
            self._keep("crop_ratio", _checked_range("crop_ratio", self.crop_ratio, math.inf))
        is_unscaled = self.fit == "crop-or-pad" or (
            self.fit == "pad" and self.shorter_side is None and self.longer_side is None
        )
        if is_unscaled and self.interpolation != "auto":
            raise OptionError(
                f"interpolation is {self.interpolation!r}, but fit={self.fit!r} scales nothing; "
                "leave it out"
            )

    def _check_numbers(self) -> None:
        for name in ("mean", "std"):
            value = getattr(self, name)
            if value is None:
                continue
            if self.dtype != "float32":
                raise OptionError(
                    f"{name} is given, but dtype is {self.dtype!r}; say dtype='float32'"
                )
            values = _for_each_channel(value, self.channels, 0.0)
            if len(values) != self.channels or not all(map(_is_finite, values)):
                raise OptionError(
                    f"{name} is {value!r}; expected one number, or one for each of the "
                    f"{self.channels} channels"
                )
            if name == "std" and min(values) <= 0:
                raise OptionError(f"std is {value!r}; expected numbers above 0")
            self._keep(name, values)


class ImageFilling(PictureFilling):
    """The pictures of a batch while they are decoded.

    sizes: height and width as stored; None where a picture is none.
    placements: where each comes to lie; None where a picture is none.
    frame: height and width of what they come to lie in.
    """

    def __init__(self, feature: Image, name: str, rows: Rows) -> None:
        self._feature = feature
        self._name = name
        self._stored = StoredPixels(rows, feature.key, feature.stored(), feature.max_pixels)
        self._normaliser = feature.normaliser()
        self._bits = {"uint8": 8, "uint16": 16, "float32": None}[feature.dtype]
        self._interpolation: Interpolation = "linear" if feature.exact else feature.interpolation
        self._is_direct = feature.dtype != "float32" and feature.layout == "HWC"
        self.sizes: list[tuple[int, int] | None] = [None] * rows.count
        for row in range(rows.count):
            if row not in rows.failures:
                try:
                    self.sizes[row] = self._stored.look(row)
                except CorruptDataError as error:
                    rows.fail(row, error)
        self.placements, self.frame = place_all(feature.geometry(), self.sizes, name, rows)
        self._frame_shape = (*self.frame, feature.channels)
        shape = self._frame_shape
        if feature.layout == "CHW":
            shape = (feature.channels, *self.frame)
        self._out = rows.allocate(name, (rows.count, *shape), np.dtype(feature.dtype))

    def fill(self, row: int) -> None:
        feature, placement = self._feature, self.placements[row]
        assert placement is not None
        pixels, divisor = self._decode(row, placement)
        is_resized = placement[2:4] != placement[4:6]
        dtype: Any = np.float32 if feature.exact and is_resized else pixels.dtype
        out = self._out[row]
        frame = (
            out if self._is_direct and dtype == out.dtype else np.empty(self._frame_shape, dtype)
        )
        lay_in_frame(pixels, placement, frame, divisor=divisor, interpolation=self._interpolation)
        if frame is not out:
            self._normaliser.write(frame, out, np.iinfo(pixels.dtype).max)

    def example(self, row: int) -> dict[str, Any]:
        entries = {self._name: self._out[row]}
        if self._feature.fit == "pad":
            entries[f"{self._name}_sizes"] = inner_sizes(self.placements[row : row + 1])[0]
        return entries

    def finish(self) -> dict[str, Column]:
        entries: dict[str, Column] = {self._name: self._out}
        if self._feature.fit == "pad":
            entries[f"{self._name}_sizes"] = inner_sizes(self.placements)
        return entries

    def _decode(self, row: int, placement: Placement) -> tuple[npt.NDArray[Any], int]:
        """Pixels, and at which part of their size."""
        feature = self._feature
        raw = self._stored.numbers(row)
        if raw is not None:
            pixels = with_channels(raw, feature.channels)
            return (pixels if self._bits is None else with_bits(pixels, self._bits)), 1
        data, head = self._stored.file(row)
        divisor = 1
        if head.format == "jpeg" and not feature.exact:
            divisor = divisor_for(placement, head.height, head.width)
        pixels = decode_pixels(
            data, head, channels=feature.channels, bits=self._bits, divisor=divisor
        )
        return pixels, divisor


def _for_each_channel(value: object, channels: int, default: float) -> tuple[float, ...]:
    if value is None:
        return (default,) * channels
    if isinstance(value, (Sequence, np.ndarray)):
        return tuple(value)
    return (value,) * channels  # type: ignore[return-value]


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)


def _checked_range(name: str, values: object, highest: float) -> tuple[float, float]:
    is_range = (
        isinstance(values, (tuple, list)) and len(values) == 2 and all(map(_is_finite, values))
    )
    low, high = cast("tuple[float, float]", values) if is_range else (0.0, 0.0)
    if not 0 < low <= high <= highest:
        words = " and at most 1" if highest == 1 else ""
        raise OptionError(
            f"{name} is {values!r}; expected the smallest and the largest, above 0{words}"
        )
    return low, high
