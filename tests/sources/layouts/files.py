"""Makes folders of small images, masks and other files, without recordsmith."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIZE = (32, 24)
"""Width and height of images."""

BLACK_AND_WHITE = {0: (0, 0, 0), 1: (255, 255, 255)}
COLOURS = {0: (0, 0, 0), 1: (128, 0, 0), 2: (0, 128, 0), 3: (128, 128, 0), 255: (224, 224, 192)}
"""PASCAL VOC's."""

_IDX_TYPES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}
_KINDS = {".jpg": "JPEG", ".jpeg": "JPEG", ".tif": "TIFF", ".tiff": "TIFF"}


class Folder:
    """A folder to fill. All images and masks in it are different."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.masks: dict[str, str] = {}
        """Digest of the pixels of each mask, and its name."""
        self._count = 0
        self._seen: set[bytes] = set()
        path.mkdir(parents=True, exist_ok=True)

    def data(self, name: str, content: bytes) -> bytes:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return content

    def text(self, name: str, text: str, encoding: str = "utf-8") -> None:
        self.data(name, text.encode(encoding))

    def lines(self, name: str, *lines: object) -> None:
        self.text(name, "".join(f"{line}\n" for line in lines))

    def csv(self, name: str, header: str, *rows: Sequence[object]) -> None:
        self.lines(name, header, *(",".join(map(str, row)) for row in rows))

    def json(self, name: str, document: object) -> None:
        self.text(name, json.dumps(document))

    def folder(self, name: str) -> None:
        (self.path / name).mkdir(parents=True, exist_ok=True)

    def random(self) -> np.random.Generator:
        """Random numbers for the next image."""
        self._count += 1
        return np.random.default_rng(self._count)

    def photo(
        self,
        name: str,
        *,
        mode: str = "RGB",
        size: tuple[int, int] = SIZE,
        kind: str | None = None,
    ) -> str:
        """Write an image with the colours of a photograph, and return the digest of its pixels."""
        content = encoded(photo_pixels(self.random(), mode, size), name, kind)
        return pixel_digest(self.data(name, content))

    def mask(
        self,
        name: str,
        values: Sequence[int] = (0, 1, 2),
        *,
        colours: Mapping[int, tuple[int, int, int]] | None = None,
        palette: Mapping[int, tuple[int, int, int]] | None = None,
        size: tuple[int, int] = SIZE,
    ) -> NDArray[np.int64]:
        """Write a mask of rectangles, as values, colours or a palette, and return its values."""
        pixels = self.regions(values, size)
        if colours is not None:
            table = [colours.get(value, (0, 0, 0)) for value in range(256)]
            image = Image.fromarray(np.asarray(table, np.uint8)[pixels])
        elif palette is not None:
            image = _with_palette(Image.fromarray(pixels.astype(np.uint8)), palette)
        else:
            dtype = np.uint16 if max(values) > 255 else np.uint8
            image = Image.fromarray(pixels.astype(dtype))
        self.masks[pixel_digest(self.data(name, encoded(image, name)))] = name
        return pixels

    def regions(
        self, values: Sequence[int] = (0, 1, 2), size: tuple[int, int] = SIZE
    ) -> NDArray[np.int64]:
        """The first value, and a rectangle of each other one; different from all before."""
        while True:
            random = self.random()
            pixels = np.full(size[::-1], values[0], np.int64)
            for value in values[1:]:
                left, top = (int(random.integers(0, side - 8)) for side in size)
                pixels[top : top + int(random.integers(4, 8)), left : left + 6] = value
            if pixels.tobytes() not in self._seen and set(values) == {*np.unique(pixels).tolist()}:
                self._seen.add(pixels.tobytes())
                return pixels

    def clutter(self) -> None:
        """The files that operating systems, archives and people leave in folders."""
        self.data(".DS_Store", b"\0\0\0\1Bud1" + bytes(64))
        self.data("Thumbs.db", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(64))
        self.text("README.txt", "Images of our own making.\n")
        self.text("LICENSE", "CC0 1.0 Universal\n")
        self.json("explore.ipynb", {"cells": [], "metadata": {}, "nbformat": 4})


def npy_bytes(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def npz_bytes(*, packed: bool = False, **arrays: Any) -> bytes:
    out = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(out, **arrays)
    return out.getvalue()


def idx_bytes(array: NDArray[Any]) -> bytes:
    """The format of MNIST: two zeros, a type, the number of axes, big-endian sizes, values."""
    head = struct.pack(
        f">HBB{array.ndim}I", 0, _IDX_TYPES[array.dtype.str[1:]], array.ndim, *array.shape
    )
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def tar_bytes(members: Any, mode: str = "w", **options: Any) -> bytes:
    """An archive of (name, bytes) pairs, or of TarInfos for other members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, **options) as archive:
        for name, data in members.items() if isinstance(members, dict) else members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def photo_pixels(
    random: np.random.Generator, mode: str = "RGB", size: tuple[int, int] = SIZE
) -> Image.Image:
    """Smooth colours with noise in them."""
    small = random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize(size, Image.Resampling.BICUBIC), np.int64)
    noisy = (smooth + random.integers(-9, 10, smooth.shape)).clip(0, 255).astype(np.uint8)
    image = Image.fromarray(noisy)
    if mode == "I;16":
        values = np.asarray(image.convert("L"), np.uint16) * 200 + noisy[..., 0]
        return Image.fromarray(values.astype(np.uint16))
    return image if mode == "RGB" else image.convert(mode)


def encoded(image: Image.Image, name: str, kind: str | None = None) -> bytes:
    """The bytes of a file of this name."""
    suffix = Path(name).suffix.lower()
    out = io.BytesIO()
    image.save(out, kind or _KINDS.get(suffix, suffix[1:].upper()))
    return out.getvalue()


def pixel_digest(data: bytes) -> str:
    """The same for the same pixels, as Pillow decodes them: of 8 bits in RGB, others as stored."""
    with Image.open(io.BytesIO(data)) as image:
        return array_digest(np.asarray(image if image.mode[0] in "IF" else image.convert("RGB")))


def array_digest(pixels: NDArray[Any]) -> str:
    """The same, of pixels."""
    return hashlib.sha256(repr(pixels.shape).encode() + pixels.astype(float).tobytes()).hexdigest()


def pixel_values(data: bytes) -> NDArray[np.int64]:
    """The values of a mask as they are stored: indices of a palette, not its colours."""
    with Image.open(io.BytesIO(data)) as image:
        pixels = np.asarray(image).astype(np.int64)
    if pixels.ndim == 3:  # colours, as one number each
        pixels = pixels[..., :3] @ np.array([65536, 256, 1])
    return pixels


def _with_palette(image: Image.Image, palette: Mapping[int, tuple[int, int, int]]) -> Image.Image:
    flat: list[int] = []
    for value in range(256):
        flat += palette.get(value, (0, 0, 0))
    result = Image.frombytes("P", image.size, image.tobytes())
    result.putpalette(flat)
    return result


def box_of(pixels: NDArray[np.int64], value: int) -> tuple[int, int, int, int]:
    """The left, top, right and bottom edges of the pixels of a value."""
    rows, columns = np.nonzero(pixels == value)
    return (
        int(columns.min()),
        int(rows.min()),
        int(columns.max()) + 1,
        int(rows.max()) + 1,
    )
