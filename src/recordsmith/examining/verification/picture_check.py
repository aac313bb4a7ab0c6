"""Does every picture decode, and is it what its record says of it? Size, format, channels.

Pictures are decoded whole, by the decoders that training uses, as a header may be all that is left
of one. What a record says of a picture stands in features beside it, by the usual names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example.keys import DTYPE, MASK, MASK_DTYPE, OBJECT_MASK, PICTURE, is_of_mask
from recordsmith.image import channel_count
from recordsmith.image.options import MOST_PIXELS
from recordsmith.image.pixels import PictureHead, decode_pixels, look_at_picture

USUAL_KEYS = (PICTURE, MASK, OBJECT_MASK)
"""Features that shall hold pictures even where they do not begin like some."""

_PLAIN_NAMES = {
    "height": ("height", "rows"),
    "width": ("width", "cols"),
    "format": ("format",),
    "channels": ("channels", "depth"),
}
_SAME_FORMAT = {"jpg": "jpeg", "jpe": "jpeg", "jfif": "jpeg", "mpo": "jpeg", "tif": "tiff"}


class Declared(NamedTuple):
    """Which features say what of the pictures of another; None where none does."""

    height: str | None = None
    width: str | None = None
    format: str | None = None
    channels: str | None = None


def declared_of(key: str, known: Collection[str], picture_keys: Collection[str]) -> Declared:
    """Which of the features that there are speak of the pictures of `key`.

    Those beside it, `a/height` of `a/encoded`; of masks those of the picture, whose size they
    share; and where there is one picture only, also plain names. A thumbnail beside a picture is
    not held against the picture's size.
    """
    folder, _, last = key.rpartition("/")
    is_main = key == PICTURE or last == "encoded" or len(picture_keys) == 1

    def find(what: str) -> str | None:
        names = []
        if is_main and folder and not is_of_mask(key):
            names += [f"{folder}/{name}" for name in _PLAIN_NAMES[what]]
        if is_of_mask(key) and folder and what == "format":
            names.append(f"{folder}/format")
        if is_of_mask(key) and what in ("height", "width"):
            names += [f"image/{what}", *_PLAIN_NAMES[what]]
        if len(picture_keys) == 1 and not is_of_mask(key):
            names += [f"image/{name}" for name in _PLAIN_NAMES[what]]
            names += _PLAIN_NAMES[what]
        return next((name for name in names if name in known), None)

    return Declared(*map(find, Declared._fields))


def names_beside(picture_keys: Collection[str]) -> set[str]:
    """All features that may be asked for when these are checked: nothing else is decoded."""
    folders = {"image", *(key.rpartition("/")[0] for key in picture_keys)} - {""}
    plain = [name for names in _PLAIN_NAMES.values() for name in names]
    beside = {f"{folder}/{name}" for folder in folders for name in plain}
    return {*picture_keys, *plain, *beside, DTYPE, MASK_DTYPE}


def check_pictures(
    example: Mapping[str, Any], picture_keys: Collection[str]
) -> tuple[int, list[CorruptDataError]]:
    """How many pictures of an example were decoded, and what is wrong with them."""
    count = 0
    errors: list[CorruptDataError] = []
    for key in picture_keys:
        values = example.get(key)
        if not isinstance(values, list):
            continue
        declared = declared_of(key, example, picture_keys)
        for number, data in enumerate(values):
            try:
                _check(key, data, example, declared)
            except CorruptDataError as error:
                which = f"feature {key!r}" + (f", value {number}" if len(values) > 1 else "")
                error.detail, error.feature = f"{which}: {error.detail}", key
                errors.append(error)
            count += 1
    return count, errors


def _check(key: str, data: bytes, example: Mapping[str, Any], declared: Declared) -> None:
    sides = _number(example, declared.height), _number(example, declared.width)
    said = _text(example, declared.format)
    if said == "raw" or (said is None and key == MASK and _text(example, MASK_DTYPE)):
        _check_raw(key, data, example, declared, sides)
        return
    head = look_at_picture(data, max_pixels=MOST_PIXELS)
    decode_pixels(data, head, channels=3, bits=None)
    found = head.height, head.width
    if any(side not in (None, true) for side, true in zip(sides, found, strict=True)):
        turned = (
            " The sides are exchanged: it may have been measured after it was turned as its EXIF "
            "data says, which readers do not heed."
            if sides == (head.width, head.height)
            else ""
        )
        said_sides = " and ".join(
            f"{name} says {side}"
            for name, side in zip((declared.height, declared.width), sides, strict=True)
            if side is not None
        )
        raise CorruptDataError(
            Defect.IMAGE_SIZE,
            f"the picture has {head.height} x {head.width} pixels (height x width), but "
            f"{said_sides}.{turned}",
        )
    if said is not None and _plain_format(said) != _plain_format(head.format):
        raise CorruptDataError(
            Defect.IMAGE_FORMAT,
            f"the picture is {head.format}, but {declared.format} says {said!r:.40}",
        )
    _check_channels(data, example, declared, head)


def _check_channels(
    data: bytes, example: Mapping[str, Any], declared: Declared, head: PictureHead
) -> None:
    said = _number(example, declared.channels)
    if said is None or said == 3:  # decoders give three of any picture, and writers say so
        return
    found = head.component_count or channel_count(data)
    if said != found:
        raise CorruptDataError(
            Defect.IMAGE_SIZE,
            f"the picture has {found} channels, but {declared.channels} says {said}",
        )


def _check_raw(
    key: str,
    data: bytes,
    example: Mapping[str, Any],
    declared: Declared,
    sides: tuple[int | None, int | None],
) -> None:
    """Rows of pixels without a header: all that can be wrong is how many bytes there are."""
    height, width = sides
    if height is None or width is None:
        return
    is_mask = is_of_mask(key)
    name = _text(example, MASK_DTYPE if is_mask else DTYPE) or "uint8"
    try:
        item = np.dtype(name).itemsize
    except TypeError:
        return
    channels = 1 if is_mask else _number(example, declared.channels) or 3
    expected = height * width * channels * item
    if len(data) != expected:
        raise CorruptDataError(
            Defect.IMAGE_SIZE,
            f"the raw picture has {len(data)} bytes; {height} x {width} pixels of {channels} "
            f"{name} values take {expected}",
        )


def _number(example: Mapping[str, Any], key: str | None) -> int | None:
    values = [] if key is None else example[key]
    if len(values) != 1 or isinstance(values[0], bytes):
        return None
    return int(values[0])


def _text(example: Mapping[str, Any], key: str | None) -> str | None:
    values = [] if key is None else example.get(key, [])
    if len(values) != 1 or not isinstance(values[0], bytes):
        return None
    return values[0].decode("utf-8", "replace")


def _plain_format(name: str) -> str:
    plain = name.strip().lower().lstrip(".").removeprefix("image/")
    return _SAME_FORMAT.get(plain, plain)
