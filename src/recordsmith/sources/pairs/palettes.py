"""Masks with palettes: whether the same index has the same colour in all of them.

A program that chooses a palette for each file gives a class another index in each, so that the
indices are not class numbers. Some masks are opened when they are listed; each one is compared with
them when it is read, in the entries that occur in its pixels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from recordsmith.image import Colour, palette_colours, read_by_pillow
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.stores import Location
from recordsmith.support.errors import RecordsmithError, SourceError, option

_OPENED = 12
_REMEDY = (
    f"If the colours are the classes, map them to class numbers with {option('colours')}; if the "
    f"indices are, pass {option('keep_indices', True)}."
)

Palette: TypeAlias = Mapping[int, Colour]
"""The colours of the indices that occur in pixels."""


def common_palette(root: Location, paths: Sequence[str]) -> dict[int, Colour]:
    """The colours of the indices in some of the masks; empty if the first one has no palette.

    Raises:
        SourceError: two masks have other colours for an index that both use.
    """
    known: dict[int, Colour] = {}
    step = max(1, len(paths) // _OPENED)
    for path in paths[::step][:_OPENED]:
        try:
            colours = used_colours((root / path).read())
        except RecordsmithError:
            continue  # reported when the sample is read
        if not colours and not known:
            break
        check_palette(path, colours, known)
        known |= colours
    return known


def has_palette(data: bytes, known: Palette) -> bool:
    """Whether all known indices have their colours in the palette of a mask, without decoding."""
    palette = palette_colours(data)
    return all(index >= len(palette) or palette[index] == known[index] for index in known)


def used_colours(data: bytes) -> dict[int, Colour]:
    """The colours of the indices in the pixels of a palette PNG; empty for another file."""
    palette = palette_colours(data)
    if not palette:
        return {}
    with read_by_pillow(data, "mask") as image:
        indices = np.unique(np.asarray(image)).tolist() if image.mode == "P" else []
    return {index: palette[index] for index in indices if index < len(palette)}


def check_palette(path: str, colours: Palette, known: Palette) -> None:
    """Check that the colours of a mask are those of other masks, for the indices of both."""
    for index, colour in colours.items():
        if known.get(index, colour) != colour:
            problem = (
                f"index {index} of the palette is {colour}, but {known[index]} in other masks, so "
                "indices are not class numbers"
            )
            raise SourceError(Flaw(problem, Check.MASK_VALUES), path=path, remedy=_REMEDY)
