"""Folders of images and masks, drawn by Pillow and NumPy, to be detected."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 24, 16


def _dice(path: str) -> np.random.Generator:
    return np.random.default_rng(list(path.encode("utf-8", "surrogateescape")))


def photo(path: str, size: tuple[int, int] = SIZE) -> Image.Image:
    """Colourful noise."""
    return Image.fromarray(_dice(path).integers(256, size=(size[1], size[0], 3), dtype=np.uint8))


def numbers(path: str, count: int = 3, size: tuple[int, int] = SIZE) -> Image.Image:
    """Rectangles of class numbers, of which 0 and 1 are always there."""
    dice = _dice(path)
    pixels = np.zeros((size[1], size[0]), np.uint8)
    pixels[:4, :4] = 1
    for number in range(1, count):
        top, left = dice.integers(size[1] - 4), dice.integers(4, size[0] - 4)
        pixels[top : top + 4, left : left + 4] = number
    return Image.fromarray(pixels)


def palette(path: str) -> Image.Image:
    """A mask with a palette, as PASCAL VOC has."""
    image = numbers(path)
    image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
    return image


def black_and_white(path: str) -> Image.Image:
    return numbers(path, 2).point(lambda value: value * 255)


def coloured(path: str, colours: tuple[tuple[int, int, int], ...]) -> Image.Image:
    """A mask with these colours instead of numbers."""
    table = np.array(colours, np.uint8)
    return Image.fromarray(table[np.asarray(numbers(path, len(colours)))])


VOC = (0, 0, 0), (128, 0, 0), (0, 128, 0)
OWN = (1, 2, 3), (64, 128, 64), (192, 0, 128)
KINDS = {
    "photo": photo,
    "gray": lambda path: photo(path).convert("L"),
    "numbers": numbers,
    "palette": palette,
    "white": black_and_white,
    "rgb": lambda path: black_and_white(path).convert("RGB"),
    "voc": lambda path: coloured(path, VOC),
    "own": lambda path: coloured(path, OWN),
    "depth": lambda path: Image.fromarray(
        _dice(path).integers(65536, size=SIZE[::-1]).astype(np.uint16)
    ),
    "large": lambda path: numbers(path, size=(48, 32)),
}


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files: pixels by the name of their kind, others as text. `{1-3}` makes three files."""
    for pattern, content in files.items():
        for path in _numbered(pattern):
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if content in KINDS:
                file.write_bytes(_encoded(KINDS[content](path), file.suffix))
            else:
                file.write_text(content)
    return root


def _numbered(pattern: str) -> list[str]:
    head, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    bounds, _, tail = rest.partition("}")
    first, _, last = bounds.partition("-")
    return [f"{head}{number:0{len(first)}d}{tail}" for number in range(int(first), int(last) + 1)]


def _encoded(image: Image.Image, suffix: str) -> bytes:
    formats = {".jpg": "JPEG", ".jpeg": "JPEG", ".gif": "GIF", ".bmp": "BMP", ".tif": "TIFF"}
    out = io.BytesIO()
    image.save(out, formats.get(suffix.lower(), "PNG"))
    return out.getvalue()
