"""Draw boxes and masks over an image.

Everything is drawn at its final size, so that lines stay sharp. A class always has the same colour.
The colours of 100 classes are distinct, also without red-green colour vision; then they repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image.colours import Colour
from recordsmith.image.decoding.pixels import Pixels, resize_image
from recordsmith.image.geometry.rotation import Box
from recordsmith.image.masks.mask import resize_nearest

if TYPE_CHECKING:
    from recordsmith.support.libraries import ImageDraw, ImageFont

_Area: TypeAlias = tuple[int, int, int, int]  # left, top, right, bottom

# based on Okabe and Ito's colours and Tol's muted ones; neighbours also differ in brightness
_PALETTE: tuple[Colour, ...] = (
    (0, 114, 178),
    (240, 110, 20),
    (86, 190, 240),
    (0, 158, 115),
    (245, 225, 60),
    (215, 110, 175),
    (150, 40, 95),
    (70, 60, 160),
    (235, 165, 20),
    (70, 175, 155),
    (205, 60, 60),
    (225, 210, 130),
    (25, 110, 55),
    (150, 150, 50),
    (170, 85, 165),
)
# each the farthest from those before, as seen with usual and with red-green colour vision
_MORE = bytes.fromhex(
    "66f5f5361ef5667ef51eddc57e95dd4ec57e1e66dd367e66c5f5c57e1e7e1eddf51e4ec536c5c5ad361e"
    "f5956636667ef5c51ec5f5953695957e361ec5ddadf53666c51e4e367ec5664e95ad66dd1e1edd6666f5"
    "ad1e7eddad95dddddd364ef54eadf5c5c566f56666c5661e1eadc5f57eadad36addd36c54e4e66dd4e95"
    "66c51e4e95f5ddc595667e7e1e4eddadf566ddc5ddc5c5adc53666954e4e4e954e1e36c566adddc57e7e"
    "addd4e954e9566c5ddf56695c566adad4e1e7e364ead1e36664e367e36ad66ddddddddc57ec595667edd"
    "dd4e4ead95c5c595ddadf5adc5ad7ead7ef57e667ead667e9566c54ead4e4e664eddad4ec5adad4ec566"
    "7ec5f5"
)
_COLOURS = (*_PALETTE, *zip(_MORE[::3], _MORE[1::3], _MORE[2::3], strict=True))
COLOUR_COUNT = len(_COLOURS)
_LIGHT, _DARK = (255, 255, 255), (24, 24, 22)
_BACKGROUND, _VOID = 0, 255
_HATCH_EVERY = 7
_IGNORED = 224  # grey
_LONGEST = 400  # letters of a text; no tile has room for more
_VISIBLE = 2  # of a keypoint
# discs of a hidden and of a visible keypoint: what its radius has more than a line, its colour
_POINTS = ((1, (*_DARK, 170)), (0, None), (-1.5, _DARK)), ((1, (*_DARK, 170)), (0, None))
_TINY = 3  # from this scale on, an image is enlarged by whole pixels


def label_colour(label: int) -> Colour:
    """The colour of a class; they repeat after COLOUR_COUNT."""
    return _COLOURS[label % len(_COLOURS)]


def fit_to_tile(pixels: Pixels, tile: int) -> Pixels:
    """Resize an image to fit into a square tile, keeping its aspect ratio.

    Tiny images are enlarged by an integer factor, so that their pixels stay square.
    """
    height, width = pixels.shape[:2]
    scale = tile / max(height, width)
    if scale >= _TINY:
        return pixels.repeat(int(scale), 0).repeat(int(scale), 1)
    return resize_image(pixels, max(1, round(height * scale)), max(1, round(width * scale)))


def blend_mask(pixels: Pixels, mask: npt.NDArray[np.integer]) -> Pixels:
    """Blend the class colours of a mask into an image, with an outline around each area.

    Args:
        pixels: uint8, (height, width, 3), RGB, 0-255.
        mask: class numbers, (height, width), resized by nearest neighbour to the image. 0 is
            background and stays clear. 255 is hatched as "ignore"; see `class_numbers`.

    Returns:
        A new array like `pixels`.
    """
    height, width = pixels.shape[:2]
    labels = resize_nearest(class_numbers(mask), height, width).astype(np.int64)
    is_void = labels == _VOID
    is_class = (labels != _BACKGROUND) & ~is_void
    colours = np.array(_COLOURS, np.float32)[labels % len(_COLOURS)]
    shown = pixels.astype(np.float32)
    shown[is_class] += (colours[is_class] - shown[is_class]) * 0.5
    outline = _outline(labels) & is_class
    shown[outline] = colours[outline]
    y, x = np.indices((height, width), sparse=True)
    hatch = is_void & ((x + y) % _HATCH_EVERY < 2)
    shown[hatch] += (np.float32(255) - shown[hatch]) * 0.65
    return np.rint(shown).astype(np.uint8)


def class_numbers(mask: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """Return a mask with the class 1 instead of 255 if it has no other class than 0.

    255 is "ignore" next to other classes, but in masks of 0 and 255 it is the object.
    """
    if ((mask != _BACKGROUND) & (mask != _VOID)).any() or not mask.any():
        return mask
    return (mask != _BACKGROUND).astype(mask.dtype)  # type: ignore[no-any-return]


def draw_mask(mask: npt.NDArray[np.integer]) -> Pixels:
    """Draw a mask alone: each class in its colour, the background black, "ignore" light grey.

    Returns:
        uint8, (height, width, 3), RGB.
    """
    colours: Any = np.array(_COLOURS, np.uint8)[np.arange(1 << 16) % len(_COLOURS)]
    colours[_BACKGROUND], colours[_VOID] = 0, _IGNORED
    return colours.take(class_numbers(mask), axis=0, mode="wrap")  # type: ignore[no-any-return]


def draw_boxes(
    pixels: Pixels,
    boxes: Sequence[Box],
    labels: Sequence[int],
    texts: Sequence[str],
    corners: npt.NDArray[np.float64] | None = None,
    points: npt.NDArray[np.float64] | None = None,
    skeletons: Mapping[int, Sequence[tuple[int, int]]] | None = None,
) -> Pixels:
    """Draw boxes in the colours of their classes, each with a tag if there is room for it.

    Args:
        pixels: uint8, (height, width, 3), RGB, 0-255.
        boxes: (ymin, xmin, ymax, xmax) of each box, from 0 to 1; clipped to the image.
        labels: the class of each box, for its colour.
        texts: the text of each tag; empty for no tag.
        corners: (n, 4, 2), x and y of the corners of rotated boxes, which are drawn instead.
        points: (n, k, 3), x, y and visibility of keypoints: visible ones (2) are discs, hidden ones
            (1) rings, others are not drawn.
        skeletons: the pairs of points to join, by label; lines to hidden points are faint.

    Returns:
        A new array like `pixels`. Large boxes are drawn first, so that small ones are on top. A
        tag that would hide another one is not drawn.
    """
    from recordsmith.image.drawing.lettering import find_font, load_font
    from recordsmith.support.libraries import Image, ImageDraw

    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image, "RGBA")
    height, width = pixels.shape[:2]
    line = max(2, round(min(max(height, width) / 110, min(height, width) / 20)))
    areas = [_area(box, height, width) for box in boxes]
    order = sorted(range(len(boxes)), key=lambda number: -_size(areas[number]))
    scale = np.array([width - 1, height - 1])
    for number in order:
        colour = label_colour(labels[number])
        if corners is None:
            _draw_frame(draw, areas[number], colour, line)
        else:
            _draw_line(draw, corners[number, [0, 1, 2, 3, 0]] * scale, colour, line)
    points = np.empty((len(boxes), 0, 3)) if points is None else points
    for number in order:
        label = labels[number]
        pairs = (skeletons or {}).get(label, ())
        _draw_points(draw, points[number] * [*scale, 1], pairs, label_colour(label), line)
    size = max(11, round(min(max(height, width) / 18, min(height, width) / 5)))
    font = load_font(find_font(texts), size)
    taken: list[_Area] = []
    for number in order:
        if texts[number]:
            tag = _Tag(texts[number], label_colour(labels[number]), font, width)
            tag.draw(draw, areas[number], (width, height), taken)
    return np.array(image)


def message_tile(tile: int, title: str, text: str) -> Pixels:
    """A square with a message instead of an image."""
    from recordsmith.image.drawing.lettering import drawable, find_font, load_font
    from recordsmith.support.libraries import Image, ImageDraw

    image = Image.new("RGB", (tile, tile), (244, 232, 228))
    draw = ImageDraw.Draw(image)
    for start in range(-tile, tile, tile // 14):
        draw.line((start, tile, start + tile, 0), (236, 219, 213), max(1, tile // 60))
    gap = tile // 12
    text = " ".join(text[:_LONGEST].split())
    name = find_font([title, text])
    large = load_font(name, tile // 13)
    draw.text((gap, gap), drawable(title, large), (150, 40, 30), large)
    font = load_font(name, max(10, tile // 18))
    lines = _wrapped(drawable(text, font), font, tile - 2 * gap)
    most = (tile - 3 * gap - tile // 13) // round(tile / 13)
    for number, line in enumerate(lines[:most]):
        top = 2 * gap + tile // 13 + number * round(tile / 13)
        last = " …" if number == most - 1 < len(lines) - 1 else ""
        draw.text((gap, top), line + last, _DARK, font)
    return np.array(image)


def shortened(
    text: str, font: ImageFont.FreeTypeFont, width: float, *, keep_end: bool = False
) -> str:
    """Shorten a text to a width by replacing its end, or its middle, with an ellipsis.

    Letters that the font lacks are replaced.
    """
    from recordsmith.image.drawing.lettering import drawable

    if len(text) > _LONGEST:  # measuring takes time for each letter
        text = text[: _LONGEST // 2] + text[-_LONGEST // 2 :]
    text = drawable(text, font)
    kept, shown = len(text), text
    while kept and font.getlength(shown) > width:
        kept -= 1
        end = kept // 2 if keep_end else 0
        shown = text[: kept - end].rstrip() + "…" + text[len(text) - end :]
    return shown


def _outline(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Pixels at a distance of at most two from another class."""
    edge = np.zeros(labels.shape, np.bool_)
    for step in (1, 2):
        down, across = labels[step:] != labels[:-step], labels[:, step:] != labels[:, :-step]
        edge[step:] |= down
        edge[:-step] |= down
        edge[:, step:] |= across
        edge[:, :-step] |= across
    return edge


