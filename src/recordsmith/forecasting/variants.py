"""The ways to store images that a forecast compares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from recordsmith.errors import OptionError
from recordsmith.forecasting.image_header import ImageHeaderFigures
from recordsmith.image import ImageOptions
from recordsmith.image.storing.image_options import check_number

ORIGINAL = "original"
FLOATS = "float32"
FLOAT_BYTES = 4.0


@dataclass(frozen=True)
class Variant:
    """A way to store images.

    name: a short name, unique in a forecast.
    label: the name in tables.
    options: what `pack` is called with; None if `pack` does not store images so.
    """

    name: str
    label: str
    options: ImageOptions | None

    @property
    def twin(self) -> str:
        """The name of the variant that encodes only, or also, images that are JPEGs."""
        is_all = self.name.endswith("-all")
        return self.name.removesuffix("-all") if is_all else f"{self.name}-all"

    def without_twin(self) -> Variant:
        """The same with a label for tables in which the other one is missing."""
        return replace(self, label=self.label.partition(" (")[0])

    def keeps(self, image: ImageHeaderFigures) -> bool:
        """Whether an image keeps its bytes, by its header."""
        if self.options is None or self.options.recompress or self.options.shrink:
            return False
        if self.options.tiles and image.is_jpeg:
            return False
        has_format = self.options.store in ("original", image.format)
        return has_format and self.scale(image) == 1

    def scale(self, image: ImageHeaderFigures) -> float:
        """The factor by which the pixels of an image change in number or size."""
        if self.options is None:
            return FLOAT_BYTES if image.format == "png" else 1.0
        side = self.options.shorter_side
        if side is None or side >= image.shorter_side:
            return 1.0
        return (side / image.shorter_side) ** 2


def make_variants(qualities: Iterable[int], shorter_sides: Iterable[int]) -> list[Variant]:
    """List the variants, the original images first.

    Alpha is dropped where the format cannot hold it; where an image has alpha, `pack` needs
    `drop_alpha` for it as well.

    Raises:
        OptionError: a quality or a side is invalid.
    """
    qualities, sides = _distinct("qualities", qualities), _distinct("shorter_sides", shorter_sides)
    for quality in qualities:
        check_number("qualities", quality, 1, 100)
    for side in sides:
        check_number("shorter_sides", side, 1, 65_535)

    def jpeg(quality: int, *, recompress: bool) -> ImageOptions:
        return ImageOptions("jpeg", quality=quality, recompress=recompress, drop_alpha=True)

    return [
        Variant(ORIGINAL, "as it is", ImageOptions()),
        Variant("raw", "raw pixels", ImageOptions("raw")),
        Variant(FLOATS, "raw, PNG as float32", None),
        Variant("png", "PNG", ImageOptions("png")),
        Variant("shrunk", "shrunk, lossless", ImageOptions(shrink=True)),
        Variant("tiles", "tiles, lossless", ImageOptions(tiles=True)),
        *(
            Variant(f"jpeg-{q}", f"JPEG {q} (JPEGs kept)", jpeg(q, recompress=False))
            for q in qualities
        ),
        *(Variant(f"jpeg-{q}-all", f"JPEG {q} (all)", jpeg(q, recompress=True)) for q in qualities),
        *(
            Variant(f"side-{side}", f"shorter side {side}", ImageOptions(shorter_side=side))
            for side in sides
        ),
    ]


def _distinct(name: str, numbers: Iterable[int]) -> list[int]:
    if isinstance(numbers, (str, bytes)) or not isinstance(numbers, Iterable):
        raise OptionError(option=name, value=numbers, expected="several integers")
    return list(dict.fromkeys(numbers))
