"""The training data of the programs in this folder: drawn flowers, the same in every run.

Class folders for the classifiers, and meadows: images of several flowers, each with a mask of the
species of each pixel and a box around each flower.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

import recordsmith as rs
from recordsmith.image import SPECIES

NAMES = tuple(sorted(SPECIES))
SIDE = 96  # height and width in pixels
FIELD = 6  # meadows in a row of a field
SPLITS = {"train": 0.7, "validation": 0.3}


Flower = tuple[int, float, float, float]
"""Species from 0; x, y and radius, in meadows."""


class Drawn(NamedTuple):
    """An image; its mask, 0 for the meadow and species from 1; a line of YOLO for each flower:
    its species from 0, and of its box the centre's x and y, width and height, as fractions.
    """

    image: Image.Image
    mask: Image.Image
    boxes: list[str]


def options(
    doc: str | None, *, images: int, epochs: int, resumes: bool = False
) -> argparse.ArgumentParser:
    """Parse the options of all programs; if `resumes`, also those to stop and resume."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    add = parser.add_argument
    add("--folder", type=Path, default=Path("recordsmith-training"), help="folder for all files")
    add("--images", type=int, default=images, metavar="N", help="number of images to draw")
    add("--epochs", type=int, default=epochs, metavar="N", help="number of epochs")
    if resumes:
        add("--stop-after", type=int, metavar="STEP", help="write a checkpoint and stop")
        add("--resume", action="store_true", help="resume from the checkpoint")
    return parser


def packed_flowers(folder: Path, count: int) -> Path:
    """A dataset of flowers and their species, drawn and packed unless it exists."""
    flowers = folder / f"flowers-{count}"
    for number in range(count):
        species = number % len(NAMES)
        path = flowers / NAMES[species] / f"{number:04d}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draw_flower(number, species).image.save(path, quality=90)
    source = rs.ImageFolder(flowers)  # or your folder with a folder for each class
    report = rs.pack(source, f"{flowers}-packed", splits=SPLITS, stratify=True, shards=2)
    return Path(report.folder)


def packed_meadows(folder: Path, count: int, *, boxes: bool = False) -> Path:
    """A dataset of meadows with masks, or with boxes, drawn and packed unless it exists."""
    meadows = folder / f"meadows-{count}"
    for name in ("images", "masks", "labels"):
        (meadows / name).mkdir(parents=True, exist_ok=True)
    (meadows / "data.yaml").write_text(f"train: images\nnames: [{', '.join(NAMES)}]\n")
    for number in range(count):
        lines = meadows / "labels" / f"{number:04d}.txt"
        if not lines.exists():
            drawn = draw_meadow(number)
            drawn.image.save(meadows / "images" / f"{number:04d}.jpg", quality=95)
            drawn.mask.save(meadows / "masks" / f"{number:04d}.png")
            lines.write_text("\n".join(drawn.boxes))
    if boxes:
        return Path(rs.pack(rs.Yolo(meadows), f"{meadows}-boxes", splits=SPLITS).folder)
    source = rs.ImagePairs(meadows, images="images", masks="masks")
    return Path(rs.pack(source, f"{meadows}-masks", splits=SPLITS).folder)


def packed_fields(folder: Path, count: int) -> Path:
    """A dataset of large images with masks, drawn and packed unless it exists."""
    fields = folder / f"fields-{count}"
    for name in ("images", "masks"):
        (fields / name).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        mask = fields / "masks" / f"{number:04d}.png"
        if not mask.exists():
            field = draw_field(number)
            path = fields / "images" / f"{number:04d}.jpg"
            field.image.save(path, quality=95, restart_marker_blocks=4)  # tiles
            field.mask.save(mask)
    source = rs.ImagePairs(fields, images="images", masks="masks")
    return Path(rs.pack(source, f"{fields}-packed", splits=SPLITS).folder)


def draw_flower(number: int, species: int) -> Drawn:
    """One flower, somewhere near the middle."""
    rng = random.Random(number)
    x, y, radius = rng.uniform(0.35, 0.65), rng.uniform(0.35, 0.65), rng.uniform(0.2, 0.36)
    return _draw(rng, [(species, x, y, radius)])


def draw_meadow(number: int) -> Drawn:
    """Two to five flowers, each at one of nine places."""
    rng = random.Random(number)
    return _draw(rng, _scattered(rng))


def draw_field(number: int) -> Drawn:
    """A large image: as many flowers as in `FIELD` x `FIELD` meadows."""
    rng = random.Random(number)
    flowers = [
        (species, x + across, y + down, radius)
        for across in range(FIELD)
        for down in range(FIELD)
        for species, x, y, radius in _scattered(rng)
    ]
    return _draw(rng, flowers, FIELD)


def _scattered(rng: random.Random) -> list[Flower]:
    flowers = []
    for place in rng.sample(range(9), rng.randint(2, 5)):
        x, y = ((at + rng.uniform(0.4, 0.6)) / 3 for at in divmod(place, 3))
        flowers.append((rng.randrange(len(NAMES)), x, y, rng.uniform(0.11, 0.17)))
    return flowers


def _draw(rng: random.Random, flowers: list[Flower], meadows: int = 1) -> Drawn:
    """Draw flowers at twice the size, and reduce; `meadows`: in a row of the image."""
    unit, side = 2 * SIDE, 2 * SIDE * meadows
    hues = np.random.default_rng(rng.randrange(2**32)).integers(
        (50, 80, 40), (120, 170, 90), (5 * meadows, 5 * meadows, 3)
    )
    meadow = Image.fromarray(hues.astype(np.uint8)).resize((side, side), Image.Resampling.BICUBIC)
    mask = Image.new("L", meadow.size)
    boxes = []
    for species, x, y, radius in flowers:
        corner = [min(max(0, int((at - 0.5) * unit)), side - unit) for at in (x, y)]
        flower = Image.new("RGB", (unit, unit))
        draw = ImageDraw.Draw(flower)
        center = x * unit - corner[0], y * unit - corner[1]
        SPECIES[NAMES[species]](draw, rng, center, radius * unit)
        shape = flower.convert("L").point(lambda grey: 255 * (grey > 0))
        meadow.paste(flower, (corner[0], corner[1]), shape)
        mask.paste(species + 1, (corner[0], corner[1]), shape)
        left, top, right, bottom = (
            (edge + corner[axis % 2]) / side
            for axis, edge in enumerate(shape.getbbox() or (0, 0, 0, 0))
        )
        box = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
        boxes.append(" ".join(map(str, (species, *box))))
    size = side // 2, side // 2
    small = meadow.resize(size, Image.Resampling.LANCZOS)
    return Drawn(small, mask.resize(size, Image.Resampling.NEAREST), boxes)