def _area(box: Box, height: int, width: int) -> _Area:
    """A box in pixels, clipped to the image, at least three wide and high."""
    top, left, bottom, right = (min(1.0, max(0.0, float(side))) for side in box)
    x, y = round(left * (width - 1)), round(top * (height - 1))
    return (
        min(x, max(0, width - 4)),
        min(y, max(0, height - 4)),
        max(x + 3, round(right * (width - 1))),
        max(y + 3, round(bottom * (height - 1))),
    )


def _size(area: _Area) -> int:
    return (area[2] - area[0]) * (area[3] - area[1])


def _draw_frame(draw: ImageDraw.ImageDraw, area: _Area, colour: Colour, line: int) -> None:
    """Draw a coloured frame with thin dark rims, visible on any background."""
    left, top, right, bottom = area
    draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=(*_DARK, 110))
    if min(right - left, bottom - top) > 2 * line + 2:
        inner = (left + line, top + line, right - line, bottom - line)
        draw.rectangle(inner, outline=(*_DARK, 110))
    draw.rectangle(area, outline=colour, width=line)


def _draw_line(
    draw: ImageDraw.ImageDraw, places: npt.NDArray[Any], colour: tuple[int, ...], line: int
) -> None:
    """Draw a line through places, with dark rims."""
    path = [(x, y) for x, y in places.tolist()]
    draw.line(path, (*_DARK, 110), line + 2, "curve")
    draw.line(path, colour, line, "curve")


