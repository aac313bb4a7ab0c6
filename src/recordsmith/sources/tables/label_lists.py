"""Recognise lists of the classes of images: CelebA's attributes, and Open Images' labels."""

from __future__ import annotations

import codecs
from typing import Literal

from recordsmith.sources.files.images import has_image_name

OPEN_IMAGES = ("ImageID", "LabelName", "Confidence")
_ROWS = 20
FLAGS = frozenset(("1", "-1"))


def recognise_label_list(head: bytes) -> Literal["celeba", "open-images"] | None:
    """Which list of classes a file is, from its first bytes; None for others.

    Attributes of CelebA are columns of 1 and -1 after the name of the image: in text, below lines
    with the number of rows and the names of the columns, or in CSV.
    """
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines()[: _ROWS + 2]]
    if len(lines) < 2 or lines[0].startswith(tuple("{[<")):
        return None
    names = [name.strip() for name in lines[0].split(",")]
    if {*OPEN_IMAGES} <= {*names}:
        return None if "XMin" in names else "open-images"
    rows = [line.split(",") for line in lines[1:] if line]
    if lines[0].isdecimal():
        names, rows = ["image_id", *lines[1].split()], [line.split() for line in lines[2:] if line]
    rows = rows[:-1] if len(rows) > 1 else rows  # the last one may be cut
    are_attributes = len(names) > 1 and names[0] == "image_id" and bool(rows)
    for name, *cells in rows:
        are_attributes &= has_image_name(name) and len(cells) == len(names) - 1
        are_attributes &= FLAGS.issuperset(map(str.strip, cells))
    return "celeba" if are_attributes else None
