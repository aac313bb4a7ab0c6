"""Check mask files against their images and convert them to PNGs of class numbers.

Gray and palette PNGs are stored unchanged, so 1-bit, palette and 16-bit masks keep their values.
Only color-coded masks and other lossless formats are decoded and converted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.keys import HEIGHT, IMAGE, MASK, MASK_FORMAT, WIDTH
from recordsmith.image import (
    LARGEST_NUMBER,
    Colour,
    MaskInfo,
    UnknownColours,
    colours_to_numbers,
    distinct_colours,
    encode_mask,
    exif_orientation,
    grey_colours,
    palette_colours,
    probe_mask,
    read_by_pillow,
    voc_colours,
)
from recordsmith.sources.files.name_files import read_text
from recordsmith.sources.files.paths import is_file, relative_place
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.samples import Note
from recordsmith.stores import Location, PlaceLike, as_location
from recordsmith.support.errors import OptionError, SourceError, located, option
from recordsmith.support.words import count

Colours: TypeAlias = Mapping[Colour, int]
ColoursOption: TypeAlias = Colours | Literal["voc", "grey"]

PRESETS = {"grey": grey_colours, "voc": voc_colours}
_SHOWN = 4
_NUMBERS_ALREADY = f"If the pixels are class numbers already, leave out {option('colours')}."
_ADD_COLOURS = (
    "Add them to the table of colours. If they are blended edges, resize masks only with "
    "nearest-neighbour interpolation and do not save them as JPEG."
)
_TURNED = Flaw(
    "images have an EXIF orientation; their masks were taken to fit the stored image",
    Check.EXIF_ORIENTATION,
)
_TO_PNG = "masks of other formats were stored as PNG with the same values"
_TO_NUMBERS = "masks were converted from colours to class numbers"
_NO_ALPHA = "masks lost their alpha channel"


def mask_features(
    name: str, data: bytes, image: Mapping[str, Any], colours: Colours | None, note: Note
) -> dict[str, Any]:
    """The features of a mask from its encoded bytes, which must fit the features of its image.

    `name` is for messages; `colours` has the class number of each colour of color-coded masks.
    """
    with located(name):
        info = probe_mask(data)
    _check_size(name, info, image, note)
    _check_values(name, info, has_colours=colours is not None)
    if colours is not None and not _has_same_numbers(data, info, colours):
        data = _numbered(name, data, info, colours, note)
    elif info.format != "png" or info.has_alpha or info.kind == "colour":
        data = _as_png(name, data, info, note)
    return {MASK: data, MASK_FORMAT: "png"}


def check_colours(
    colours: ColoursOption | PlaceLike | None, root: Location | None = None
) -> dict[Colour, int] | None:
    """The class number of each colour; the path of a file of colours may be relative to a root."""
    if colours is None:
        return None
    if isinstance(colours, str) and colours in PRESETS:
        return PRESETS[colours]()
    table: dict[Colour, int] = {}
    if isinstance(colours, (str, os.PathLike)):
        file = relative_place(root, colours, as_location)
        names = parse_colour_table(read_text(file)) if is_file(file) else []
        for number, (colour, _) in enumerate(names):
            table.setdefault(colour, number)
    elif isinstance(colours, Mapping):
        for colour, number in colours.items():
            if not _is_colour(colour) or not _is_number(number, LARGEST_NUMBER):
                raise OptionError(
                    option="colours",
                    value={colour: number},
                    expected="(red, green, blue), each 0 to 255, and an integer from 0 to "
                    f"{LARGEST_NUMBER}",
                )
            red, green, blue = map(int, colour)
            table[red, green, blue] = int(number)
    if not table:
        raise OptionError(
            option="colours",
            value=colours,
            expected="'voc', 'grey', a mapping from colours to class numbers, or a file with the "
            "red, green, blue and name of each class",
        )
    return table


def _is_colour(colour: Any) -> bool:
    is_triple = isinstance(colour, Sequence) and len(colour) == 3
    return is_triple and all(_is_number(level, 255) for level in colour)


def _is_number(value: Any, largest: int) -> bool:
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return is_integer and 0 <= value <= largest


def parse_colour_table(text: str) -> list[tuple[Colour, str]]:
    """The colour and the name of each class, from lines such as `64 128 64 Animal`.

    Lines without three numbers from 0 to 255, such as a heading, are left out.
    """
    table = []
    for line in text.splitlines():
        parts = [part for part in re.split(r"[\s,;]+", line.strip()) if part]
        numbers = [int(part) for part in parts if _is_level(part)]
        names = [part for part in parts if not _is_level(part)]
        if len(numbers) == 3 and max(numbers) <= 255 and not line.lstrip().startswith("#"):
            table.append(((numbers[0], numbers[1], numbers[2]), " ".join(names)))
    return table


def _is_level(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 3


def _check_size(name: str, info: MaskInfo, image: Mapping[str, Any], note: Note) -> None:
    size = image[HEIGHT], image[WIDTH]
    orientation = exif_orientation(image[IMAGE])
    if (info.height, info.width) == size:
        # rotated by 180 degrees, mirrored or square: equal sizes do not show how it was drawn
        if orientation in (2, 3, 4) or (orientation > 4 and info.height == info.width):
            note(_TURNED, f"{name}: orientation {orientation}")
        return
    mask, stored = f"{info.width}x{info.height}", f"{size[1]}x{size[0]}"
    if orientation > 4 and (info.width, info.height) == size:
        raise _error(
            name,
            f"the mask is {mask}, which fits the image only after its EXIF orientation "
            f"{orientation} is applied; the stored image is {stored}",
            Check.EXIF_ORIENTATION,
            "Rotate the mask back, or store the image rotated (Pillow: ImageOps.exif_transpose).",
        )
    raise _error(
        name,
        f"the mask is {mask}, but its image is {stored}",
        Check.MASK_SIZE,
        "If they belong together, resize the mask with nearest-neighbour interpolation.",
    )


def _check_values(name: str, info: MaskInfo, *, has_colours: bool) -> None:
    problem = remedy = ""
    if info.is_lossy:
        problem = "the mask is a JPEG, whose compression changes class numbers along edges"
        remedy = "Export the masks as PNG from the annotation tool."
    elif info.kind == "float":
        problem = "the pixels are floats; expected class numbers in a PNG"
    elif info.bits == 16 and (info.kind == "colour" or (info.has_alpha and info.format == "png")):
        problem = (
            "the mask has several channels of 16 bits; expected one channel of class numbers, or "
            "colours of 8 bits per channel"
        )
    elif has_colours and info.bits > 8:
        problem = f"the mask is gray with {info.bits} bits; expected colours"
        remedy = _NUMBERS_ALREADY
    if problem:
        raise _error(name, problem, Check.MASK_FORMAT, remedy)


def _has_same_numbers(data: bytes, info: MaskInfo, colours: Colours) -> bool:
    """Whether a PNG's palette has the colours of the table in order, so nothing changes."""
    if info.format != "png" or info.kind != "palette":
        return False
    palette = palette_colours(data)
    return bool(palette) and all(
        colours.get(colour) == number for number, colour in enumerate(palette)
    )


