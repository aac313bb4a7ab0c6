"""Names that datasets commonly use for the features of an image, and which features are images."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from recordsmith.format.example import keys
from recordsmith.format.example.schema import FeatureSchema

USUAL_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        keys.IMAGE: (keys.IMAGE, "image_raw", "image", "img", "picture", "jpeg", "png", "encoded"),
        keys.HEIGHT: (keys.HEIGHT, "height", "rows", "image_height"),
        keys.WIDTH: (keys.WIDTH, "width", "cols", "columns", "image_width"),
        keys.DEPTH: (keys.DEPTH, "image/channels", "depth", "channels"),
        keys.DTYPE: (keys.DTYPE, "dtype"),
        keys.FILENAME: (keys.FILENAME, "filename", "image/path", "path"),
        keys.MASK: (keys.MASK, "mask_raw", "mask", "segmentation", "label/encoded"),
        keys.CLASS_LABEL: (
            keys.CLASS_LABEL,
            "label",
            "class",
            "image/label",
            "class_label",
            "label/value",
        ),
        keys.CLASS_TEXT: (keys.CLASS_TEXT, "class_text", "label/text", "label_text", "class_name"),
    }
)
"""Each standard key with the names that are used for it, the most common first."""


def has_image_size(features: Mapping[str, FeatureSchema]) -> bool:
    """Return whether records have features for the height and width of an image."""
    sides = (USUAL_NAMES[key] for key in (keys.HEIGHT, keys.WIDTH))
    return all(not features.keys().isdisjoint(names) for names in sides)


def find_images(features: Mapping[str, FeatureSchema]) -> list[str]:
    """Return the features that may be the image of a record: the most probable first.

    These are encoded images, raw pixels with a usual name if their size is known, and
    `image/encoded`, whatever it holds.
    """
    named = [
        key
        for key in USUAL_NAMES[keys.IMAGE]
        if key in features
        and features[key].kind == "bytes"
        and (
            key == keys.IMAGE
            or features[key].content == "image"
            or (features[key].content == "raw" and has_image_size(features))
        )
    ]
    others = [
        key
        for key, feature in sorted(features.items(), key=lambda item: -item[1].value_bytes)
        if feature.content == "image" and not keys.may_be_mask(key) and key not in named
    ]
    return named + others
