"""Small images in every format, drawn by Pillow, for the tests that need some.

The conftest of each folder loads this file and hands it to the tests as the fixture `images`.
"""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

from PIL import Image


def noise(width: int, height: int, mode: str = "RGB", seed: int = 0) -> Image.Image:
    """An image that does not compress well, so that a cut anywhere matters."""
    rgb = Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(3 * width * height))
    return rgb.convert(mode)


def smooth(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """An image that survives JPEG nearly unchanged."""
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


def sampled_jpeg(height: int, width: int, factors: list[tuple[int, int]], seed: int = 0) -> bytes:
    """A baseline JPEG of random coefficients with these sampling factors, across and down.

    Encoders write only the usual ones. All codes have 8 bits, so that they are the symbols' places.
    """
    rng = random.Random(seed)
    sizes = list(range(12))
    runs = [0x00, *(16 * run + size for run in range(16) for size in range(1, 9)), 0xF0]
    bits: list[str] = []

    def put(symbols: list[int], run: int, value: int) -> None:
        size = abs(value).bit_length()
        bits.append(f"{symbols.index(16 * run + size):08b}")
        if size:
            bits.append(f"{value if value > 0 else value + (1 << size) - 1:0{size}b}")

    across, down = (8 * max(sides) for sides in zip(*factors, strict=True))
    blocks = sum(x * y for x, y in factors) * -(-height // down) * -(-width // across)
    for _ in range(blocks):
        put(sizes, 0, rng.randint(-60, 60))
        for _ in range(rng.randrange(6)):
            put(runs, rng.randrange(4), rng.choice((-1, 1)) * rng.randint(1, 30))
        put(runs, 0, 0)
    joined = "".join(bits)
    joined += "1" * (-len(joined) % 8)
    coded = int(joined, 2).to_bytes(len(joined) // 8, "big").replace(b"\xff", b"\xff\0")
    numbers = range(1, len(factors) + 1)
    components = b"".join(
        bytes((number, 16 * x + y, 0)) for number, (x, y) in zip(numbers, factors, strict=True)
    )
    tables = b"".join(
        bytes((kind, *[0] * 7, len(symbols), *[0] * 8, *symbols))
        for kind, symbols in ((0x00, sizes), (0x10, runs))
    )
    return b"".join(
        (
            b"\xff\xd8",
            segment(0xDB, bytes((0, *[4] * 64))),
            segment(0xC0, struct.pack(">BHHB", 8, height, width, len(factors)) + components),
            segment(0xC4, tables),
            segment(0xDA, bytes((len(factors), *(x for n in numbers for x in (n, 0)), 0, 63, 0))),
            coded,
            b"\xff\xd9",
        )
    )


def jpeg_with_full_table() -> bytes:
    """Four grey blocks whose DC table has a code of each length, but none for 6 bits or more."""
    symbols = bytes((*range(6), *range(12, 22)))
    bits = 4 * ("111110" + "11111" + "0")  # 5 bits, a difference of 31, end of the block
    bits += "1" * (-len(bits) % 8)
    coded = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return b"".join(
        (
            b"\xff\xd8",
            segment(0xDB, bytes((0, *[8] * 64))),
            segment(0xC0, struct.pack(">BHHB", 8, 8, 32, 1) + bytes((1, 0x11, 0))),
            segment(0xC4, bytes((0x00, *[1] * 16)) + symbols + bytes((0x10, 1, *[0] * 15, 0))),
            segment(0xDA, bytes((1, 1, 0, 0, 63, 0))),
            coded,
            b"\xff\xd9",
        )
    )


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
    """Images of 13 by 9 pixels that an ordinary reader gets wrong sooner or later."""
    image = noise(13, 9)
    plain = encode(image, "JPEG")
    thumbnail = segment(0xE1, b"Exif\0\0" + jpeg(seed=5, width=4, height=4))
    return {
        "jpeg": plain,
        "progressive jpeg": encode(image, "JPEG", progressive=True),
        "grey jpeg": encode(image.convert("L"), "JPEG"),
        "cmyk jpeg": encode(image.convert("CMYK"), "JPEG"),
        "rotated jpeg": _turned(),
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
            image = noise(6 + number % 5, 4 + label, seed=seed + 1000 * label + number)
            kind, suffix = ("PNG", "png") if number % 3 == 0 else ("JPEG", "jpg")
            (root / name / f"{number:03d}.{suffix}").write_bytes(encode(image, kind))
    return root
