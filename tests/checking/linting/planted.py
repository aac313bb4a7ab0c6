"""Small datasets of drawn images: a clean one in each layout, and its twin with planted faults."""

from __future__ import annotations

import io
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

import recordsmith as rs

SIZE = (96, 64)


def photo(seed: int, size: tuple[int, int] = SIZE) -> Image.Image:
    """An image with soft shapes and grain, unlike those of other seeds."""
    rng = np.random.default_rng(seed)
    shown = np.zeros((size[1], size[0], 3))
    for cells, weight in ((3, 60.0), (7, 40.0), (16, 20.0)):
        soft = rng.normal(0, 1, (cells, cells, 3))
        channels = [
            np.asarray(
                Image.fromarray(soft[:, :, n].astype(np.float32)).resize(size, Image.BICUBIC)
            )
            for n in range(3)
        ]
        shown += weight * np.stack(channels, axis=2)
    shown += 128 + rng.normal(0, 3, shown.shape)
    return Image.fromarray(np.clip(shown, 0, 255).astype(np.uint8))


def save(path: Path, image: Image.Image, kind: str = "JPEG", **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "JPEG":
        options.setdefault("quality", 90)
    image.save(path, kind, **options)
    return path


def rotated() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def deep_png(seed: int) -> bytes:
    """An RGB PNG of 16 bits, which Pillow cannot write."""
    pixels = np.asarray(photo(seed)).astype(">u2") * 257
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + check

    header = struct.pack(">IIBBBBB", *SIZE, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    )


class Fault(NamedTuple):
    """A planted fault, and what must be found where.

    The file is that of the image, or what the annotation is called; a name in quotes for classes.
    `change` is called with the root and the path of the file.
    """

    check: str
    file: str
    change: Callable[[Path, Path], object]
    severity: str | None = None

    def plant(self, root: Path) -> None:
        self.change(root, root / self.file)


# -- class folders with splits -------------------------------------------------------------------

FRUITS = ("apple", "banana", "cherry")


def fruit_folders(root: Path) -> rs.ImageFolder:
    seed = 0
    for split, count in (("train", 14), ("val", 10)):
        for name in FRUITS:
            for number in range(count):
                seed += 1
                save(root / split / name / f"{number:02d}.jpg", photo(seed))
    return rs.ImageFolder(root)


def digit(seed: int) -> Image.Image:
    """A handwritten figure of 28 x 28 pixels: one of six shapes, drawn with a shaky hand."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(6)
    corners = np.random.default_rng(100 + shape).uniform(4, 24, (2 + shape, 2))
    corners += rng.normal(0, 0.8, corners.shape) + rng.normal(0, 0.4, 2)
    drawn = Image.new("L", (112, 112))
    line = [(x, y) for x, y in (corners * 4).tolist()]
    ImageDraw.Draw(drawn).line(line, fill=255, width=int(rng.integers(6, 14)), joint="curve")
    return drawn.resize((28, 28), Image.LANCZOS)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:900])


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = len(data) * 2 // 3
    data[at : at + 2] = b"\xff\xd3"  # a restart marker where there is none
    path.write_bytes(data)


def _copy(source: str, target: str = "") -> Callable[[Path, Path], object]:
    def change(root: Path, path: Path) -> None:
        path = root / target if target else path
        path.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(root / source, path)

    return change


def _resized(source: str, *size: int) -> Callable[[Path, Path], object]:
    return lambda root, path: save(path, Image.open(root / source).resize(size))


FRUIT_FAULTS = (
    Fault("unreadable-image", "train/apple/00.jpg", lambda _, p: _cut(p)),
    Fault("unreadable-image", "train/apple/01.jpg", lambda _, p: p.write_text("<html>404</html>")),
    Fault("unreadable-image", "train/apple/02.jpg", lambda _, p: p.write_bytes(b"")),
    Fault("damaged-image", "train/apple/03.jpg", lambda _, p: _damage(p)),
    Fault("wrong-extension", "train/apple/04.jpg", lambda _, p: save(p, photo(904), "PNG")),
    Fault("cmyk", "train/apple/05.jpg", lambda _, p: save(p, photo(905).convert("CMYK"))),
    Fault("high-bit-depth", "train/apple/x.png", lambda _, p: p.write_bytes(deep_png(906))),
    Fault("alpha", "train/banana/x.png", lambda _, p: save(p, _transparent(907), "PNG")),
    Fault(
        "exif-orientation",
        "train/banana/00.jpg",
        lambda _, p: save(p, photo(908), exif=rotated()),
        "note",
    ),
    Fault("identical-images", "train/banana/twin.jpg", _copy("train/banana/01.jpg")),
    Fault("identical-across-splits", "val/banana/leak.jpg", _copy("train/banana/02.jpg")),
    Fault(
        "similar-across-splits",
        "val/banana/again.jpg",
        lambda r, p: save(p, Image.open(r / "train/banana/03.jpg"), quality=70),
    ),
    Fault("similar-images", "train/banana/zoomed.jpg", _resized("train/banana/04.jpg", 48, 32)),
    Fault("conflicting-labels", "train/cherry/other.jpg", _copy("train/apple/06.jpg")),
    # no copy, so another class is not a conflict
    Fault("similar-images", "val/cherry/small.jpg", _resized("val/apple/07.jpg", 64, 40)),
    Fault("similar-class-names", "'Cherry'", _copy("val/cherry/01.jpg", "val/Cherry/1.jpg")),
    Fault("similar-class-names", "'bananas'", _copy("val/banana/01.jpg", "val/bananas/1.jpg")),
    Fault("missing-class", "'Cherry'", lambda *_: None),
)


def _transparent(seed: int) -> Image.Image:
    image = photo(seed).convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(SIZE))
    return image


# -- boxes: PASCAL VOC, YOLO ---------------------------------------------------------------------

PETS = ("cat", "dog")
_GOOD_BOX = (10, 12, 60, 50)


def voc_pets(root: Path) -> rs.Voc:
    for number in range(20):
        save(root / f"JPEGImages/{number:02d}.jpg", photo(2000 + number))
        write_xml(root, f"{number:02d}", [(PETS[number % 2], *_GOOD_BOX)])
    items = "".join(f"item {{ id: {n} name: '{name}' }}\n" for n, name in enumerate(PETS, 1))
    (root / "label_map.pbtxt").write_text(items)
    return rs.Voc(root, label_map=root / "label_map.pbtxt")


def write_xml(
    root: Path, name: str, boxes: list[Any], size: tuple[int, int] = SIZE, image: str | None = None
) -> None:
    objects = "".join(
        f"<object><name>{kind}</name><bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin>"
        f"<xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"
        for kind, *box in boxes
    )
    path = root / f"Annotations/{name}.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"<annotation><filename>{image or f'{name}.jpg'}</filename><size><width>{size[0]}</width>"
        f"<height>{size[1]}</height><depth>3</depth></size>{objects}</annotation>"
    )


def _box(*box: Any, kind: str = "cat", **options: Any) -> Callable[[Path, Path], object]:
    return lambda root, path: write_xml(root, path.stem, [(kind, *box)], **options)


def _cut_with_wrong_box(root: Path, path: Path) -> None:
    write_xml(root, path.stem, [("cat", 10, 12, 97, 50)])
    _cut(path)


VOC_FAULTS = (
    Fault("box-outside", "JPEGImages/00.jpg", _box(10, 12, 97, 50)),
    Fault("box-inverted", "JPEGImages/01.jpg", _box(60, 12, 10, 50)),
    Fault("box-empty", "JPEGImages/02.jpg", _box(10, 12, 10, 50)),
    Fault("invalid-box", "JPEGImages/03.jpg", _box("nan", 12, 60, 50)),
    Fault("tiny-box", "JPEGImages/04.jpg", _box(10, 12, 11, 50)),
    Fault("image-size", "JPEGImages/05.jpg", _box(*_GOOD_BOX, size=(120, 64))),
    Fault(
        "exif-orientation",
        "JPEGImages/06.jpg",
        lambda _, p: save(p, photo(2006), exif=rotated()),
    ),
    Fault("unknown-class", "JPEGImages/07.jpg", _box(*_GOOD_BOX, kind="catt")),
    Fault("annotation-without-image", "Annotations/lost.xml", _box(*_GOOD_BOX)),
    Fault("image-without-annotation", "JPEGImages/bare.jpg", lambda _, p: save(p, photo(2100))),
    Fault("unreadable-image", "JPEGImages/08.jpg", _cut_with_wrong_box),
)


def yolo_pets(root: Path) -> rs.Yolo:
    for number in range(20):
        save(root / f"images/{number:02d}.jpg", photo(4000 + number))
        write_label(root, f"{number:02d}", f"{number % 2} 0.5 0.5 0.4 0.4")
    (root / "data.yaml").write_text("train: images\nnames: [cat, dog]\n")
    return rs.Yolo(root)


def write_label(root: Path, name: str, line: str) -> None:
    path = root / f"labels/{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line + "\n")


YOLO_FAULTS = (
    Fault("unknown-class", "images/00.jpg", lambda r, _: write_label(r, "00", "2 0.5 0.5 0.4 0.4")),
    Fault("box-outside", "images/01.jpg", lambda r, _: write_label(r, "01", "0 0.9 0.5 0.4 0.4")),
    Fault("invalid-box", "images/02.jpg", lambda r, _: write_label(r, "02", "0 0.5 0.5")),
)

# -- images and masks ----------------------------------------------------------------------------


def mask_of(seed: int, size: tuple[int, int] = SIZE) -> Image.Image:
    values = np.asarray(photo(seed, size).convert("L")) // 96  # 0, 1, 2
    return Image.fromarray(values.astype(np.uint8))


def pair_folders(root: Path) -> rs.ImagePairs:
    for number in range(20):
        save(root / f"images/{number:02d}.jpg", photo(5000 + number))
        save(root / f"masks/{number:02d}.png", mask_of(5000 + number), "PNG")
    return rs.ImagePairs(root)


def _jpeg_mask(root: Path, _: Path) -> None:
    (root / "masks/02.png").unlink()
    save(root / "masks/02.jpg", mask_of(5002))


def _mask(image: Image.Image) -> Callable[[Path, Path], object]:
    return lambda root, path: save(root / f"masks/{path.stem}.png", image, "PNG")


def _rotated_pair(root: Path, path: Path) -> None:
    save(path, photo(6, (64, 64)), exif=rotated())
    save(root / "masks/06.png", mask_of(6, (64, 64)), "PNG")


PAIR_FAULTS = (
    Fault("mask-size", "images/00.jpg", _mask(mask_of(5000, (64, 48)))),
    Fault("mask-format", "images/02.jpg", _jpeg_mask),
    Fault("mask-format", "images/03.jpg", _mask(photo(1))),
    Fault(
        "image-without-annotation",
        "images/04.jpg",
        lambda r, _: (r / "masks/04.png").unlink(),
    ),
    Fault(
        "annotation-without-image",
        "masks/05.png",
        lambda r, _: (r / "images/05.jpg").unlink(),
    ),
    Fault("exif-orientation", "images/06.jpg", _rotated_pair),
)


class Layout(NamedTuple):
    """A clean dataset and the faults to plant in it."""

    make: Callable[[Path], Any]
    faults: tuple[Fault, ...]


LAYOUTS = {
    "folders": Layout(fruit_folders, FRUIT_FAULTS),
    "voc": Layout(voc_pets, VOC_FAULTS),
    "yolo": Layout(yolo_pets, YOLO_FAULTS),
    "pairs": Layout(pair_folders, PAIR_FAULTS),
}


def encoded(image: Image.Image, quality: int = 90) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return stream.getvalue()
