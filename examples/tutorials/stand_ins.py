"""Drawn images for the scripts in this folder, the same in every run.

They replace what the tutorials download: flowers in class folders, cats and dogs with classes in
their file names, and PASCAL VOC's folders of images with masks.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

Box: TypeAlias = tuple[int, int, int, int]
Paint: TypeAlias = int | tuple[int, int, int]

FLOWERS = {  # name -> colours of petals and centre, number of petals
    "daisy": ((240, 240, 235), (235, 190, 40), 14),
    "dandelion": ((245, 205, 40), (225, 165, 20), 30),
    "roses": ((190, 25, 50), (120, 10, 35), 6),
    "sunflowers": ((240, 180, 20), (90, 55, 25), 20),
    "tulips": ((200, 60, 160), (120, 30, 100), 4),
}
PETS = {  # file name -> width and height
    "cat_0.jpeg": (275, 183),
    "cat_1.jpeg": (528, 350),
    "cat_2.jpeg": (198, 254),
    "cat_3.png": (335, 400),
    "cat_4.png": (450, 590),
    "dog_0.jpg": (260, 391),
    "dog_1.jpg": (537, 800),
    "dog_2.jpg": (640, 960),
    "dog_3.jpeg": (219, 230),
    "dog_4.png": (400, 401),
}
VOC_CLASSES = {"cat": (8, (64, 0, 0)), "dog": (12, (64, 0, 128))}  # number and colour in masks
VOC_EDGE = (255, (224, 224, 192))


def working_folder() -> Path:
    """The folder that is named on the command line, or a new temporary one."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="recordsmith-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"in {folder}")
    return folder


def draw_flowers(folder: Path, count_of_each: int = 10) -> Path:
    """A folder for each class, with JPEG files."""
    for seed, (name, (petals, centre, petal_count)) in enumerate(FLOWERS.items()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count_of_each):
            rng = np.random.default_rng((seed, number))
            image = _backdrop(rng, 160, 120)
            x, y, radius = rng.integers((60, 45, 25), (100, 75, 42)).tolist()
            draw = ImageDraw.Draw(image)
            for angle in np.linspace(0, 2 * np.pi, petal_count, endpoint=False):
                across, down = radius * np.cos(angle), radius * np.sin(angle)
                draw.line((x, y, x + across, y + down), petals, max(3, 110 // petal_count))
            inner = radius // 3
            draw.ellipse((x - inner, y - inner, x + inner, y + inner), centre)
            image.save(folder / name / f"{number:03d}.jpg", quality=90)
    return folder


def draw_pets(folder: Path) -> Path:
    """Ten images in one folder; those that are PNG are transparent around the animal."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, (width, height)) in enumerate(PETS.items()):
        rng = np.random.default_rng(seed)
        image = _backdrop(rng, width, height)
        box = (width // 6, height // 4, width * 5 // 6, height * 7 // 8)
        _draw_head(image, name[:3], box, _fur(rng))
        if name.endswith(".png"):
            alpha = Image.new("L", image.size)
            _draw_head(alpha, name[:3], box, 255)
            image.putalpha(alpha.filter(ImageFilter.GaussianBlur(2)))
        image.save(folder / name)
    return folder


def draw_voc(folder: Path, count: int = 6) -> Path:
    """JPEGImages, SegmentationClass with palette masks, and the list of what is for training."""
    for name in ("JPEGImages", "SegmentationClass", "ImageSets/Segmentation"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    palette = np.zeros((256, 3), np.uint8)
    for number, colour in (*VOC_CLASSES.values(), VOC_EDGE):
        palette[number] = colour
    names = [f"2007_{number:06d}" for number in range(count)]
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        width, height = rng.integers((200, 160), (560, 440)).tolist()
        kind = ("cat", "dog")[seed % 2]
        box = (width // 5, height // 4, width * 4 // 5, height * 7 // 8)
        image, mask = _backdrop(rng, width, height), Image.new("P", (width, height))
        mask.putpalette(palette.tobytes())
        _draw_head(image, kind, box, _fur(rng))
        _draw_head(mask, kind, box, VOC_EDGE[0])
        inner = (box[0] + 4, box[1] + 4, box[2] - 4, box[3] - 4)
        _draw_head(mask, kind, inner, VOC_CLASSES[kind][0])
        image.save(folder / "JPEGImages" / f"{name}.jpg", quality=90)
        mask.save(folder / "SegmentationClass" / f"{name}.png")
    train = folder / "ImageSets" / "Segmentation" / "train.txt"
    train.write_text("".join(f"{name}\n" for name in names))
    return folder


def _backdrop(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    """Soft colours with a little grain, so that files are as large as those of photographs."""
    greens = rng.integers((60, 90, 40), (150, 180, 120), (5, 6, 3)).astype(np.uint8)
    coarse = Image.fromarray(greens)
    soft = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.int64)
    grain = rng.integers(-8, 9, (height, width, 3))
    return Image.fromarray(np.clip(soft + grain, 0, 255).astype(np.uint8))


def _fur(rng: np.random.Generator) -> Paint:
    red, green, blue = rng.integers((120, 90, 60), (220, 180, 140)).tolist()
    return red, green, blue


def _draw_head(image: Image.Image, kind: str, box: Box, paint: Paint) -> None:
    """A round head with the ears of a cat, which stand up, or of a dog, which hang."""
    draw = ImageDraw.Draw(image)
    left, top, right, _ = box
    ear = (right - left) // 4
    draw.ellipse(box, paint)
    for side, inward in ((left, 1), (right, -1)):
        if kind == "cat":
            tip = (side + inward * ear // 3, top - ear // 2)
            foot = (side + inward * 2 * ear, top + ear // 4)
            draw.polygon([(side, top + 2 * ear), tip, foot], paint)
        else:
            middle = side + inward * ear // 4
            draw.ellipse((middle - ear // 2, top, middle + ear // 2, top + 3 * ear), paint)
