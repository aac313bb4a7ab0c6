"""Decodes encoded images, or raw pixels, straight into the array of a batch.

The placements of all rows are computed before the first is decoded; masks and boxes use them too.
Then each row is decoded, resized into its place, flipped and normalized.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Column, Kind, Schema
from recordsmith.format.example.keys import IMAGE
from recordsmith.image import (
    CROP_AREA,
    CROP_RATIO,
    HIGHEST_MAX_PIXELS,
    MAX_PIXELS,
    Fit,
    FitKind,
    Flip,
    Interpolation,
    Layout,
    Normaliser,
    Part,
    Placement,
    Window,
    convert_pixels,
    divisor_for,
    jpeg_decoder,
    place_image,
)
from recordsmith.loading.features.feature import (
    BatchRows,
    ColumnRequest,
    Feature,
    ImageBuffer,
    ImageCount,
    ImageFeature,
    Kept,
    number_of_images,
)
from recordsmith.loading.features.images.frames import (
    LARGEST_SIDE,
    checked_size,
    one_thread_in_opencv,
    place_all,
)
from recordsmith.loading.features.images.image_lists import (
    ImageLists,
    image_outputs,
    keep_images,
    limited,
)
from recordsmith.loading.features.images.stored_pixels import (
    RawShape,
    RawType,
    StoredPixels,
    check_image_count,
    image_requests,
    raw_shape,
    stored_images,
)
from recordsmith.loading.features.numbers import TooLong
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, Defect, option
from recordsmith.support.explaining import check_option, check_word, explain_unknown
from recordsmith.support.number_options import whole_number

PixelType = Literal["uint8", "uint16", "float32"]


_EXPLAINED = {
    "crop mode resize_mode": "Pass fit, such as fit='center-crop'.",
    "channels_first data_format": "Pass layout='CHW'.",
    "hflip horizontal_flip random_flip": "Pass flip='horizontal'.",
    "height image_size resize shape target_size width": "Pass size, one number or (height, width).",
    "normalise normalize rescale scale": "Pass dtype='float32', with mean and std if needed.",
}
"""What to do instead of the options of torchvision, Keras and others."""


@explain_unknown(_EXPLAINED)
@dataclass(frozen=True)
class Image(ImageFeature):
    """Images of one size: (batch, height, width, channels), by default uint8 and RGB.

    If each record has several images, such as the frames of a window of `Episodes`, they are
    (batch, count, height, width, channels), and cropped and flipped alike; a window of one step has
    this axis, too. One without bytes, as `Episodes` pads with, is black. Records with different
    numbers of images give a RaggedArray whose values are (images, height, width, channels), or are
    padded with black images.

    A loader with images sets OpenCV to one thread for the whole process (`cv2.setNumThreads(1)`),
    because OpenCV's threads would compete with the loader's, and hang in forked processes.

    Attributes:
        key: the key of the feature in the records.
        size: height and width in pixels; one number for both. Default: that of the stored images,
            which must all have the same size.
        fit: how images get this size. `resize` stretches. `crop-or-pad` crops or pads evenly
            without scaling, as TensorFlow's resize_with_crop_or_pad. `center-crop` keeps the
            aspect ratio and crops. `contain` keeps the aspect ratio and pads, as TensorFlow's
            resize_with_pad. `random-crop` stretches a random part, as torchvision's
            RandomResizedCrop. `pad` has no size: it pads at the bottom and right to the largest
            image of the batch, and adds `<name>_sizes`, int64, (batch, 2), with height and width
            without padding. Padding is black.
        channels: 1 for grey, 3 for RGB, 4 for RGB and alpha; alpha is dropped unless requested.
            Raw pixels that are not scaled have any number, which must be that of `raw_shape`.
        dtype: uint8, uint16, or float32 with pixels from 0 to 1. Default: uint8, or float32 for raw
            pixels that are not scaled.
        mean, std: for float32, (x - mean) / std with x from 0 to 1, or in the range of raw pixels
            that are not scaled; one number, or one per channel.
        layout: HWC, or CHW for (batch, channels, height, width).
        flip: the direction of random flips, with probability 1/2.
        shorter_side: for `center-crop` and `pad`, scale the shorter side to this first. Default:
            as little as covers the size for `center-crop`, no scaling for `pad`.
        longer_side: for `pad`, scale the longer side to this; with both, the smaller image counts.
        crop_area, crop_ratio: for `random-crop`, the range of the share of the image's area and
            of the aspect ratio (width / height). Defaults: (0.08, 1) and (3/4, 4/3).
        interpolation: `auto` is linear, or area for images that shrink to less than half.
        exact: decode all pixels, resize linearly in floating point and round once, which equals
            TensorFlow's decode_jpeg and resize to 0.02 of 255 levels. By default, a JPEG that
            shrinks to half or less is decoded at 1/2, 1/4 or 1/8 of its size, which is faster and
            looks better; a crop is then exact to half a pixel of the batch.
        raw_shape: for images stored as raw pixels, one byte string or a list of numbers: height,
            width and channels, each a number or the key of the feature that holds it: ("height",
            "width", 3).
        raw_dtype: of raw pixels: uint8 or uint16; or float32, float64, float16 or int16, which are
            not scaled: pixels are float32 in the range of the stored numbers, and padding is 0. A
            list of integers can be of each type, and a list of floats of those without a scale.
        max_pixels: an image, or the part of it that is decoded, with more pixels is an error. So is
            one whose decoding needs more than 4 bytes for each of that many pixels.
        count: how many images each record has; "ragged" or "padded" for any number, where `padded`
            adds `<name>_lengths`, int64, (batch,). Default: as many as the schema shows; if that is
            one, there is no axis for them.
        length, too_long: of padded rows of images, as in `Padded`.

    Example:
        image = rs.Image(size=224, fit="random-crop", flip="horizontal", layout="CHW")
        loader = rs.Loader(dataset, {"image": image}, batch_size=8, shuffle=True)
        print(next(iter(loader))["image"].shape)
    """

    key: str = IMAGE
    size: tuple[int, int] | int | None = None
    fit: FitKind = "resize"
    _: KW_ONLY
    channels: int = 3
    dtype: PixelType | None = None
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
    raw_dtype: RawType = "uint8"
    max_pixels: int = MAX_PIXELS
    count: ImageCount = None
    length: int | None = None
    too_long: TooLong = "error"
    stored_size: tuple[int, int] | None = field(default=None, init=False, repr=False)
    stored_kind: Kind = field(default="bytes", init=False, repr=False)
    steps: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_option(
            isinstance(self.key, str), "key", self.key,
            "the key of the images, such as 'image/encoded'", f"Pass {option('size', self.key)}.",
        )  # fmt: skip
        check_word("fit", self.fit, get_args(FitKind))
        raw = self.stored()
        is_scaled = raw is None or raw.is_scaled
        if self.dtype is None:
            self._keep("dtype", "uint8" if is_scaled else "float32")
        check_word("dtype", self.dtype, get_args(PixelType))
        check_word("layout", self.layout, get_args(Layout))
        check_word("interpolation", self.interpolation, get_args(Interpolation))
        if self.flip is not None:
            check_word("flip", self.flip, get_args(Flip))
        channels = self.channels
        if raw is None or is_scaled:
            is_usual = type(channels) is int and channels in (1, 3, 4)
            check_option(is_usual, "channels", channels, "1, 3 or 4")
        else:
            expected = f"'float32' for {option('raw_dtype', self.raw_dtype)}"
            check_option(self.dtype == "float32", "dtype", self.dtype, expected)
            whole_number("channels", channels, 1, LARGEST_SIDE)
            stored = raw.sides[2] if len(raw.sides) == 3 else 1
            is_same = isinstance(stored, str) or stored == channels
            expected = f"{stored}, as {option('raw_shape')} declares"
            check_option(is_same, "channels", channels, expected)
        whole_number("max_pixels", self.max_pixels, 1, HIGHEST_MAX_PIXELS)
        self._keep("size", checked_size(self.size, self.fit, is_required=False))
        self._check_fit()
        self._check_numbers(is_scaled=is_scaled)
        check_image_count(self, raw)
        check_option(isinstance(self.exact, bool), "exact", self.exact, "True or False")
        is_allowed = not self.exact or raw is not None or jpeg_decoder() == "simplejpeg"
        expected = "False without simplejpeg: Pillow does not decode JPEG to TensorFlow's pixels"
        remedy = "Leave it out, or install simplejpeg, which has wheels for CPython up to 3.14."
        check_option(is_allowed, "exact", self.exact, expected, remedy)
        is_allowed = not self.exact or self.interpolation in ("auto", "linear")
        expected = f"'auto' or 'linear' with {option('exact', True)}"
        check_option(is_allowed, "interpolation", self.interpolation, expected)

    def requests(self) -> Mapping[str, ColumnRequest]:
        if self.steps is not None:
            return self.steps.requests()  # type: ignore[no-any-return]
        return image_requests(self, self.stored_kind)

    def outputs(self, name: str) -> tuple[str, ...]:
        return image_outputs(name, self.fit, self.count)

    def for_schema(self, schema: Schema) -> Image:
        raw, known = self.stored(), schema.columns.get(self.key)
        if raw is not None and known is not None and known.kind in raw.list_kinds:
            return self._with(stored_kind=known.kind)
        count = number_of_images(self.count, self.key, schema)
        return self if count == self.count else replace(self, count=count)

    @property
    def image_count(self) -> ImageCount:
        return self.count

    def check(self, name: str, features: Mapping[str, Feature]) -> None:
        one_thread_in_opencv()

    def begin(self, name: str, rows: BatchRows) -> DecodedImageBuffer:
        one_thread_in_opencv()  # for processes that unpickle the loader
        return DecodedImageBuffer(self, name, rows)

    @property
    def is_random(self) -> bool:
        return self.geometry().number_count > 0

    def geometry(self) -> Fit:
        """Return the placement rule."""
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
        """Return the layout of raw pixels; None for files."""
        words = " and channels"
        raw = raw_shape(self.raw_shape, self.raw_dtype, words, self.key, dtypes=RawType)
        return raw if raw is None or raw.is_scaled else replace(raw, channels=self.channels)

    @property
    def needs_one_size(self) -> bool:
        """Whether it is to have the size of the stored images, which is not known yet."""
        return self.size is None and self.fit != "pad"

    def size_of(self, columns: Mapping[str, Column]) -> tuple[int, int] | None:
        """Return the size of the first image with bytes of some columns, without decoding it.

        None if there are no images.

        Raises:
            CorruptDataError: it is not an image, or too large.
        """
        data, _ = stored_images(columns[self.key], self.stored())
        stored = StoredPixels(self, columns, data)
        first = next((at for at in range(len(data)) if not stored.is_empty(at)), 0)
        return stored.look(first) if data else None

    def keep(self, rows: BatchRows, counts: Int64Array, area: int) -> Kept:
        """Return which images rows with so many of them keep, each of `area` pixels."""
        if self.steps is None:
            return keep_images(rows, counts, self, "image", area)
        for error in self.steps.errors({self.key: counts}):
            rows.fail(error.record, error)
        kept = self.steps.keep(counts, rows.random_numbers)
        return limited(kept, rows, self.key, "image", area)

    def of_steps(self, steps: Any) -> Image:
        """Return the images of the steps of a feature list: a list of those that it chooses."""
        count = "ragged" if steps.length == "ragged" else "padded"
        return self._with(steps=steps, count=count)

    def of_one_size(self, size: tuple[int, int]) -> Image:
        """Return this feature for images that are all stored in this size."""
        return self._with(size=size, stored_size=size)

    def _with(self, **values: object) -> Image:
        image = copy(self)
        for name, value in values.items():
            object.__setattr__(image, name, value)
        return image

    def normaliser(self) -> Normaliser:
        """Return the object that normalizes pixels."""
        mean = _for_each_channel(self.mean, self.channels, 0.0)
        std = _for_each_channel(self.std, self.channels, 1.0)
        return _normaliser(self.dtype, self.layout, mean, std)

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_fit(self) -> None:
        for name, kinds in (
            ("shorter_side", ("center-crop", "pad")),
            ("longer_side", ("pad",)),
            ("crop_area", ("random-crop",)),
            ("crop_ratio", ("random-crop",)),
        ):
            value = getattr(self, name)
            allowed = " or ".join(option("fit", kind) for kind in kinds)
            is_allowed = value is None or self.fit in kinds
            check_option(is_allowed, name, value, f"None without {allowed}")
            if value is not None and kinds[-1] == "pad":
                self._keep(name, whole_number(name, value, 1, LARGEST_SIDE))
        if self.fit == "center-crop" and self.shorter_side is not None and self.size is not None:
            least = min(cast("tuple[int, int]", self.size))
            expected = f"at least {least}, to cover the size {self.size}"
            is_allowed = self.shorter_side >= least
            check_option(is_allowed, "shorter_side", self.shorter_side, expected)
        if self.crop_area is not None:
            self._keep("crop_area", _checked_range("crop_area", self.crop_area, 1.0))
        if self.crop_ratio is not None:
            self._keep("crop_ratio", _checked_range("crop_ratio", self.crop_ratio, math.inf))
        is_unscaled = self.fit == "crop-or-pad" or (
            self.fit == "pad" and self.shorter_side is None and self.longer_side is None
        )
        is_allowed = self.interpolation == "auto" or not is_unscaled
        expected = f"'auto' with {option('fit', self.fit)}, which does not scale images"
        check_option(is_allowed, "interpolation", self.interpolation, expected)

    def _check_numbers(self, *, is_scaled: bool) -> None:
        for name in ("mean", "std"):
            value = getattr(self, name)
            if value is None:
                continue
            is_allowed = self.dtype == "float32"
            check_option(is_allowed, name, value, f"None without {option('dtype', 'float32')}")
            values = _for_each_channel(value, self.channels, 0.0)
            is_allowed = len(values) == self.channels and all(map(_is_finite, values))
            expected = f"one number, or one for each of the {self.channels} channels"
            check_option(is_allowed, name, value, expected)
            if name == "std":
                check_option(min(values) > 0, name, value, "positive")
            elif is_scaled:
                expected = "numbers from 0 to 1, as the pixels of float32"
                remedy = "Divide mean and std by 255."
                check_option(max(values) <= 1, name, value, expected, remedy)
            self._keep(name, values)


class DecodedImageBuffer(ImageBuffer):
    """The images of a batch in the making; attributes as in ImageBuffer."""

    def __init__(self, feature: Image, name: str, rows: BatchRows) -> None:
        self._feature = feature
        self._name = name
        fit = feature.geometry()
        raw, area = feature.stored(), math.prod(fit.size or ())
        self.count = feature.count
        self._lists = lists = ImageLists(
            rows, feature, "image", lambda counts: feature.keep(rows, counts, area)
        )
        self._stored, self.kept = lists.stored, lists.kept
        self._normaliser = feature.normaliser()
        self._bits = {"uint8": 8, "uint16": 16}.get(cast("str", feature.dtype))
        self._is_scaled = raw is None or raw.is_scaled
        self._interpolation: Interpolation = "linear" if feature.exact else feature.interpolation
        # memory needed after decoding: floats of all pixels, or 16 bits from 8
        self._extra = (4 if feature.exact else 2 if self._bits == 16 else 0) * feature.channels
        is_changed = self._is_scaled or feature.mean is not None or feature.std is not None
        self._is_direct = feature.layout == "HWC" and not (
            feature.dtype == "float32" and is_changed
        )
        self.decoded_counts: list[int] = [0] * len(lists.frames)
        self.sizes = lists.each(rows, lambda number: self._look(number, fit))
        self.placements, self.frame = self._placed(fit, rows)
        self._frame_shape = (*self.frame, feature.channels)
        shape = self._frame_shape
        if feature.layout == "CHW":
            shape = (feature.channels, *self.frame)
        self._out = rows.allocate(
            name, (len(lists.frames), *self.patches, *shape), np.dtype(feature.dtype)
        )
        self._images = self._out.reshape(len(self.placements), *shape)
        self._equals = self._find_equals() if feature.count is not None else {}
        self._is_filled = bytearray(len(self.placements))
        super().__init__(lists.entries(name, self._out, self.placements))

    def _placed(self, fit: Fit, rows: BatchRows) -> tuple[list[Placement | None], tuple[int, int]]:
        return place_all(fit, self.sizes, self._name, rows, self._lists.row_splits)

    def _find_equals(self) -> dict[int, int]:
        """Return the first image that equals an image and is placed alike, as windows share them.

        Both are the numbers of images.
        """
        firsts: dict[object, int] = {}
        equals = {}
        for number, placement in enumerate(self.placements):
            if placement is not None:
                sample = placement, self._stored.sample(number)
                first = firsts.setdefault(sample, number)
                if first < number and self._stored.are_equal(first, number):
                    equals[number] = first
        return equals

    def _look(self, number: int, fit: Fit) -> tuple[int, int] | None:
        """Return the size of an image without decoding it; None for one without bytes."""
        if self._feature.count is not None and self._stored.is_empty(number):
            return None
        return self._checked(self._stored.look(number, is_cropped=fit.crops))

    def _checked(self, size: tuple[int, int]) -> tuple[int, int]:
        """Raise CorruptDataError if all images should have one size, but this one has another."""
        feature = self._feature
        if feature.stored_size not in (None, size):
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"the image {feature.key!r} has another size than the first image",
                found=in_words(size),
                expected=in_words(feature.stored_size),
                remedy=f"Declare a size: {line_with_size(self._name, feature)}.",
                feature=feature.key,
            )
        return size

    def fill(self, row: int) -> None:
        for number in self._lists.of_row(row):
            equal = self._equals.get(number)
            if equal is not None and self._is_filled[equal]:  # otherwise in another thread
                self._images[number] = self._images[equal]
            else:
                self._lists.call(self._fill_image, number)
                self._is_filled[number] = True

    def _fill_image(self, number: int) -> None:
        feature, placement, out = self._feature, self.placements[number], self._images[number]
        if placement is None:  # without bytes
            number_type = np.uint16 if self._bits == 16 else np.uint8
            black = np.zeros(self._frame_shape, number_type if self._is_scaled else np.float32)
            self._normaliser.write(black, out, _largest(black))
            return
        raw = self._stored.numbers(number)
        if raw is not None:
            self._place(out, placement, self._part_of(raw, placement), 1)
            return
        divisor = self._divisor(number, placement)
        part = self._stored.part(number, Window(*placement[:4]), divisor)
        with self._stored.room(part, channels=feature.channels, divisor=divisor, extra=self._extra):
            decoded = part.decode(
                channels=feature.channels,
                bits=self._bits,
                divisor=divisor,
                max_pixels=feature.max_pixels,
                out=out if self._is_direct and out.dtype == np.uint8 else None,
            )
            self.decoded_counts[number] = decoded.pixel_count
            self._place(out, placement, decoded, divisor)

    def _part_of(self, raw: npt.NDArray[Any], placement: Placement) -> Part:
        top, left, height, width = placement[:4]
        pixels = self._stored.pixels(raw[top : top + height, left : left + width])
        if self._is_scaled:
            pixels = convert_pixels(pixels, self._feature.channels, self._bits)
        return Part(pixels, top, left)

    def _place(self, out: npt.NDArray[Any], placement: Placement, part: Part, divisor: int) -> None:
        feature, pixels = self._feature, part.pixels
        is_resized = placement[2:4] != placement[4:6]
        dtype: Any = np.float32 if feature.exact and is_resized else pixels.dtype
        frame = (
            out if self._is_direct and dtype == out.dtype else np.empty(self._frame_shape, dtype)
        )
        place_image(
            pixels,
            placement,
            frame,
            top=part.top,
            left=part.left,
            divisor=divisor,
            interpolation=self._interpolation,
        )
        if frame is not out:
            self._normaliser.write(frame, out, _largest(pixels))

    def _divisor(self, number: int, placement: Placement) -> int:
        head = self._stored.file(number)[1]
        if self._feature.exact or head.format != "jpeg":
            return 1
        return divisor_for(placement, head.height, head.width)


_normaliser = lru_cache(maxsize=16)(Normaliser)  # one for all batches of a loader


def _largest(pixels: npt.NDArray[Any]) -> int:
    """Return the number that becomes 1: white, or 1 for pixels that are not scaled."""
    return 1 if pixels.dtype == np.float32 else np.iinfo(pixels.dtype).max


def in_words(size: tuple[int, int]) -> str:
    """Return a size as text, width before height."""
    return f"{size[1]} x {size[0]}"


def line_with_size(name: str, image: Image) -> str:
    """Return the code that declares an image with a size."""
    key = "" if image.key == IMAGE else f"{json.dumps(image.key)}, "
    return f"{{{json.dumps(name)}: rs.Image({key}size=224)}}"


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
    limit = " and at most 1" if highest == 1 else ""
    expected = f"the smallest and the largest, above 0{limit}"
    check_option(0 < low <= high <= highest, name, values, expected)
    return low, high
