"""Mask files: does this one fit its picture, and are its pixels numbers? Then its features.

A PNG of grey or palette pixels is stored as it is, byte by byte, so 1-bit, palette and 16-bit
masks keep their values. Only a mask that must be changed is decoded: colours that become numbers
by a table, and lossless files of other formats, which become PNG. Nothing is scaled or rounded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.errors import OptionError, SourceError, located
from recordsmith.example.keys import HEIGHT, MASK, MASK_FORMAT, PICTURE, WIDTH
from recordsmith.files import PathLike, read_file
from recordsmith.image import (
    MaskInfo,
    encode_mask,
    exif_orientation,
    palette_colours,
    probe_mask,
    read_by_pillow,
)
from recordsmith.image.colours import (
    LARGEST_NUMBER,
    Colour,
    Unknown,
    colours_in,
    grey_colours,
    number_colours,
    voc_colours,
)
from recordsmith.sources.contract import Note

Colours: TypeAlias = Mapping[Colour, int]
ColoursOption: TypeAlias = Colours | Literal["voc", "grey"]

_PRESETS = {"voc": voc_colours, "grey": grey_colours}
_SHOWN = 4
_TURNED = "a picture with an EXIF orientation: its mask is taken to fit the picture as stored"
_TO_PNG = "a mask of another format was stored as a PNG of the same values"
_TO_NUMBERS = "the colours of a mask were turned into class numbers"
_NO_ALPHA = "the alpha channel of a mask was left out"


def read_mask(
    path: PathLike, picture: Mapping[str, Any], colours: Colours | None, note: Note
) -> dict[str, Any]:
    """The features of a mask file.

    Args:
        path: of the mask.
        picture: the features of its picture, as `read_picture` gives them.
        colours: the number of each colour, for masks that were drawn in colours.
        note: hears what was changed.

    Raises:
        CorruptDataError: unreadable-image.
        SourceError: its size is not that of the picture, or its pixels are no numbers.
        FileAccessError: it cannot be read.
    """
    name = os.fspath(path)
    data = read_file(path)
    with located(name):
        info = probe_mask(data)
    _check_size(name, info, picture, note)
    _check_values(name, info, has_colours=colours is not None)
    if colours is not None and not _is_numbered_alike(data, info, colours):
        data = _numbered(name, data, info, colours, note)
    elif info.format != "png" or info.has_alpha or info.kind == "colour":
        data = _as_png(name, data, info, note)
    return {
        MASK: data,
        MASK_FORMAT: "png",
    }


def check_colours(colours: ColoursOption | None) -> dict[Colour, int] | None:
    """The table that the option means.

    Raises:
        OptionError: it is none.
    """
    if colours is None:
        return None
    if isinstance(colours, str):
        if colours not in _PRESETS:
            raise OptionError(f"colours is {colours!r}; expected 'voc', 'grey' or a table")
        return _PRESETS[colours]()
    if not isinstance(colours, Mapping) or not colours:
        raise OptionError(
            f"colours is {colours!r}; expected numbers by colour, such as {{(255, 0, 0): 1}}"
        )
    table = {}
    for colour, number in colours.items():
        try:
            red, green, blue = map(int, colour)
            is_colour = all(0 <= channel <= 255 for channel in (red, green, blue))
        except (TypeError, ValueError):
            is_colour = False
        if not is_colour:
            raise OptionError(f"colours has {colour!r}; expected (red, green, blue), each 0 to 255")
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise OptionError(f"colours has {number!r} for {colour}; expected an integer")
        if not 0 <= number <= LARGEST_NUMBER:
            raise OptionError(f"colours has {number} for {colour}; expected 0 to {LARGEST_NUMBER}")
        table[red, green, blue] = int(number)
    return table


# -- does it fit? --------------------------------------------------------------------------------


def _check_size(name: str, info: MaskInfo, picture: Mapping[str, Any], note: Note) -> None:
    size = picture[HEIGHT], picture[WIDTH]
    orientation = exif_orientation(picture[PICTURE])
    if (info.height, info.width) == size:
        # turned by half, mirrored, or square: the sizes do not tell how the mask was drawn
        if orientation in (2, 3, 4) or (orientation > 4 and info.height == info.width):
            note(_TURNED, f"{name}: orientation {orientation}")
        return
    mask, stored = f"{info.width}x{info.height}", f"{size[1]}x{size[0]}"
    if orientation > 4 and (info.width, info.height) == size:
        raise _problem(
            name,
            f"the mask is {mask}, its picture is stored as {stored} and turned when it is shown "
            f"(EXIF orientation {orientation}): the mask fits the turned picture, the stored "
            "pixels are not turned. Store the picture as it is shown (Pillow: "
            "ImageOps.exif_transpose), or turn the mask back",
        )
    raise _problem(
        name,
        f"the mask is {mask}, its picture {stored}; each pixel of the picture needs one of the "
        "mask. If they belong together, scale the mask to the picture's size by nearest "
        "neighbour, which makes no new numbers",
    )


# -- are its pixels numbers? ---------------------------------------------------------------------


def _check_values(name: str, info: MaskInfo, *, has_colours: bool) -> None:
    if info.is_lossy:
        raise _problem(
            name,
            "the mask is a JPEG: that changes pixels, so along edges its class numbers are not "
            "those that were drawn. Save the masks as PNG from what they were drawn with",
        )
    if info.kind == "float":
        raise _problem(name, "its pixels are fractions; expected class numbers in a PNG")
    if info.bits == 16 and (info.kind == "colour" or (info.has_alpha and info.format == "png")):
        raise _problem(
            name,
            "it has 16 bits in each of several channels; expected one channel of class numbers, "
            "or 8 bits a channel and a table of colours",
        )
    if has_colours and info.bits > 8:
        raise _problem(
            name,
            f"it has {info.bits} bits of grey, which are no colours; its values may be class "
            "numbers already: then leave out colours",
        )


def _is_numbered_alike(data: bytes, info: MaskInfo, colours: Colours) -> bool:
    """Whether the palette of a PNG says the same as the table, so that nothing is to be done."""
    if info.format != "png" or info.kind != "palette":
        return False
    palette = palette_colours(data)
    return bool(palette) and all(
        colours.get(colour) == number for number, colour in enumerate(palette)
    )


def _numbered(name: str, data: bytes, info: MaskInfo, colours: Colours, note: Note) -> bytes:
    """A PNG of class numbers from a mask of colours."""
    pixels = _pixels(name, data, "RGBA")[:, :, :3]
    numbers = number_colours(pixels, colours)
    if isinstance(numbers, Unknown):
        raise _problem(name, _unknown_colours(numbers, info))
    if info.has_alpha:
        note(_NO_ALPHA, name)
    note(_TO_NUMBERS, name)
    return encode_mask(numbers)


def _unknown_colours(unknown: Unknown, info: MaskInfo) -> str:
    pixels = f"{unknown.pixel_count:,} pixel{'s' * (unknown.pixel_count != 1)}"
    found = (
        f"{pixels} of {unknown.colour_count:,} colour{'s' * (unknown.colour_count != 1)} "
        f"that the table of colours does not have, the first at x {unknown.x}, y {unknown.y}: "
        f"{unknown.colour}"
    )
    if info.kind == "grey":
        return f"{found}. The mask is grey: if it holds class numbers already, leave out colours"
    return (
        f"{found}. Add them to the table; or, if they are blended edges, scale masks by nearest "
        "neighbour only and never save them as JPEG"
    )


def _as_png(name: str, data: bytes, info: MaskInfo, note: Note) -> bytes:
    """A PNG of one channel from a file that holds class numbers in another way."""
    if info.kind == "colour":
        raise _problem(name, _colours_found(_pixels(name, data, "RGBA")[:, :, :3]))
    values = _pixels(name, data, None)
    if values.ndim == 3:
        values = values[:, :, 0]
    if values.dtype == bool:
        values = values.astype(np.uint8)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > LARGEST_NUMBER:
        raise _problem(
            name, f"its values go from {low} to {high}; expected 0 to {LARGEST_NUMBER}, as in a PNG"
        )
    if info.has_alpha:
        note(_NO_ALPHA, name)
    if info.format != "png":
        note(_TO_PNG, f"{name}: {info.format}")
    return encode_mask(values.astype(np.uint8 if values.dtype == np.uint8 else np.uint16))


def _colours_found(pixels: npt.NDArray[np.uint8]) -> str:
    """Why a coloured mask is not taken, and what its colours look like."""
    colours = colours_in(pixels)
    shown = ", ".join(map(str, colours[:_SHOWN])) + (", …" if len(colours) > _SHOWN else "")
    count = f"{len(colours):,} colour{'s' * (len(colours) != 1)}"
    found = f"the mask holds colours ({count}: {shown}); expected class numbers"
    if set(colours) <= set(grey_colours()):
        return f"{found}. All are greys: if their brightness is the number, say colours='grey'"
    if set(colours) <= set(voc_colours()):
        return f"{found}. They are PASCAL VOC's: say colours='voc'"
    if len(colours) > 256:
        return (
            f"{found}. That is too many for classes: is this a picture, or a mask that was "
            "scaled or saved as JPEG?"
        )
    return f"{found}. Say which is which, such as colours={{{colours[0]}: 0, …}}"


def _pixels(name: str, data: bytes, mode: str | None) -> Any:
    """The pixels of a mask, as Pillow has them or in another mode."""
    with located(name), read_by_pillow(data, "mask") as image:
        frame_count = getattr(image, "n_frames", 1)
        pixels = np.array(image if mode is None else image.convert(mode))
    if frame_count > 1:
        raise _problem(name, f"it has {frame_count} frames; expected one")
    return pixels


def _problem(name: str, words: str) -> SourceError:
    return SourceError(f"{name}: {words}")
