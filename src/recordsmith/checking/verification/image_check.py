"""Decodes images and compares their size, format and channels with the values in their records.

Images are decoded completely, with the decoders used for training, because a damaged image may
still have an intact header. Records store these values in features with conventional names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from recordsmith.format.example.feature_values import only_value
from recordsmith.format.example.keys import DTYPE, IMAGE, MASK, MASK_DTYPE, OBJECT_MASK, is_mask_key
from recordsmith.image import (
    MAX_PIXELS,
    ImageHeader,
    Window,
    decode_part,
    decode_pixels,
    read_image_header,
    reserve_for_decoding,
    usual_name,
)
from recordsmith.support.errors import CorruptDataError, DataError, Defect

USUAL_KEYS = (IMAGE, MASK, OBJECT_MASK)
"""Features that must hold images, even if their bytes do not look like an image."""

_PLAIN_NAMES = {
    "height": ("height", "rows"),
    "width": ("width", "cols"),
    "format": ("format",),
    "channels": ("channels", "depth"),
}

_SWAPPED_SIDES = (
    "Height and width are swapped. They may have been measured after an EXIF rotation, which "
    "readers do not apply."
)


Declared: TypeAlias = Mapping[str, str | None]
"""The names of the features with the height, width, format and channels of an image."""


def find_declared(key: str, known: Collection[str], image_keys: Collection[str]) -> Declared:
    """Find the features that describe the images of `key`.

    These are features in the same folder, such as `a/height` for `a/encoded`. A mask uses the size
    of its image. If a record has only one image, plain names such as `height` count too. A
    thumbnail is not compared with the size of the main image.
    """
    folder, _, last = key.rpartition("/")
    is_main = key == IMAGE or last == "encoded" or len(image_keys) == 1

    def find(what: str) -> str | None:
        names = []
        if is_main and folder and not is_mask_key(key):
            names += [f"{folder}/{name}" for name in _PLAIN_NAMES[what]]
        if is_mask_key(key) and folder and what == "format":
            names.append(f"{folder}/format")
        if is_mask_key(key) and what in ("height", "width"):
            names += [f"image/{what}", *_PLAIN_NAMES[what]]
        if len(image_keys) == 1 and not is_mask_key(key):
            names += [f"image/{name}" for name in _PLAIN_NAMES[what]]
            names += _PLAIN_NAMES[what]
        return next((name for name in names if name in known), None)

    return {what: find(what) for what in _PLAIN_NAMES}


def needed_features(image_keys: Collection[str]) -> set[str]:
    """Return all features needed to check these images; nothing else is decoded."""
    folders = {"image", *(key.rpartition("/")[0] for key in image_keys)} - {""}
    plain = [name for names in _PLAIN_NAMES.values() for name in names]
    related = {f"{folder}/{name}" for folder in folders for name in plain}
    return {*image_keys, *plain, *related, DTYPE, MASK_DTYPE}


def check_example_images(
    example: Mapping[str, Any], image_keys: Collection[str]
) -> tuple[int, list[DataError]]:
    """Decode the images of an Example; return how many were decoded, and their defects."""
    count = 0
    errors: list[DataError] = []
    for key in image_keys:
        values = example.get(key)
        if not isinstance(values, list):
            continue
        declared = find_declared(key, example, image_keys)
        for number, data in enumerate(values):
            found: list[DataError] = []
            try:
                _check(key, data, example, declared, found)
            except DataError as error:
                if error.defect is Defect.UNREADABLE_IMAGE:
                    found.clear()
                found.append(error)
            which = f"feature {key!r}" + (f", value {number}" if len(values) > 1 else "")
            for problem in found:
                problem.problem, problem.feature = f"{which}: {problem.problem}", key
            errors += found
            count += 1
    return count, errors


def _decode_in_bands(data: bytes, head: ImageHeader) -> None:
    """Decode a JPEG that is too large to decode at once."""
    height = max(1, MAX_PIXELS // 4 // head.width)
    for top in range(0, head.height, height):
        window = Window(top, 0, min(height, head.height - top), head.width)
        decode_part(data, head, window)


def _check(
    key: str,
    data: bytes,
    example: Mapping[str, Any],
    declared: Declared,
    found: list[DataError],
) -> None:
    """Raise the first fatal defect; add defects that allow further checks to `found`."""

    def add_damage(detail: str) -> None:
        found.append(CorruptDataError(Defect.DAMAGED_IMAGE, detail))

    sides = _number(example, declared["height"]), _number(example, declared["width"])
    image_format = _text(example, declared["format"])
    if image_format == "raw" or (
        image_format is None and key == MASK and _text(example, MASK_DTYPE)
    ):
        _check_raw(key, data, example, declared, sides)
        return
    head = read_image_header(data)
    if head.format == "jpeg" and head.height * head.width > MAX_PIXELS:
        _decode_in_bands(data, head)
    else:
        with reserve_for_decoding(data, head, max_pixels=MAX_PIXELS):
            decode_pixels(data, head, channels=3, bits=None, on_damage=add_damage)
    sides_found = head.height, head.width
    if any(side not in (None, true) for side, true in zip(sides, sides_found, strict=True)):
        expected = " and ".join(
            f"{name} {side}"
            for name, side in zip((declared["height"], declared["width"]), sides, strict=True)
            if side is not None
        )
        raise CorruptDataError(
            Defect.IMAGE_SIZE,
            "the size of the image differs from its record",
            found=f"{head.height} x {head.width} pixels (height x width)",
            expected=expected,
            remedy=_SWAPPED_SIDES if sides == (head.width, head.height) else "",
        )
    if image_format is not None and _plain_format(image_format) != _plain_format(head.format):
        raise CorruptDataError(
            Defect.IMAGE_FORMAT,
            "the format of the image differs from its record",
            found=head.format,
            expected=f"{declared['format']} {image_format!r:.40}",
        )
    _check_channels(example, declared, head)


def _check_channels(example: Mapping[str, Any], declared: Declared, head: ImageHeader) -> None:
    expected = _number(example, declared["channels"])
    if expected is None or expected == 3:  # decoders return three channels, so writers store 3
        return
    if expected != head.channels:
        raise CorruptDataError(
            Defect.IMAGE_SIZE,
            "the number of channels of the image differs from its record",
            found=str(head.channels),
            expected=f"{declared['channels']} {expected}",
        )


def _check_raw(
    key: str,
    data: bytes,
    example: Mapping[str, Any],
    declared: Declared,
    sides: tuple[int | None, int | None],
) -> None:
    """Check the number of bytes; pixels without a header allow no other check."""
    height, width = sides
    if height is None or width is None:
        return
    is_mask = is_mask_key(key)
    name = _text(example, MASK_DTYPE if is_mask else DTYPE) or "uint8"
    try:
        item = np.dtype(name).itemsize
    except TypeError:
        return
    channels = 1 if is_mask else _number(example, declared["channels"]) or 3
    expected = height * width * channels * item
    if len(data) != expected:
        raise CorruptDataError(
            Defect.IMAGE_SIZE,
            "the raw image has the wrong number of bytes",
            found=str(len(data)),
            expected=f"{expected} for {height} x {width} pixels with {channels} {name} values each",
        )


def _number(example: Mapping[str, Any], key: str | None) -> int | None:
    value = only_value(example, key)
    return None if value is None or isinstance(value, bytes) else int(value)


def _text(example: Mapping[str, Any], key: str | None) -> str | None:
    value = only_value(example, key)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def _plain_format(name: str) -> str:
    return usual_name(name.strip().lower().lstrip(".").removeprefix("image/"))
