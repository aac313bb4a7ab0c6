"""Draw synthetic flower images for the demo dataset.

The same species and number always give the same image. Images are drawn at twice the size and
reduced, which smooths edges.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFilter

from recordsmith.image.masks.colours import Colour

Point: TypeAlias = tuple[float, float]

_SCALE = 2
_SIZES = ((320, 240), (320, 240), (240, 320), (300, 300), (360, 240))
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_BACKDROPS: tuple[tuple[Colour, Colour], ...] = (
    ((148, 190, 214), (92, 132, 66)),
    ((196, 212, 190), (66, 104, 58)),
    ((58, 84, 62), (28, 48, 34)),
    ((226, 208, 178), (120, 140, 84)),
    ((122, 152, 120), (54, 86, 52)),
)


def draw_flower(species: str, number: int) -> Image.Image:
    """Draw image `number` of one of SPECIES: RGB, about 320 by 240 pixels."""
    rng = random.Random(f"{species} {number}")
    width, height = rng.choice(_SIZES)
    canvas = _backdrop(rng, width * _SCALE, height * _SCALE)
    draw_head = SPECIES[species]
    flowers = rng.choice((1, 1, 1, 2, 3))
    reach = min(canvas.size) * {1: 0.36, 2: 0.27, 3: 0.22}[flowers]
    for place in range(flowers):
        across = (place + 0.5) / flowers + rng.uniform(-0.07, 0.07)
        centre = (across * canvas.width, canvas.height * rng.uniform(0.36, 0.52))
        radius = reach * rng.uniform(0.8, 1.05)
        _stem(ImageDraw.Draw(canvas), rng, centre, radius, canvas.height)
        _shadow(canvas, centre, radius)
        draw_head(ImageDraw.Draw(canvas), rng, centre, radius)
    return canvas.resize((width, height), Image.Resampling.LANCZOS)


# -- parts ---------------------------------------------------------------------------------------


def _backdrop(rng: random.Random, width: int, height: int) -> Image.Image:
    """A blurred meadow: sky, ground, spots of light, blades of grass."""
    sky, ground = rng.choice(_BACKDROPS)
    ramp = Image.linear_gradient("L").resize((width, height))
    canvas = Image.composite(
        Image.new("RGB", (width, height), ground), Image.new("RGB", (width, height), sky), ramp
    )
    draw = ImageDraw.Draw(canvas)
    for _ in range(26):
        x, y, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.02, 0.09) * width
        base = _mix(sky, ground, y / height)
        draw.ellipse((x - r, y - r, x + r, y + r), _mix(base, (255, 250, 220), rng.uniform(0, 0.3)))
    canvas = canvas.filter(ImageFilter.GaussianBlur(width / 45))
    draw = ImageDraw.Draw(canvas)
    for _ in range(40):
        x, lean = rng.uniform(0, width), rng.uniform(-0.08, 0.08) * width
        top = height * rng.uniform(0.62, 0.95)
        tint = _mix(ground, rng.choice(((150, 180, 90), (30, 56, 30))), rng.uniform(0.2, 0.6))
        blade = width / 130
        draw.polygon([(x - blade, height), (x + blade, height), (x + lean, top)], tint)
    return canvas.filter(ImageFilter.GaussianBlur(width / 220))


def _stem(
    draw: ImageDraw.ImageDraw, rng: random.Random, centre: Point, radius: float, bottom: int
) -> None:
    x, y = centre
    green = (rng.randint(58, 86), rng.randint(112, 140), rng.randint(48, 66))
    bend = rng.uniform(-0.5, 0.5) * radius
    path = [(x + bend * (t / 12) ** 2, y + (bottom - y) * t / 12) for t in range(13)]
    thick = max(3, round(radius / 11))
    draw.line(path, _mix(green, (0, 0, 0), 0.25), thick, "curve")
    draw.line([(px - thick / 5, py) for px, py in path], green, max(2, thick // 2), "curve")
    for side in (-1, 1):
        at = path[rng.randint(7, 10)]
        angle = -math.pi / 2 + side * rng.uniform(0.5, 1.0)
        _petal(draw, at, angle, radius * rng.uniform(0.6, 0.9), radius * 0.17, green, 0.9)


def _shadow(canvas: Image.Image, centre: Point, radius: float) -> None:
    """Draw a shadow below the flower."""
    (x, y), r = centre, radius * 0.85
    mask = Image.new("L", canvas.size)
    ImageDraw.Draw(mask).ellipse((x - r, y - r * 0.7, x + r, y + r * 1.15), 120)
    mask = mask.resize((canvas.width // 8, canvas.height // 8)).filter(
        ImageFilter.GaussianBlur(radius / 50)
    )
    canvas.paste((18, 26, 14), (0, 0), mask.resize(canvas.size))


def _petal(
    draw: ImageDraw.ImageDraw,
    root: Point,
    angle: float,
    length: float,
    width: float,
    colour: Colour,
    point: float,
) -> None:
    """One petal from `root` outwards; `point` is 0 for a round tip and 1 for a sharp one."""
    sides: list[list[Point]] = [[], []]
    for step in range(13):
        along = step / 12
        swell = math.sin(math.pi * along ** (0.75 - 0.2 * point)) ** (0.55 + 0.5 * point)
        for side, sign in zip(sides, (-1, 1), strict=True):
            side.append(_turned(root, angle, along * length, sign * swell * width / 2))
    outline = sides[0] + sides[1][::-1]
    draw.polygon(outline, colour)
    draw.line(outline, _mix(colour, (40, 20, 10), 0.22), max(1, round(width / 26)))
    draw.polygon(
        sides[0] + [_turned(root, angle, length * k / 12, 0) for k in range(12, -1, -1)],
        _mix(colour, (255, 255, 245), 0.14),
    )
    vein = [_turned(root, angle, length * share, 0) for share in (0.06, 0.5, 0.82)]
    draw.line(vein, _mix(colour, (60, 30, 10), 0.16), max(1, round(width / 20)))


def _ring(
    draw: ImageDraw.ImageDraw,
    rng: random.Random,
    centre: Point,
    radius: float,
    petals: int,
    width: float,
    colour: Colour,
    point: float,
) -> None:
    """Petals around a centre, each a little different."""
    first = rng.uniform(0, math.tau)
    for number in range(petals):
        angle = first + math.tau * number / petals + rng.uniform(-0.06, 0.06)
        tint = _mix(colour, (0, 0, 0), rng.uniform(0, 0.1))
        _petal(draw, centre, angle, radius * rng.uniform(0.9, 1.03), width, tint, point)


def _seeds(
    draw: ImageDraw.ImageDraw, centre: Point, radius: float, inner: Colour, outer: Colour
) -> None:
    """A disc of seeds in spirals."""
    x, y = centre
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), _mix(outer, (0, 0, 0), 0.35))
    for number in range(170):
        share = math.sqrt(number / 170)
        angle = number * _GOLDEN_ANGLE
        sx, sy = x + radius * share * math.cos(angle), y + radius * share * math.sin(angle)
        dot = radius * (0.045 + 0.03 * share)
        draw.ellipse((sx - dot, sy - dot, sx + dot, sy + dot), _mix(inner, outer, share))


# -- species -------------------------------------------------------------------------------------


def _daisy(draw: ImageDraw.ImageDraw, rng: random.Random, centre: Point, radius: float) -> None:
    white = rng.choice(((248, 248, 244), (244, 240, 248), (252, 232, 238)))
    petals = rng.randint(15, 21)
    for shade in (0.16, 0.0):
        tint = _mix(white, (90, 100, 120), shade)
        _ring(draw, rng, centre, radius, petals, radius * 0.23, tint, 0.1)
    _seeds(draw, centre, radius * 0.27, (255, 226, 92), (226, 152, 24))


def _dandelion(draw: ImageDraw.ImageDraw, rng: random.Random, centre: Point, radius: float) -> None:
    for layer in range(6):
        share = 1 - layer * 0.15
        tint = _mix((232, 164, 12), (255, 230, 70), layer / 5)
        _ring(draw, rng, centre, radius * 0.86 * share, 34, radius * 0.085, tint, 0.35)
    _seeds(draw, centre, radius * 0.12, (250, 206, 40), (222, 160, 20))


def _rose(draw: ImageDraw.ImageDraw, rng: random.Random, centre: Point, radius: float) -> None:
    colour = rng.choice(((196, 24, 46), (222, 92, 122), (238, 168, 150), (168, 18, 62)))
    turn = rng.uniform(0, math.tau)
    layers = 8
    for layer in range(layers):
        share = 1 - layer / layers
        petals = 3 if layer > 5 else 5
        for number in range(petals):
            angle = turn + layer * 1.1 + math.tau * number / petals
            tint = _mix(colour, (36, 0, 12), 0.5 * layer / layers + rng.uniform(0, 0.08))
            reach = radius * share * 0.52
            middle = _turned(centre, angle, reach * 0.72, 0)
            rim = radius * (0.2 + 0.34 * share)
            _cupped(draw, middle, angle, rim, tint)
    _cupped(draw, centre, turn, radius * 0.13, _mix(colour, (30, 0, 10), 0.45))


def _cupped(
    draw: ImageDraw.ImageDraw, middle: Point, angle: float, radius: float, colour: Colour
) -> None:
    """A broad petal seen from above, its outer rim in the light."""
    light = _mix(colour, (255, 236, 232), 0.3)
    for shrink, tint in ((1.0, light), (0.93, colour)):
        outline = [
            _turned(
                middle,
                angle,
                radius * shrink * 0.74 * math.cos(t * math.tau / 28) - radius * (1 - shrink),
                radius * shrink * math.sin(t * math.tau / 28),
            )
            for t in range(28)
        ]
        draw.polygon(outline, tint)
    draw.line([*outline, outline[0]], _mix(colour, (20, 0, 8), 0.3), max(1, round(radius / 40)))


def _sunflower(draw: ImageDraw.ImageDraw, rng: random.Random, centre: Point, radius: float) -> None:
    for tint in ((222, 138, 8), (250, 186, 20)):
        _ring(draw, rng, centre, radius * 1.05, rng.randint(17, 21), radius * 0.25, tint, 0.85)
    _seeds(draw, centre, radius * 0.48, (74, 52, 26), (122, 72, 22))


def _tulip(draw: ImageDraw.ImageDraw, rng: random.Random, centre: Point, radius: float) -> None:
    colour = rng.choice(((214, 40, 56), (236, 120, 40), (244, 204, 60), (148, 60, 150)))
    x, y = centre
    root = (x, y + radius * 0.72)
    up = -math.pi / 2 + rng.uniform(-0.1, 0.1)
    for lean, shade, width in (
        (-0.30, 0.24, 0.62),
        (0.30, 0.24, 0.62),
        (0.0, 0.32, 0.7),
        (-0.2, 0.05, 0.66),
        (0.2, 0.1, 0.66),
        (0.0, 0.0, 0.6),
    ):
        tint = _mix(colour, (50, 8, 20), shade)
        length = radius * (1.62 if lean else 1.45) * rng.uniform(0.96, 1.03)
        _petal(draw, root, up + lean, length, radius * width, tint, 0.5)


SPECIES: dict[str, Callable[[ImageDraw.ImageDraw, random.Random, Point, float], None]] = {
    "daisy": _daisy,
    "dandelion": _dandelion,
    "rose": _rose,
    "sunflower": _sunflower,
    "tulip": _tulip,
}


def _turned(origin: Point, angle: float, along: float, across: float) -> Point:
    """The point at a distance along a direction and across it."""
    cos, sin = math.cos(angle), math.sin(angle)
    return (origin[0] + along * cos - across * sin, origin[1] + along * sin + across * cos)


def _mix(one: Colour, other: Colour, share: float) -> Colour:
    """Interpolate between two colours: share 0 is the first, 1 the second."""
    return tuple(round(a + (b - a) * share) for a, b in zip(one, other, strict=True))  # type: ignore[return-value]
