"""Draw a contact sheet: many images with captions on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recordsmith.image.colours import Colour
from recordsmith.image.decoding.pixels import Pixels
from recordsmith.image.drawing.lettering import find_font, load_font
from recordsmith.image.drawing.overlay import shortened
from recordsmith.support.libraries import Image, ImageDraw, ImageFont

_PAPER, _INK, _FAINT, _FRAME = (250, 249, 246), (38, 38, 36), (128, 126, 120), (226, 224, 217)


class Tile(NamedTuple):
    """An image of a contact sheet.

    pixels: uint8, (height, width, 3), RGB.
    caption: the line below the image.
    detail: a second, smaller line.
    colour: the colour of a dot before the caption; None for no dot.
    """

    pixels: Pixels
    caption: str
    detail: str = ""
    colour: Colour | None = None


def contact_sheet(
    images: Sequence[Tile | tuple[Pixels, str]],
    *,
    title: str,
    subtitle: str = "",
    legend: Sequence[tuple[Colour, str]] = (),
    columns: int = 6,
    tile: int = 224,
) -> Image.Image:
    """Draw images in rows on one page.

    Args:
        images: tiles, or tuples of pixels and caption.
        title: the heading; `subtitle` is the line below it.
        legend: colours and their names, shown below the subtitle as far as they fit.
        columns: images per row.
        tile: side in pixels of the square that each image is scaled to fit, keeping its aspect
            ratio. Rows are only as high as the highest scaled image.
    """
    tiles = [Tile(*image) for image in images]
    fitted_images = [_fitted(image.pixels, tile) for image in tiles]
    high = max((fitted.height for fitted in fitted_images), default=tile)
    gap, head, caption = tile // 8, tile // 2, tile // 6
    if legend:
        head += tile // 6
    if any(image.detail for image in tiles):
        caption += tile // 20
    rows = max(1, -(-len(tiles) // columns))
    width = max(2, columns) * (tile + gap) + gap  # leaves room for the title
    sheet = Image.new("RGB", (width, head + gap + rows * (high + caption + gap)), _PAPER)
    draw = ImageDraw.Draw(sheet)
    captions = [text for image in tiles for text in (image.caption, image.detail)]
    font = find_font([title, subtitle, *(name for _, name in legend), *captions])
    large, middle = load_font(font, tile // 6), load_font(font, tile // 12)
    draw.text((gap, gap), shortened(title, large, width - 2 * gap), _INK, large)
    under = gap + tile // 5
    draw.text((gap, under), shortened(subtitle, middle, width - 2 * gap), _FAINT, middle)
    _draw_legend(draw, legend, (gap, under + tile // 6), width - gap, load_font(font, tile // 14))
    for number, (image, fitted) in enumerate(zip(tiles, fitted_images, strict=True)):
        left = gap + number % columns * (tile + gap)
        top = head + number // columns * (high + caption + gap)
        draw.rectangle((left, top, left + tile - 1, top + high - 1), _FRAME)
        sheet.paste(fitted, (left + (tile - fitted.width) // 2, top + (high - fitted.height) // 2))
        _draw_caption(draw, image, (left, top + high + tile // 30), tile, font)
    return sheet


def _fitted(pixels: Pixels, tile: int) -> Image.Image:
    image = Image.fromarray(pixels)
    image.thumbnail((tile, tile), Image.Resampling.LANCZOS)
    return image


def _draw_caption(
    draw: ImageDraw.ImageDraw, image: Tile, corner: tuple[int, int], tile: int, font_name: str
) -> None:
    left, line = corner
    font, small = load_font(font_name, tile // 13), load_font(font_name, tile // 16)
    indent = 0
    if image.colour is not None:
        dot = tile // 18
        indent = dot + tile // 28
        middle = line + sum(font.getmetrics()) / 2
        _dot(draw, left, middle, dot, image.colour)
    draw.text((left + indent, line), shortened(image.caption, font, tile - indent), _INK, font)
    detail = shortened(image.detail, small, tile, keep_end=True)
    draw.text((left, line + tile // 10), detail, _FAINT, small)


def _draw_legend(
    draw: ImageDraw.ImageDraw,
    legend: Sequence[tuple[Colour, str]],
    corner: tuple[int, int],
    right: int,
    font: ImageFont.FreeTypeFont,
) -> None:
    """Draw coloured dots with names in one line, then the number of those that do not fit."""
    left, top = corner
    dot = round(font.size * 0.75)
    middle = top + sum(font.getmetrics()) / 2
    for number, (colour, whole_name) in enumerate(legend):
        name = shortened(whole_name, font, right / 3)
        more = f"and {len(legend) - number:,} more"
        width = dot * 1.5 + font.getlength(name)
        is_last = number == len(legend) - 1
        if left + width + (0 if is_last else 2 * dot + font.getlength(more)) > right:
            draw.text((left, top), more, _FAINT, font)
            return
        _dot(draw, left, middle, dot, colour)
        draw.text((left + dot * 1.5, top), name, _INK, font)
        left += round(width + dot * 1.8)


def _dot(draw: ImageDraw.ImageDraw, left: float, middle: float, size: int, colour: Colour) -> None:
    top = round(middle - size / 2)
    draw.rounded_rectangle((left, top, left + size, top + size), max(2, size // 4), colour)
