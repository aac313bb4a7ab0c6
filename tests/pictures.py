"""Small pictures in every format, drawn by Pillow, for the tests that need some.

The conftest of each folder loads this file and hands it to the tests as the fixture `pictures`.
"""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

from PIL import Image


def noise(width: int, height: int, mode: str = "RGB", seed: int = 0) -> Image.Image:
    """A picture that does not compress well, so that a cut anywhere matters."""
    rgb = Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(3 * width * height))
    return rgb.convert(mode)


def smooth(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """A picture that survives JPEG nearly unchanged."""
    ramp = Image.linear_gradient("L").resize((width, height))
    return Image.merge("RGB", (ramp, ramp.rotate(180), ramp)).convert(mode)


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpeg(seed: int = 0, width: int = 12, height: int = 8) -> bytes:
    return encode(noise(width, height, seed=seed), "JPEG")


def segment(marker: int, body: bytes) -> bytes:
    """One segment of a JPEG file."""
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def _tables_first(data: bytes) -> bytes:
    """A JPEG with its Huffman tables in front of the frame header, where encoders seldom put them.

    The tables are known by a marker from the range of the frame headers.
    """
    before, tables, after, at = data[:2], b"", b"", 2
    while data[at + 1] != 0xDA:
        stop = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xC4:
            tables += data[at:stop]
        elif data[at + 1] == 0xC0:
            after += data[at:stop]
        else:
            before += data[at:stop]
        at = stop
    return before + tables + after + data[at:]


def _deep_grey() -> Image.Image:
    levels = random.Random(1).randbytes(2 * 13 * 9)
    return Image.frombytes("I;16", (13, 9), levels)


def _turned() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: to be turned by 90 degrees
    return encode(noise(13, 9), "JPEG", exif=exif)


def odd() -> dict[str, bytes]:
    """Pictures of 13 by 9 pixels that an ordinary reader gets wrong sooner or later."""
    image = noise(13, 9)
    plain = encode(image, "JPEG")
    thumbnail = segment(0xE1, b"Exif\0\0" + jpeg(seed=5, width=4, height=4))
    return {
        "jpeg": plain,
        "progressive jpeg": encode(image, "JPEG", progressive=True),
        "grey jpeg": encode(image.convert("L"), "JPEG"),
        "cmyk jpeg": encode(image.convert("CMYK"), "JPEG"),
        "jpeg to be turned": _turned(),
        "jpeg with fill bytes": plain[:2] + b"\xff" * 5 + plain[2:],
        "jpeg with large segments": plain[:2] + segment(0xE5, b"\xff\xc0" * 32_000) * 4 + plain[2:],
        "jpeg with a thumbnail": plain[:2] + thumbnail + plain[2:],
        "jpeg with a comment": encode(image, "JPEG", comment=b"\xff\xd9 \xff\xc0 words"),
        "jpeg with a profile": encode(image, "JPEG", icc_profile=bytes(200_000)),
        "jpeg with its tables first": _tables_first(plain),
        "jpeg with restarts": encode(image, "JPEG", restart_marker_blocks=1),
        "jpeg with bytes behind": plain + b"words",
        "png": encode(image, "PNG"),
        "grey png": encode(image.convert("L"), "PNG"),
        "1-bit png": encode(image.convert("1"), "PNG"),
        "palette png": encode(image.convert("P"), "PNG"),
        "rgba png": encode(image.convert("RGBA"), "PNG"),
        "grey alpha png": encode(image.convert("LA"), "PNG"),
        "16-bit png": encode(_deep_grey(), "PNG"),
        "png with text": encode(image, "PNG", pnginfo=_png_text()),
        "gif": encode(image, "GIF"),
        "animated gif": encode(image, "GIF", save_all=True, append_images=[noise(13, 9, seed=2)]),
        "bmp": encode(image, "BMP"),
        "webp": encode(image, "WEBP"),
        "lossless webp": encode(image, "WEBP", lossless=True),
        "tiff": encode(image, "TIFF"),
        "ppm": encode(image, "PPM"),
    }


def _png_text() -> Any:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("note", "x" * 5000)
    return info


def size_by_pillow(data: bytes) -> tuple[str, int, int]:
    """(format, height, width), as Pillow has it."""
    with Image.open(io.BytesIO(data)) as image:
        return (image.format or "").lower(), image.height, image.width


def opens_whole(data: bytes) -> bool:
    """Whether Pillow gets all pixels of the first frame."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except Exception:
        return False
    return True


def make_folder(root: Path, classes: dict[str, int], *, seed: int = 0) -> Path:
    """Class folders with so many small JPEG and PNG files each."""
    for label, (name, count) in enumerate(classes.items()):
        (root / name).mkdir(parents=True)
        for number in range(count):
            picture = noise(6 + number % 5, 4 + label, seed=seed + 1000 * label + number)
            kind, suffix = ("PNG", "png") if number % 3 == 0 else ("JPEG", "jpg")
            (root / name / f"{number:03d}.{suffix}").write_bytes(encode(picture, kind))
    return root
