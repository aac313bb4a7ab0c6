"""Which pictures do masks and boxes follow? Those of the only Image, unless another is named."""

from __future__ import annotations

from collections.abc import Mapping

from recordsmith.errors import OptionError, names_like
from recordsmith.loading.features.contract import Feature, PictureFeature, PictureFilling, Rows


def pictures_in(features: Mapping[str, Feature]) -> list[str]:
    """The names of the features that make pictures."""
    return [name for name, feature in features.items() if isinstance(feature, PictureFeature)]


def check_leader(name: str, of: str | None, features: Mapping[str, Feature]) -> None:
    """Raise OptionError unless it is clear which pictures the feature `name` follows, if any."""
    pictures = pictures_in(features)
    if of is not None and of not in pictures:
        hint = names_like(of, pictures, "there is none")
        raise OptionError(f"feature {name!r} is of {of!r}, which is no Image; {hint}")
    if of is None and len(pictures) > 1:
        raise OptionError(
            f"feature {name!r}: there are several Images, {', '.join(pictures)}; say which of them "
            "it follows, with `of`"
        )


def leading(of: str | None, rows: Rows) -> PictureFilling | None:
    """The pictures that are followed, already begun; None where there are none."""
    pictures = {
        name: filling
        for name, filling in rows.fillings.items()
        if isinstance(filling, PictureFilling)
    }
    return next(iter(pictures.values()), None) if of is None else pictures[of]
