"""How pictures are stored: every choice in one place, each checked against the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast, get_args

from recordsmith.errors import OptionError

PictureFormat = Literal["original", "jpeg", "png", "raw"]
Orientation = Literal["keep", "apply"]

MAX_PIXELS = 89_478_485
"""Above this no picture is decoded: 256 MiB of RGB; where Pillow, too, begins to doubt."""

MOST_PIXELS = 2 * MAX_PIXELS  # Pillow decodes no more
_QUALITY = 95


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """How pictures are stored; what is not said leaves their bytes untouched.

    format: original, jpeg, png, or raw: rows of pixels without any header.
    quality: of pictures that are encoded as JPEG here, from 1 to 100.
    recompress: encode also those that have the wanted format, size and orientation already.
    background: red, green, blue from 0 to 255, on which alpha is laid for JPEG, which has none.
        Without it a picture that is transparent anywhere is refused.
    drop_alpha: of pictures that become JPEG or raw, leave out the alpha and keep the colours that
        are under it, as TensorFlow's decode_png does for three channels.
    shorter_side, longer_side: the size in pixels that this side shall have at most; smaller
        pictures are not enlarged. One of the two.
    shrink: make PNG and JPEG files smaller without touching a pixel. JPEGs become progressive,
        which take about twice as long to decode, unless `baseline` is said too.
    baseline: turn progressive JPEGs to baseline without touching a pixel; with `shrink`, code all
        JPEGs anew with the best tables.
    orientation: keep pixels as they are stored, or apply the EXIF orientation: turn them upright.
    max_pixels: larger pictures are not decoded but refused.
    """

    format: PictureFormat = "original"
    quality: int = _QUALITY
    recompress: bool = False
    background: tuple[int, int, int] | None = None
    drop_alpha: bool = False
    shorter_side: int | None = None
    longer_side: int | None = None
    shrink: bool = False
    baseline: bool = False
    orientation: Orientation = "keep"
    max_pixels: int = MAX_PIXELS

    def __post_init__(self) -> None:
        check_word("format", self.format, get_args(PictureFormat))
        check_word("orientation", self.orientation, get_args(Orientation))
        check_number("quality", self.quality, 1, 100)
        check_number("max_pixels", self.max_pixels, 1, MOST_PIXELS)
        for name in ("shorter_side", "longer_side"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 1, 65_535)
        if self.background is not None:
            object.__setattr__(self, "background", _checked_colour(self.background))
        self._check_together()

    @property
    def is_default(self) -> bool:
        """Whether pictures keep their bytes, all of them."""
        changes_some = self.recompress or self.shrink or self.baseline or self.resizes
        return self.format == "original" and self.orientation == "keep" and not changes_some

    @property
    def resizes(self) -> bool:
        return self.shorter_side is not None or self.longer_side is not None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PictureOptions:
        """What `to_json` gave.

        Raises:
            OptionError: there are options that this version does not know.
        """
        unknown = sorted(set(document) - {option.name for option in fields(cls)})
        if unknown:
            raise OptionError(f"{unknown[0]!r} is no option of how pictures are stored")
        return cls(**document)

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults, JSON-able: for the manifest."""
        said = asdict(self)
        if self.background is not None:
            said["background"] = list(self.background)
        return {
            option.name: said[option.name]
            for option in fields(self)
            if getattr(self, option.name) != option.default
        }

    def _check_together(self) -> None:
        if self.shorter_side is not None and self.longer_side is not None:
            raise OptionError(
                f"shorter_side is {self.shorter_side} and longer_side is {self.longer_side}; "
                "expected one of them, as pictures keep their proportions"
            )
        may_encode_jpeg = self.format == "jpeg" or (
            self.format == "original" and (self.resizes or self.orientation == "apply")
        )
        if self.quality != _QUALITY and not may_encode_jpeg:
            raise OptionError(
                f"quality is {self.quality}, but with format {self.format!r} nothing is encoded as "
                "JPEG; say format='jpeg', or leave quality out"
            )
        if self.background is not None and self.format != "jpeg":
            raise OptionError(
                f"there is a background, but format {self.format!r} keeps alpha as it is; "
                "say format='jpeg', or leave background out"
            )
        if self.drop_alpha and self.format not in ("jpeg", "raw"):
            raise OptionError(
                f"drop_alpha is for pictures that become jpeg or raw, but format is "
                f"{self.format!r}, which keeps alpha; say format='jpeg' or format='raw'"
            )
        if self.drop_alpha and self.background is not None:
            raise OptionError(
                "alpha is laid on a background or left out by drop_alpha; expected one of them"
            )
        if self.recompress and self.format not in ("jpeg", "png"):
            raise OptionError(
                f"recompress needs to know into what, but format is {self.format!r}; "
                "say format='jpeg' or format='png'"
            )
        for name in ("shrink", "baseline"):
            if getattr(self, name) and self.format == "raw":
                raise OptionError(f"{name} is for files, but raw pixels are none; leave it out")
        if self.baseline and self.format == "png":
            raise OptionError("baseline is for JPEGs, but format is 'png'; leave it out")


def check_word(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise OptionError unless a value is one of some words."""
    if not (isinstance(value, str) and value in allowed):
        words = ", ".join(repr(word) for word in allowed)
        import difflib

        meant = difflib.get_close_matches(str(value), allowed, 1)
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        raise OptionError(f"{name} is {value!r}; expected one of {words}{hint}")


def check_number(name: str, value: object, lowest: int, highest: int) -> None:
    """Raise OptionError unless a value is a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise OptionError(
            f"{name} is {value!r}; expected a whole number from {lowest} to {highest:,}"
        )


def _checked_colour(value: object) -> tuple[int, int, int]:
    is_colour = (
        isinstance(value, (tuple, list))
        and len(value) == 3
        and all(type(part) is int and 0 <= part <= 255 for part in value)
    )
    if not is_colour:
        raise OptionError(
            f"background is {value!r}; expected red, green and blue from 0 to 255, such as "
            "(255, 255, 255) for white"
        )
    red, green, blue = cast("tuple[int, int, int]", value)
    return red, green, blue
