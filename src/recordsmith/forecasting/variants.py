"""The ways to store images that a forecast compares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recordsmith.errors import OptionError
from recordsmith.image import ImageOptions
from recordsmith.image.storing.image_options import check_number

ORIGINAL = "original"
RAW = "raw"


@dataclass(frozen=True)
class Variant:
    """A way to store images.

    name, label: unique in a forecast, for programs and people.
    options: what `pack` is called with.
    """

    name: str
    label: str
    options: ImageOptions


def make_variants(qualities: Iterable[int], shorter_sides: Iterable[int]) -> list[Variant]:
    """List the variants, the original images first.

    Alpha is dropped where the format cannot hold it; where an image has alpha, `pack` needs
    `drop_alpha` for it as well.
    """
    variants = [
        Variant(ORIGINAL, "as it is", ImageOptions()),
        Variant(RAW, "raw pixels", ImageOptions("raw")),
        Variant("png", "PNG", ImageOptions("png")),
        Variant("shrunk", "shrunk, lossless", ImageOptions(shrink=True)),
        Variant("tiles", "tiles, lossless", ImageOptions(tiles=True)),
    ]
    checked = _distinct("qualities", qualities, 100)
    for name, which, recompress in (("", "JPEGs kept", False), ("-all", "all", True)):
        for quality in checked:
            options = ImageOptions("jpeg", quality=quality, recompress=recompress, drop_alpha=True)
            variants.append(Variant(f"jpeg-{quality}{name}", f"JPEG {quality} ({which})", options))
    for side in _distinct("shorter_sides", shorter_sides, 65_535):
        options = ImageOptions(shorter_side=side)
        variants.append(Variant(f"side-{side}", f"shorter side {side}", options))
    return variants


def _distinct(name: str, numbers: Iterable[int], largest: int) -> list[int]:
    if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
        raise OptionError(option=name, value=numbers, expected="several integers")
    distinct = list(dict.fromkeys(numbers))
    for number in distinct:
        check_number(name, number, 1, largest)
    return distinct
