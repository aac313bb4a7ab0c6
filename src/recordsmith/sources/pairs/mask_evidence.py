"""Detect masks by their pixels: few values, no colour or a palette, or few exact colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from recordsmith.errors import RecordsmithError
from recordsmith.image import Colour, read_by_pillow
from recordsmith.image.masks.colours import distinct_colours, grey_colours, voc_colours
from recordsmith.stores import Location

Content: TypeAlias = Literal["photo", "numbers", "colours", "lossy", "unknown"]
"""What a file looks like.

numbers: few values in one channel, as in a mask of class numbers.
colours: few exact colours, as in a colour-coded mask.
lossy: few values, blurred by JPEG.
unknown: unreadable, too small, too large, or of a single colour.
"""

_MAX_OPENED = 48
_MAX_BYTES = 1 << 25
_MAX_PIXELS = 1 << 26
_PIXELS_COUNTED = 1 << 20
_FEW_PIXELS = 64
_FEW_VALUES = 64
_COMMON_VALUES = 16
_COMMON_SHARE = 0.9
_BLUR = 12
_COLOURLESS = 6.0


@dataclass(frozen=True)
class PixelEvidence:
    """What a file looks like.

    size: width and height; None if it cannot be read.
    colours: of a file that is `colours`.
    """

    content: Content = "unknown"
    size: tuple[int, int] | None = None
    colours: frozenset[Colour] = frozenset()


@dataclass
class MaskEvidence:
    """Opens files below a root, each once and at most 48 of them; the others are unknown."""

    root: Location
    _known: dict[str, PixelEvidence] = field(default_factory=dict)

    def of(self, path: str) -> PixelEvidence:
        """What a file looks like."""
        if path not in self._known:
            can_open = len(self._known) < _MAX_OPENED
            self._known[path] = _inspect(self.root / path) if can_open else PixelEvidence()
        return self._known[path]


def joint_content(files: Iterable[PixelEvidence]) -> Content:
    """What the files of one folder look like: photos if one of them is."""
    contents = {file.content for file in files}
    order: tuple[Content, ...] = ("photo", "lossy", "colours", "numbers")
    return next((content for content in order if content in contents), "unknown")


def preset_of(colours: frozenset[Colour]) -> str | None:
    """The preset of the option `colours` that has all of these colours, if one has."""
    presets: Mapping[str, Any] = {"grey": grey_colours(), "voc": voc_colours()}
    return next((name for name, table in presets.items() if colours <= table.keys()), None)


def _inspect(location: Location) -> PixelEvidence:
    try:
        if location.info().size_bytes > _MAX_BYTES:
            return PixelEvidence()
        with read_by_pillow(location.read(), "image") as image:
            if image.width * image.height > _MAX_PIXELS:
                return PixelEvidence()
            return _inspect_pixels(image)
    except RecordsmithError:
        return PixelEvidence()


def _inspect_pixels(image: Any) -> PixelEvidence:
    size, mode = image.size, image.mode
    is_lossy = image.format in ("JPEG", "MPO") or image.info.get("compression") == "jpeg"
    if is_lossy:
        image.draft("RGB", (1024, 1024))
    has_numbers = mode in ("1", "L", "P", "I", "I;16", "I;16B", "F")
    pixels = np.array(image if has_numbers else image.convert("RGB"))
    step = max(1, int((pixels.shape[0] * pixels.shape[1] / _PIXELS_COUNTED) ** 0.5))
    pixels = pixels[::step, ::step]
    if mode in ("LA", "PA"):
        pixels = pixels[:, :, 0]
    if is_lossy:
        return PixelEvidence(_content_of_jpeg(pixels), size)
    if pixels.ndim == 2:
        return PixelEvidence(_content_of_values(pixels), size)
    colours = frozenset(distinct_colours(pixels))
    if not np.ptp(pixels.astype(np.int16), axis=2).any():  # greys saved as RGB
        content = _content_of_values(pixels[:, :, 0])
        return PixelEvidence("colours" if content == "numbers" else content, size, colours)
    count = pixels.shape[0] * pixels.shape[1]
    if len(colours) == 1:
        return PixelEvidence("unknown", size)
    if len(colours) <= min(_FEW_VALUES, max(2, count // 8)):
        return PixelEvidence("colours", size, colours)
    return PixelEvidence("photo" if count >= _FEW_PIXELS else "unknown", size)


def _content_of_values(pixels: Any) -> Content:
    """Few different values, or nearly all pixels have one of a few, as with smoothed edges."""
    if pixels.dtype.kind == "f":
        return "photo"
    _, counts = np.unique(pixels, return_counts=True)
    if len(counts) <= min(_FEW_VALUES, max(2, pixels.size // 8)):
        return "numbers"
    if pixels.size < _FEW_PIXELS:
        return "unknown"
    common = np.sort(counts)[-_COMMON_VALUES:].sum()
    return "numbers" if common >= _COMMON_SHARE * pixels.size else "photo"


def _content_of_jpeg(pixels: Any) -> Content:
    if pixels.shape[0] * pixels.shape[1] < _FEW_PIXELS:
        return "unknown"
    if pixels.ndim == 3:
        if np.ptp(pixels.astype(np.int16), axis=2).mean() > _COLOURLESS:
            return "photo"
        pixels = pixels[:, :, 0]
    counts = np.bincount(pixels.ravel(), minlength=256)
    left = counts.copy()
    for _ in range(3):  # the most common values, each with its blur
        peak = int(left.argmax())
        left[max(0, peak - _BLUR) : peak + _BLUR + 1] = 0
    return "lossy" if left.sum() <= (1 - _COMMON_SHARE) * counts.sum() else "photo"
