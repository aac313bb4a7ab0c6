"""A contact sheet: many pictures on one page, each with its caption."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from recordsmith.image.decode import Pixels

_PAPER, _INK, _FAINT, _FRAME = (250, 249, 246), (38, 38, 36), (128, 126, 120), (226, 224, 217)


def contact_sheet(
    pictures: Sequence[tuple[Pixels, str]],
    *,
    title: str,
    subtitle: str = "",
    columns: int = 6,
    tile: int = 224,
) -> Image.Image:
    """Draw pictures in rows on one page.

    Args:
        pictures: each uint8, (height, width, 3), RGB, with a caption.
        title: in large letters on top; `subtitle` under it.
        columns: pictures in a row.
        tile: the box in pixels that each picture is fitted into, its shape kept.
    """
    gap, head, caption = tile // 8, tile // 2, tile // 6
    rows = max(1, -(-len(pictures) // columns))
    width = columns * (tile + gap) + gap
    sheet = Image.new("RGB", (width, head + gap + rows * (tile + caption + gap)), _PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((gap, gap), title, _INK, ImageFont.load_default(tile // 6))
    draw.text((gap, gap + tile // 5), subtitle, _FAINT, ImageFont.load_default(tile // 12))
    font = ImageFont.load_default(tile // 13)
    for number, (pixels, text) in enumerate(pictures):
        left = gap + number % columns * (tile + gap)
        top = head + number // columns * (tile + caption + gap)
        draw.rectangle((left, top, left + tile - 1, top + tile - 1), _FRAME)
        picture = Image.fromarray(pixels)
        picture.thumbnail((tile, tile), Image.Resampling.LANCZOS)
        sheet.paste(
            picture, (left + (tile - picture.width) // 2, top + (tile - picture.height) // 2)
        )
        draw.text((left, top + tile + caption // 5), text, _INK, font)
    return sheet
