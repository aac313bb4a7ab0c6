"""Finds the images that masks and boxes follow: the only Image or Patches, or a named one."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.errors import OptionError, option, suggest_names
from recordsmith.loading.features.feature import BatchRows, Feature, ImageFeature, ImageFilling


def images_in(features: Mapping[str, Feature]) -> dict[str, ImageFeature]:
    """Return the features that make images, by name."""
    return {
        name: feature for name, feature in features.items() if isinstance(feature, ImageFeature)
    }


def check_leader(name: str, of: str | None, features: Mapping[str, Feature]) -> None:
    """Raise OptionError if the images that the feature `name` follows are missing or ambiguous."""
    images = images_in(features)
    if of is not None and of not in images:
        hint = suggest_names(of, images, "the loader has no Image")
        raise OptionError(
            f"feature {name!r}: {of!r} is not an Image or Patches; {hint}",
            option="of",
            value=of,
        )
    if of is None and len(images) > 1:
        raise OptionError(
            f"feature {name!r} could follow {' or '.join(map(repr, images))}",
            option="of",
            remedy=f"Pass {' or '.join(option('of', image) for image in images)}.",
        )


def leading(of: str | None, rows: BatchRows) -> ImageFilling | None:
    """Return the images to follow, already begun; None without images."""
    images = {
        name: filling
        for name, filling in rows.fillings.items()
        if isinstance(filling, ImageFilling)
    }
    return next(iter(images.values()), None) if of is None else images[of]
