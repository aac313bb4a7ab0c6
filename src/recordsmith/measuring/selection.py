"""Choose what to load: images if there are any, otherwise all columns."""

from __future__ import annotations

from recordsmith.errors import OptionError, option
from recordsmith.example import Schema
from recordsmith.example.keys import IMAGE, is_mask_key
from recordsmith.image.geometry.fit import FitKind
from recordsmith.loading import Image
from recordsmith.loading.features import Feature
from recordsmith.loading.number_options import whole_number


def image_key(schema: Schema, key: str | None) -> str | None:
    """The feature with the images; None if there are none.

    Raises:
        OptionError: the given key has no images.
    """
    images = [name for name, known in schema.features.items() if known.content == "image"]
    if key is None:
        no_masks = [name for name in images if not is_mask_key(name)]
        largest = max(no_masks, key=lambda name: schema.features[name].value_bytes, default=None)
        return IMAGE if IMAGE in images else largest
    if key in images:
        return key
    known = schema.features.get(key)
    what = "does not exist" if known is None else f"has {known.content or known.kind}, not images"
    remedy = f"Without {option('key')}, all columns are measured."
    if images:
        remedy = f"Images are in {', '.join(map(repr, images))}."
    raise OptionError(f"feature {key!r} {what}", option="key", value=key, remedy=remedy)


def image_of(key: str, size: tuple[int, int] | int, fit: FitKind) -> Image:
    """The loader feature for the images; with `pad`, the size is that of the longer side."""
    if fit == "pad":
        return Image(key, fit=fit, longer_side=whole_number("size", size, 1))
    return Image(key, size, fit)


def columns_of(schema: Schema) -> dict[str, Feature | str] | None:
    """All features with a single kind."""
    kinds = {key: known.kind for key, known in schema.features.items()}
    return {key: key for key, kind in kinds.items() if kind not in ("mixed", "none")} or None


def describe_image(image: Image) -> str:
    """Describe how images are decoded."""
    if image.size is None:
        return f"longer side {image.longer_side}, padded to the largest of a batch"
    assert isinstance(image.size, tuple)
    return f"{image.size[0]}x{image.size[1]}, fit={image.fit}"
