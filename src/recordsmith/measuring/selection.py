"""What of the records is loaded while it is measured? Their pictures, or else all their columns."""

from __future__ import annotations

from recordsmith.errors import OptionError
from recordsmith.example import Schema
from recordsmith.example.keys import PICTURE, is_of_mask
from recordsmith.image.fit import FitKind
from recordsmith.loading import Image
from recordsmith.loading.features import Feature
from recordsmith.loading.options import whole_number


def picture_key(schema: Schema, key: str | None) -> str | None:
    """The feature that holds the pictures; None if there are none.

    Raises:
        OptionError: one was named that holds none.
    """
    pictures = [name for name, known in schema.features.items() if known.content == "image"]
    if key is None:
        no_masks = [name for name in pictures if not is_of_mask(name)]
        largest = max(no_masks, key=lambda name: schema.features[name].value_bytes, default=None)
        return PICTURE if PICTURE in pictures else largest
    if key in pictures:
        return key
    known = schema.features.get(key)
    what = "it is in no record" if known is None else f"it holds {known.content or known.kind}"
    found = "no feature holds any, so leave the key out to measure columns"
    if pictures:
        found = f"they are in {', '.join(map(repr, pictures))}"
    raise OptionError(f"there are no pictures in {key!r}, as {what}: {found}")


def image_of(key: str, size: tuple[int, int] | int, fit: FitKind) -> Image:
    """The feature that decodes the pictures; with `pad`, the size is that of their longer side."""
    if fit == "pad":
        return Image(key, fit=fit, longer_side=whole_number("size", size, 1))
    return Image(key, size, fit)


def columns_of(schema: Schema) -> dict[str, Feature | str] | None:
    """Every feature that has one kind."""
    kinds = {key: known.kind for key, known in schema.features.items()}
    return {key: key for key, kind in kinds.items() if kind not in ("mixed", "none")} or None


def in_words(image: Image) -> str:
    """What becomes of the pictures."""
    if image.size is None:
        return f"longer side {image.longer_side}, padded to the largest of a batch"
    assert isinstance(image.size, tuple)
    return f"{image.size[0]}x{image.size[1]}, fit={image.fit}"
