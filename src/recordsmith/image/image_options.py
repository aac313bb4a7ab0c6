"""The options for storing images, checked for conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_word

StoreFormat = Literal["original", "jpeg", "png", "raw"]
Orientation = Literal["keep", "apply"]

MAX_PIXELS = 89_478_485
"""The default limit: 256 MiB of RGB, and the size from which Pillow warns."""

HIGHEST_MAX_PIXELS = 2 * MAX_PIXELS  # Pillow decodes no more
_QUALITY = 95


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How images are stored. By default, their bytes are kept.

    Attributes:
        store: original (unchanged bytes), jpeg, png, or raw (rows of pixels without a header).
        quality: quality of encoded JPEGs, from 1 to 100.
        recompress: also encode images that already have the requested format, size and orientation.
        background: background of transparent images in JPEG. Red, green and blue from 0 to 255;
            without it, a transparent image is an error.
        drop_alpha: drop the alpha channel in JPEG and raw. The colours under it are kept, as
            TensorFlow's decode_png does for three channels.
        shorter_side: scale images down to this length of the shorter side, in pixels. Smaller
            images are not enlarged.
        longer_side: scale images down to this length of the longer side, in pixels. Excludes
            `shorter_side`.
        shrink: compress PNG and JPEG files further without changing pixels. JPEGs become
            progressive, which take about twice as long to decode, unless `baseline` is also set.
        baseline: convert progressive JPEGs, which decode slowly, to baseline without loss. With
            `shrink`, also recompress baseline JPEGs with optimal tables.
        tiles: divide baseline JPEGs into tiles without loss, so that crops decode faster. Files
            grow by at most 2 %. Progressive JPEGs are kept, unless `baseline` is also set.
        orientation: keep pixels as stored, or apply the EXIF orientation, so that they are upright.
        max_pixels: reject images with more pixels, if they have to be decoded. Also those whose
            decoding would need more than 4 bytes times this number.

    Example:
        >>> ImageOptions(store="jpeg", quality=90, shorter_side=256).to_json()
        {'store': 'jpeg', 'quality': 90, 'shorter_side': 256}
    """

    store: StoreFormat = "original"
    quality: int = _QUALITY
    recompress: bool = False
    background: tuple[int, int, int] | None = None
    drop_alpha: bool = False
    shorter_side: int | None = None
    longer_side: int | None = None
    shrink: bool = False
    baseline: bool = False
    tiles: bool = False
    orientation: Orientation = "keep"
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        check_word("store", self.store, get_args(StoreFormat))
        check_word("orientation", self.orientation, get_args(Orientation))
        check_number("quality", self.quality, 1, 100)
        check_number("max_pixels", self.max_pixels, 1, HIGHEST_MAX_PIXELS)
        for name in ("shorter_side", "longer_side"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 1, 65_535)
        if self.background is not None:
            object.__setattr__(self, "background", _checked_colour(self.background))
        for name, problem, remedy in self._conflicts():
            raise OptionError(
                f"{option(name)} {problem}", option=name, value=getattr(self, name), remedy=remedy
            )

    @property
    def is_default(self) -> bool:
        """Whether all images keep their bytes."""
        rewrites = self.shrink or self.baseline or self.tiles
        changes_some = self.recompress or rewrites or self.resizes
        return self.store == "original" and self.orientation == "keep" and not changes_some

    @property
    def resizes(self) -> bool:
        """Whether large images are resized."""
        return self.shorter_side is not None or self.longer_side is not None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ImageOptions:
        """Restore the options from the output of `to_json`.

        Raises:
            OptionError: an option is unknown to this version.
        """
        unknown = sorted(set(document) - {field.name for field in fields(cls)})
        if unknown:
            raise OptionError(f"{unknown[0]!r} is not an image option", option=unknown[0])
        return cls(**document)

    def to_json(self) -> dict[str, Any]:
        """The options that differ from the defaults, as a JSON-able dict for the manifest."""
        values = asdict(self)
        if self.background is not None:
            values["background"] = list(self.background)
        return {
            field.name: values[field.name]
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def _conflicts(self) -> Iterator[tuple[str, str, str]]:
        """Yield the options that conflict with others: name, problem, remedy."""
        store = option("store", self.store)
        jpeg, png, raw = (option("store", name) for name in ("jpeg", "png", "raw"))
        makes_jpeg = self.store == "jpeg" or (
            self.store == "original" and (self.resizes or self.orientation == "apply")
        )
        if self.shorter_side is not None and self.longer_side is not None:
            problem = f"and {option('shorter_side')} exclude each other"
            yield "longer_side", problem, "Pass only one of them; images keep their aspect ratio."
        if self.quality != _QUALITY and not makes_jpeg:
            problem = "has no effect, because no image is encoded as JPEG"
            yield "quality", problem, f"Add {jpeg}, or remove {option('quality')}."
        if self.background is not None and self.store != "jpeg":
            problem = f"has no effect, because {store} keeps alpha"
            yield "background", problem, f"Add {jpeg}, or remove {option('background')}."
        if self.drop_alpha and self.store not in ("jpeg", "raw"):
            yield "drop_alpha", f"needs {jpeg} or {raw}, but {store} keeps alpha", ""
        if self.drop_alpha and self.background is not None:
            problem = f"and {option('background')} exclude each other"
            yield "drop_alpha", problem, "Pass only one of them."
        if self.recompress and self.store not in ("jpeg", "png"):
            yield "recompress", f"needs {jpeg} or {png}, not {store}", ""
        for name in ("shrink", "baseline", "tiles"):
            if getattr(self, name) and (
                self.store == "raw" or (self.store == "png" and name != "shrink")
            ):
                problem = f"has no effect, because {store} leaves none of its files"
                yield name, problem, f"Remove {option(name)}."
        if self.tiles and self.shrink and not self.baseline:
            problem = f"and {option('shrink')} exclude each other: progressive JPEGs have no tiles"
            yield "tiles", problem, f"Add {option('baseline', True)}, or remove {option('shrink')}."


def check_number(name: str, value: object, lowest: int, highest: int) -> None:
    """Raise OptionError if a value is not an integer within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise OptionError(
            option=name, value=value, expected=f"an integer from {lowest} to {highest:,}"
        )


def _checked_colour(value: object) -> tuple[int, int, int]:
    levels = value if isinstance(value, (tuple, list)) else ()
    if len(levels) == 3 and all(type(level) is int and 0 <= level <= 255 for level in levels):
        return (levels[0], levels[1], levels[2])
    raise OptionError(
        option="background",
        value=value,
        expected="red, green and blue from 0 to 255, such as (255, 255, 255) for white",
    )