def _draw_points(
    draw: ImageDraw.ImageDraw,
    points: npt.NDArray[np.float64],
    pairs: Sequence[tuple[int, int]],
    colour: Colour,
    line: int,
) -> None:
    places, visibility = points[:, :2], points[:, 2]
    for pair in map(list, pairs):
        seen = visibility[pair].min() if max(pair) < len(places) else 0
        if seen >= _VISIBLE:
            _draw_line(draw, places[pair], colour, max(1, line - 1))
        elif seen > 0:
            _draw_line(draw, places[pair], (*colour, 120), max(1, line - 2))
    for (x, y), seen in zip(places.tolist(), visibility.tolist(), strict=True):
        for radius, fill in _POINTS[seen >= _VISIBLE] if seen > 0 else ():
            side = line + radius
            draw.ellipse((x - side, y - side, x + side, y + side), fill or colour)


class _Tag:
    def __init__(self, text: str, colour: Colour, font: ImageFont.FreeTypeFont, most: int) -> None:
        self._pad = max(2, round(font.size / 4))
        self._text = shortened(text, font, most - 2 * self._pad)
        self._colour = colour
        self._font = font
        ascent, descent = font.getmetrics()
        self._width = round(font.getlength(self._text)) + 2 * self._pad
        self._baseline = self._pad // 2 + round(ascent * 0.92)
        self._height = self._baseline + round(descent * 0.8) + self._pad // 2

    def draw(
        self, draw: ImageDraw.ImageDraw, area: _Area, size: tuple[int, int], taken: list[_Area]
    ) -> None:
        """Draw the tag at its box if a place there hides no other tag."""
        for place in self._places(area, size):
            if not any(_overlap(place, other) for other in taken):
                taken.append(place)
                draw.rectangle((place[0], place[1], place[2] - 1, place[3] - 1), self._colour)
                ink = _DARK if _is_light(self._colour) else _LIGHT
                at = place[0] + self._pad, place[1] + self._baseline
                draw.text(at, self._text, ink, self._font, anchor="ls")
                return

    def _places(self, area: _Area, size: tuple[int, int]) -> list[_Area]:
        """Possible places: above, inside or below the box, on the left or right."""
        left, top, right, bottom = area
        tops = [top - self._height, top, bottom - self._height + 1, bottom + 1]
        if bottom - top < 2 * self._height:  # inside a small box it would hide the object
            tops = [tops[0], tops[3], tops[1]]
        lefts = [left, right - self._width + 1]
        places = []
        for y in tops:
            for x in lefts:
                if 0 <= y <= size[1] - self._height:
                    inside = max(0, min(x, size[0] - self._width))
                    places.append((inside, y, inside + self._width, y + self._height))
        return places


def _overlap(one: _Area, other: _Area) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _is_light(colour: Colour) -> bool:
    """Whether dark letters have more contrast on a colour than light ones (WCAG)."""
    linear = [
        (channel / 255 / 12.92 if channel <= 10 else ((channel / 255 + 0.055) / 1.055) ** 2.4)
        for channel in colour
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return luminance > 0.22


def _wrapped(text: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    """Wrap a text into lines of a width; words that are too long are broken."""
    lines = [""]
    for word in text.split():
        rest = word
        if font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] = f"{lines[-1]} {word}".strip()
            continue
        while font.getlength(rest) > width:
            cut = next(n for n in range(len(rest), 0, -1) if font.getlength(rest[:n]) <= width)
            lines.append(rest[:cut])
            rest = rest[cut:]
        lines.append(rest)
    return [line for line in lines if line]
