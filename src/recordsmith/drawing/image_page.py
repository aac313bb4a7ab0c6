"""Write a page of tiles as an image file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from recordsmith.errors import OptionError
from recordsmith.stores import Location, write_atomically

if TYPE_CHECKING:
    from PIL import Image

TILE = 288
"""The side of a tile in pixels."""

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_LARGEST_SIDE = 65_000  # a JPEG cannot have more


def check_page(path: Location, count: int, columns: int, *, overwrite: bool) -> None:
    """Raise OptionError if a page of `count` tiles cannot be written to a path."""
    if path.suffix.lower() not in _FORMATS:
        raise OptionError(
            option="out", value=str(path), expected="a file name ending in .png or .jpg"
        )
    for name, value in (("count", count), ("columns", columns)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(option=name, value=value, expected="a positive integer")
    most = _LARGEST_SIDE // (TILE * 3 // 2)
    if columns > most:
        raise OptionError(option="columns", value=columns, expected=f"at most {most}")
    path.check_target(overwrite=overwrite)


def check_fits(count: int, columns: int) -> None:
    """Raise OptionError if `count` tiles are too many for one page."""
    most = _LARGEST_SIDE // (TILE * 3 // 2) * columns
    if count > most:
        raise OptionError(
            option="count", value=count, expected=f"at most {most} with {columns} columns"
        )


def write_page(page: Image.Image, path: Location, *, overwrite: bool) -> None:
    """Write a page atomically."""
    stream = io.BytesIO()
    page.save(stream, _FORMATS[path.suffix.lower()], quality=92)
    write_atomically(path, stream.getvalue(), overwrite=overwrite)
