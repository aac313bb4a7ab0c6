"""Draw synthetic flower images for the demo dataset, the same for the same species and number."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from recordsmith.image.colours import Colour
from recordsmith.support.libraries import Image, ImageDraw, ImageFilter

Point: TypeAlias = tuple[float, float]

_SCALE = 2  # images are drawn larger and reduced, which smooths edges
_SIZES = ((320, 240), (320, 240), (240, 320), (300, 300), (360, 240))
_SKIES = ((148, 190, 214), (58, 84, 62), (226, 208, 178))


def draw_flower(species: str, number: int) -> Image.Image:
    """Draw image `number` of one of SPECIES: RGB, about 320 by 240 pixels."""
    rng = random.Random(f"{species} {number}")
    width, height = rng.choice(_SIZES)
    canvas = _backdrop(rng, width * _SCALE, height * _SCALE)
    draw = ImageDraw.Draw(canvas)
    count = rng.choice((1, 1, 1, 2, 3))
    for place in range(count):
        x = canvas.width * ((place + 0.5) / count + rng.uniform(-0.07, 0.07))
        y = canvas.height * rng.uniform(0.36, 0.52)
        radius = min(canvas.size) * 0.37 / math.sqrt(count) * rng.uniform(0.8, 1.05)
        draw.line([(x, y), (x, canvas.height)], (70, 125, 56), round(radius / 9))
        SPECIES[species](draw, rng, (x, y), radius)
    return canvas.resize((width, height), Image.Resampling.LANCZOS)


def _backdrop(rng: random.Random, width: int, height: int) -> Image.Image:
    """A blurred meadow: sky, ground, spots of light."""
    sky, ground = rng.choice(_SKIES), (62, 98, 52)
    canvas = Image.new("RGB", (width, height), sky)
    ramp = Image.linear_gradient("L").resize((width, height))
    canvas.paste(ground, mask=ramp)
    draw = ImageDraw.Draw(canvas)
    for _ in range(60):
        x, y, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.02, 0.09) * width
        spot = _mix(_mix(sky, ground, y / height), (255, 250, 220), rng.uniform(0, 0.3))
        draw.ellipse((x - r, y - r, x + r, y + r), spot)
    return canvas.filter(ImageFilter.GaussianBlur(width / 60))


def _draw_head(
    colours: Sequence[Colour],
    petals: int,
    width: float,
    rings: int,
    eye: tuple[float, Colour],
    draw: ImageDraw.ImageDraw,
    rng: random.Random,
    centre: Point,
    radius: float,
) -> None:
    """Rings of petals, darker and longer outside, around an eye of this share of the radius."""
    colour, (share, eye_colour) = rng.choice(colours), eye
    for ring in range(rings):
        length = radius * (1 - 0.8 * ring / rings)
        first = rng.uniform(0, math.tau)
        for number in range(petals):
            angle = first + math.tau * number / petals + rng.uniform(-0.06, 0.06)
            shade = 0.3 * (1 - (ring + 1) / rings) + rng.uniform(0, 0.1)
            tint = _mix(colour, (40, 10, 20), shade)
            _draw_petal(draw, centre, angle, length * rng.uniform(0.9, 1), length * width, tint)
    (x, y), r = centre, radius * share
    draw.ellipse((x - r, y - r, x + r, y + r), eye_colour)


def _draw_petal(
    draw: ImageDraw.ImageDraw, root: Point, angle: float, length: float, width: float, tint: Colour
) -> None:
    cos, sin = math.cos(angle), math.sin(angle)
    outline = []
    for turn in (math.tau * step / 24 for step in range(24)):
        along, across = length * (1 - math.cos(turn)) / 2, width * math.sin(turn) / 2
        outline.append((root[0] + along * cos - across * sin, root[1] + along * sin + across * cos))
    draw.polygon(outline, tint, _mix(tint, (40, 20, 10), 0.3))


def _mix(one: Colour, other: Colour, share: float) -> Colour:
    """Interpolate between two colours: share 0 is the first, 1 the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


SPECIES: dict[str, Callable[[ImageDraw.ImageDraw, random.Random, Point, float], None]] = {
    "daisy": partial(_draw_head, [(250, 244, 246)], 17, 0.25, 1, (0.27, (240, 190, 50))),
    "dandelion": partial(_draw_head, [(255, 215, 50)], 30, 0.1, 4, (0.1, (230, 170, 30))),
    "rose": partial(_draw_head, [(196, 24, 46), (222, 92, 122)], 5, 0.95, 5, (0.1, (90, 10, 30))),
    "sunflower": partial(_draw_head, [(250, 186, 20)], 18, 0.3, 2, (0.45, (90, 60, 24))),
    "tulip": partial(_draw_head, [(236, 120, 40), (148, 60, 150)], 3, 0.9, 1, (0.05, (60, 20, 20))),
}