def _numbered(name: str, data: bytes, info: MaskInfo, colours: Colours, note: Note) -> bytes:
    """A PNG of class numbers from a color-coded mask."""
    pixels = _pixels(name, data, "RGBA")[:, :, :3]
    numbers = colours_to_numbers(pixels, colours)
    if isinstance(numbers, UnknownColours):
        pixels, kinds = count(numbers.pixel_count, "pixel"), count(numbers.colour_count, "colour")
        raise _error(
            name,
            f"{pixels} of {kinds} missing from the table, the first at x {numbers.x}, y "
            f"{numbers.y}: {numbers.colour}",
            Check.MASK_VALUES,
            _NUMBERS_ALREADY if info.kind == "grey" else _ADD_COLOURS,
        )
    if info.has_alpha:
        note(_NO_ALPHA, name)
    note(_TO_NUMBERS, name)
    return encode_mask(numbers)


def _as_png(name: str, data: bytes, info: MaskInfo, note: Note) -> bytes:
    """A PNG with one channel from a file with class numbers in another form."""
    if info.kind == "colour":
        raise _color_coded(name, _pixels(name, data, "RGBA")[:, :, :3])
    values = _pixels(name, data, None)
    if values.ndim == 3:
        values = values[:, :, 0]
    if values.dtype == bool:
        values = values.astype(np.uint8)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > LARGEST_NUMBER:
        problem = f"the values range from {low} to {high}; expected 0 to {LARGEST_NUMBER}"
        raise _error(name, problem, Check.MASK_VALUES)
    if info.has_alpha:
        note(_NO_ALPHA, name)
    if info.format != "png":
        note(_TO_PNG, f"{name}: {info.format}")
    return encode_mask(values.astype(np.uint8 if values.dtype == np.uint8 else np.uint16))


def _color_coded(name: str, pixels: npt.NDArray[np.uint8]) -> SourceError:
    colours = distinct_colours(pixels)
    shown = ", ".join(map(str, colours[:_SHOWN])) + (", …" if len(colours) > _SHOWN else "")
    if set(colours) <= set(grey_colours()):
        remedy = f"If the brightness is the class number, pass {option('colours', 'grey')}."
    elif set(colours) <= set(voc_colours()):
        remedy = f"They are PASCAL VOC's colours: pass {option('colours', 'voc')}."
    elif len(colours) > 256:
        remedy = "These are too many for classes: is it an image, or a resized or JPEG mask?"
    else:
        remedy = f"Map each colour to its class number with {option('colours')}."
    number = count(len(colours), "colour")
    problem = f"the mask has colours ({number}: {shown}); expected class numbers"
    return _error(name, problem, Check.MASK_FORMAT, remedy)


def _pixels(name: str, data: bytes, mode: str | None) -> Any:
    """The pixels of a mask, in its own or another Pillow mode."""
    with located(name), read_by_pillow(data, "mask") as image:
        frame_count = getattr(image, "n_frames", 1)
        pixels = np.array(image if mode is None else image.convert(mode))
    if frame_count > 1:
        problem = f"the mask has {frame_count} frames; expected one"
        raise _error(name, problem, Check.MASK_FORMAT)
    return pixels


def _error(name: str, problem: str, check: Check, remedy: str = "") -> SourceError:
    return SourceError(Flaw(problem, check), path=name, remedy=remedy)
