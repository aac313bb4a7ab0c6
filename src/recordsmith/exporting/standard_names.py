"""Finds the image of records whatever its key is, and gives it and its features standard keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recordsmith.format.example import Features, FeatureSchema, keys
from recordsmith.format.example.usual_names import USUAL_NAMES, find_images
from recordsmith.image import starts_like_image
from recordsmith.support.errors import OptionError, option, shown_value
from recordsmith.support.words import did_you_mean

_KINDS = {
    keys.HEIGHT: "int64",
    keys.WIDTH: "int64",
    keys.DEPTH: "int64",
    keys.CLASS_LABEL: "int64",
    keys.DTYPE: "bytes",
    keys.FILENAME: "bytes",
    keys.CLASS_TEXT: "bytes",
}
_OF_PIXELS = (keys.HEIGHT, keys.WIDTH, keys.DEPTH, keys.DTYPE)
_OTHER = "other/"
"""Begins the keys of a standard image and its description where another image is exported."""


@dataclass(frozen=True)
class StandardNames:
    """The features that stand for those with standard keys: key in the records -> standard key."""

    standard: dict[str, str] = field(default_factory=dict)

    @property
    def image_key(self) -> str:
        """The key of the image in the records."""
        return next((key for key, new in self.standard.items() if new == keys.IMAGE), keys.IMAGE)

    def apply(self, example: Features) -> Features:
        """Rename the features of an example, unless it has the standard ones, too."""
        standard = self.standard
        if keys.IMAGE in example and self.image_key != keys.IMAGE:
            standard = standard | {
                key: _OTHER + key for key in (keys.IMAGE, keys.FORMAT, *_OF_PIXELS)
            }
        renamed = {
            key: new
            for key, new in standard.items()
            if key in example and (new not in example or new in standard)
        }
        if not renamed:
            return example
        result = {renamed.get(key, key): value for key, value in example.items()}
        for key, format_key in ((keys.IMAGE, keys.FORMAT), (keys.MASK, keys.MASK_FORMAT)):
            if key in renamed.values() and format_key not in example and _is_raw(result[key]):
                result[format_key] = [b"raw"]
        return result


def find_standard_names(
    features: Mapping[str, FeatureSchema], image_key: str | None = None, *, is_only: bool = True
) -> StandardNames:
    """Choose the image of a dataset and the features that describe it.

    Args:
        features: the schema of the records.
        image_key: the key of the image; None to find it.
        is_only: whether several possible images are an error.

    Raises:
        OptionError: several features may be the image, or `image_key` is not the key of one.
    """
    images = find_images(features)
    if image_key is None:
        image_key = images[0] if images else _unsized_pixels(features)
        if is_only and image_key != keys.IMAGE and len(images) > 1:
            raise OptionError(
                f"several features may be the image: {', '.join(images)}",
                option="image_key",
                remedy=f"Choose one with {option('image_key', images[0])}.",
            )
    elif image_key not in features or features[image_key].kind != "bytes":
        known = features.get(image_key)
        problem = "does not exist" if known is None else f"has {known.kind} values, not images"
        raise OptionError(
            f"feature {shown_value(image_key)} {problem}",
            option="image_key",
            value=image_key,
            expected=f"one of {', '.join(images)}" if images else "",
            remedy=did_you_mean(image_key, images),
        )
    if image_key is None:
        return StandardNames()
    standard = {} if image_key == keys.IMAGE else {image_key: keys.IMAGE}
    mask = _mask_of(features)
    if mask is not None:
        standard[mask] = keys.MASK
    used = (features[key] for key in filter(None, (image_key, mask)) if key in features)
    is_raw = any(feature.content == "raw" for feature in used)
    for key, kind in _KINDS.items():
        if key in features or (key in _OF_PIXELS and not is_raw):
            continue
        for name in USUAL_NAMES[key]:
            known = features.get(name)
            if known is not None and known.kind == kind and known.max_length == 1:
                standard[name] = key
                break
    return StandardNames(standard)


def _unsized_pixels(features: Mapping[str, FeatureSchema]) -> str | None:
    """The feature with the name of an image whose raw pixels have no size."""
    named = (key for key in USUAL_NAMES[keys.IMAGE] if key in features)
    return next((key for key in named if features[key].content == "raw"), None)


def _mask_of(features: Mapping[str, FeatureSchema]) -> str | None:
    """The feature that stands for the standard mask; None if that exists or there are several."""
    if keys.MASK in features:
        return None
    masks = [
        key
        for key, feature in features.items()
        if keys.is_mask_key(key)
        and feature.max_length == 1
        and (
            feature.content == "image"
            or (feature.content == "raw" and key in USUAL_NAMES[keys.MASK])
        )
    ]
    return masks[0] if len(masks) == 1 else None


def _is_raw(value: object) -> bool:
    return isinstance(value, list) and any(value) and not starts_like_image(memoryview(value[0]))
