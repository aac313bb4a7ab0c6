"""Draw simple figures as SVG or as an image, from the same shapes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from recordsmith.image.drawing.lettering import find_font, load_font
from recordsmith.words import printable

Point: TypeAlias = tuple[float, float]

_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
_SCALE, _SMOOTHING = 2, 2  # image pixels per unit, and what is averaged to one of them
_ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}


class Polyline(NamedTuple):
    """Straight lines through points."""

    points: Sequence[Point]
    colour: str
    width: float = 1.0
    is_dashed: bool = False


class Box(NamedTuple):
    """A filled rectangle."""

    left: float
    top: float
    width: float
    height: float
    colour: str


class Dot(NamedTuple):
    """A filled circle with an outline."""

    centre: Point
    radius: float
    fill: str
    outline: str


class Label(NamedTuple):
    """Text whose middle is at the height of a point."""

    point: Point
    text: str
    colour: str
    size: float = 13.0
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False


Shape: TypeAlias = Polyline | Box | Dot | Label


def to_svg(shapes: Sequence[Shape], width: int, height: int, title: str) -> str:
    """Return an SVG element."""
    parts = "\n".join(map(_svg, shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{_text(title)}" font-family=\'{_FONT}\'>\n'
        f"{parts}\n</svg>\n"
    )


def to_png(shapes: Sequence[Shape], width: int, height: int) -> bytes:
    """Return a PNG with two pixels per unit."""
    from PIL import Image, ImageDraw

    factor = _SCALE * _SMOOTHING
    page = Image.new("RGB", (width * factor, height * factor), "white")
    draw = ImageDraw.Draw(page)
    font = find_font(shape.text for shape in shapes if isinstance(shape, Label))
    for shape in shapes:
        _draw(draw, shape, factor, font)
    stream = io.BytesIO()
    smooth = page.resize((width * _SCALE, height * _SCALE), Image.Resampling.BOX)
    smooth.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _svg(shape: Shape) -> str:
    if isinstance(shape, Polyline):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        dashes = ' stroke-dasharray="5 4"' if shape.is_dashed else ""
        return (
            f'<polyline points="{points}" fill="none" stroke="{shape.colour}" '
            f'stroke-width="{shape.width:g}"{dashes}/>'
        )
    if isinstance(shape, Box):
        return (
            f'<rect x="{shape.left:.1f}" y="{shape.top:.1f}" width="{shape.width:.1f}" '
            f'height="{shape.height:.1f}" style="fill: {shape.colour}"/>'
        )
    if isinstance(shape, Dot):
        x, y = shape.centre
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{shape.radius:g}" fill="{shape.fill}" '
            f'stroke="{shape.outline}" stroke-width="1.5"/>'
        )
    x, y = shape.point
    weight = ' font-weight="600"' if shape.is_bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{shape.colour}" font-size="{shape.size:g}" '
        f'text-anchor="{shape.anchor}" dominant-baseline="central"{weight}>'
        f"{_text(shape.text)}</text>"
    )


def _text(text: str) -> str:
    return escape(printable(text), quote=True)


def _draw(draw: object, shape: Shape, factor: int, font: str) -> None:
    from PIL import ImageDraw

    assert isinstance(draw, ImageDraw.ImageDraw)
    if isinstance(shape, Polyline):
        width = max(1, round(shape.width * factor))
        pieces = _dashes(shape.points) if shape.is_dashed else [shape.points]
        for piece in pieces:
            draw.line([(x * factor, y * factor) for x, y in piece], shape.colour, width, "curve")
    elif isinstance(shape, Box):
        right, bottom = shape.left + shape.width, shape.top + shape.height
        corners = (shape.left, shape.top, max(right, shape.left), max(bottom, shape.top))
        draw.rectangle([place * factor for place in corners], shape.colour)
    elif isinstance(shape, Dot):
        (x, y), r = shape.centre, shape.radius
        box = [place * factor for place in (x - r, y - r, x + r, y + r)]
        draw.ellipse(box, shape.fill, shape.outline, round(1.5 * factor))
    else:
        x, y = shape.point
        draw.text(
            (x * factor, y * factor),
            printable(shape.text),
            shape.colour,
            load_font(font, round(shape.size * factor)),
            _ANCHORS[shape.anchor],
            stroke_width=round(0.35 * factor) if shape.is_bold else 0,
            stroke_fill=shape.colour,
        )


def _dashes(points: Sequence[Point]) -> list[list[Point]]:
    """Divide straight horizontal or vertical lines into dashes of 5 with gaps of 4."""
    dashes: list[list[Point]] = []
    for (x0, y0), (x1, y1) in pairwise(points):
        length = max(abs(x1 - x0), abs(y1 - y0))
        for start in range(0, int(length), 9):
            ends = (start / length, min(start + 5, length) / length)
            dashes.append([(x0 + (x1 - x0) * at, y0 + (y1 - y0) * at) for at in ends])
    return dashes
