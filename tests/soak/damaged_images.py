"""Damaged images: do recordsmith and TensorFlow accept the same ones, and with the same pixels?

Draws images in every format that TensorFlow decodes, damages copies of them, and gives each copy to
`tf.io.decode_image`, to the decoder of the loader, to the decoder that `pack` re-encodes with, and
to the image check of `verify --deep`. Prints a table, and the first disagreements.

JPEG, PNG and WebP must be accepted and refused alike, with equal pixels. GIF and BMP may be refused
where TensorFlow fills in what is missing, but must never give other pixels than TensorFlow.
"""

from __future__ import annotations

import io
import os
import random
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from PIL import Image
from shared import option_parser

from recordsmith.checking import check_example_images
from recordsmith.image import (
    MAX_PIXELS,
    SPECIES,
    convert_pixels,
    decode_exact,
    decode_pixels,
    draw_flower,
    read_image_header,
)
from recordsmith.jpeg import is_progressive
from recordsmith.support.errors import CorruptDataError

FORMATS = ("jpeg", "png", "webp", "gif", "bmp")
STRICT = ("jpeg", "png", "webp")
MARKERS = (0x00, 0x01, 0xC0, 0xC2, 0xC4, 0xC5, 0xD0, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB, 0xDD, 0xE0, 0xFF)

_MAX_BYTES, _LIMIT_BYTES = 20, 4 * MAX_PIXELS  # that decoding takes for a pixel; and is allowed


def draw(kind: str, number: int, longest_side: int = 120) -> bytes:
    """Image `number` of a format: the numbers go through all variants of it."""
    species = list(SPECIES)[number % len(SPECIES)]
    image = draw_flower(species, number)
    image.thumbnail((longest_side, longest_side + number % 7))
    return _ENCODERS[kind](image, number)


def _save(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def _jpeg(image: Image.Image, number: int) -> bytes:
    mode = ("RGB", "RGB", "RGB", "L", "CMYK")[number // 2 % 5]
    options: dict[str, Any] = {"progressive": number % 2 == 1, "quality": 60 + number % 35}
    if mode == "RGB":
        options["subsampling"] = number // 10 % 3
    if number % 4 == 3:
        options["restart_marker_rows"] = 1
    return _save(image.convert(mode), "JPEG", **options)


def _png(image: Image.Image, number: int) -> bytes:
    import cv2

    mode = ("RGB", "RGBA", "L", "LA", "P", "1", "16", "16 RGB", "2", "P alpha")[number % 10]
    rng = np.random.default_rng(number)
    if mode.startswith("16"):
        shape = (image.height, image.width, 3)[: 3 if "RGB" in mode else 2]
        coded: bytes = cv2.imencode(".png", rng.integers(0, 65536, shape, np.uint16))[1].tobytes()
        return coded
    if mode == "2":
        return _save(image.quantize(4), "PNG", bits=2)
    if mode == "P alpha":
        return _save(image.quantize(40), "PNG", transparency=bytes(range(0, 200, 5)))
    options = {"transparency": 0} if mode == "L" else {}
    if mode in ("LA", "RGBA"):
        image = image.convert(mode)
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    data = _save(image.convert(mode), "PNG", **options)
    return data[:33] + _chunk(b"tEXt", b"Comment\0a flower") + data[33:]


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _webp(image: Image.Image, number: int) -> bytes:
    if number % 3 == 0:
        image = image.convert("RGBA")
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    options: dict[str, Any] = {"lossless": number % 2 == 1, "exact": True}
    if number % 15 == 9:  # with alpha
        options |= {"save_all": True, "append_images": [image.rotate(9)]}
    if number % 4 == 2:
        options["xmp"] = b"<x>flower</x>"
    return _save(image, "WEBP", **options)


def _gif(image: Image.Image, number: int) -> bytes:
    options: dict[str, Any] = {"interlace": number % 2}
    if number % 5 == 4:
        options |= {"save_all": True, "append_images": [image.rotate(9)]}
    return _save(image.convert("L") if number % 3 == 2 else image, "GIF", **options)


def _bmp(image: Image.Image, number: int) -> bytes:
    return _save(image.convert(("RGB", "RGBA", "L", "P", "1")[number % 5]), "BMP")


_ENCODERS = {"jpeg": _jpeg, "png": _png, "webp": _webp, "gif": _gif, "bmp": _bmp}


def damage(data: bytes, kind: str, rng: random.Random) -> bytes:
    """A damaged copy."""
    way = rng.choice(("flip", "run", "cut", "marker", "header", "hole", "insert", "checksums"))
    at = rng.randrange(len(data))
    damaged = bytearray(data)
    if way == "flip":
        for _ in range(rng.choice((1, 1, 1, 3, 10))):
            damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way == "run":
        length = rng.choice((2, 8, 40, 300))
        damaged[at : at + length] = rng.randbytes(length)[: len(data) - at]
    elif way == "cut":
        del damaged[rng.choice((at, len(data) - rng.randrange(1, 24))) :]
    elif way == "marker":
        damaged[at : at + 2] = bytes((0xFF, rng.choice(MARKERS)))
    elif way == "header":
        for _ in range(rng.choice((1, 1, 2))):
            damaged[rng.randrange(min(len(data), 64))] = rng.randrange(256)
    elif way == "hole":
        del damaged[at : at + rng.choice((1, 7, 100))]
    elif way == "insert":
        damaged[at:at] = rng.randbytes(rng.choice((1, 7, 100)))
    elif kind == "png":
        damaged[at] ^= 1 << rng.randrange(8)
        damaged = bytearray(_with_right_checksums(bytes(damaged)))
    return bytes(damaged)


def _with_right_checksums(data: bytes) -> bytes:
    """A PNG whose chunks have the checksums of what they hold: damage that only inflating finds."""
    fixed, at = data[:8], 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if at + 12 + length > len(data):
            break
        fixed += _chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + length])
        at += 12 + length
    return fixed + data[at:]


def is_safe(data: bytes) -> bool:
    """Whether TensorFlow can be asked: it writes behind its memory for an animated WebP that says
    that it has no alpha.
    """
    return data[12:16] != b"VP8X" or len(data) < 21 or data[20] & 0x12 != 0x02


def by_tensorflow(data: bytes) -> np.ndarray | None:
    """Pixels of 8 bits; None where it refuses."""
    import tensorflow as tf

    try:
        return np.asarray(tf.io.decode_image(data, expand_animations=False).numpy())
    except tf.errors.InvalidArgumentError:
        return None


def _in_colour(pixels: np.ndarray, data: bytes) -> np.ndarray:
    """The colours that the numbers of a BMP's palette stand for, which TensorFlow does not read."""
    if pixels.shape[2] != 1:
        return pixels
    start, own_size = struct.unpack_from("<II", data, 10)
    palette = data[14 + own_size : start]
    entries = np.frombuffer(palette[:1024].ljust(1024, b"\0"), np.uint8).reshape(256, 4)
    return entries[pixels[:, :, 0]][:, :, 2::-1]


def by_loader(data: bytes, channels: int) -> np.ndarray | None:
    """The pixels that the loader gets; None where it refuses."""
    try:
        return decode_pixels(data, read_image_header(data), channels=channels)
    except CorruptDataError:
        return None


def by_packing(data: bytes, channels: int) -> np.ndarray | None:
    """The pixels that `pack` re-encodes; None where it refuses."""
    try:
        pixels = decode_exact(data, read_image_header(data)).pixels
    except CorruptDataError:
        return None
    return convert_pixels(pixels, channels, 8)


def verified(data: bytes) -> str:
    """What `verify --deep` reports: good, or the defect."""
    _, errors = check_example_images({"image/encoded": [data]}, ["image/encoded"])
    return str(errors[0].defect) if errors else "good"


def disagreements(kind: str, data: bytes) -> Iterator[str]:
    """Everything in which recordsmith does not do as TensorFlow does with this image."""
    expected = by_tensorflow(data)
    if expected is not None and expected.shape[0] * expected.shape[1] * _MAX_BYTES > _LIMIT_BYTES:
        return  # it may be larger than recordsmith decodes
    channels = 3
    if expected is not None:
        if kind == "bmp":
            expected = _in_colour(expected, data)
        elif expected.shape[2] == 4:
            channels = 4
        expected = expected[:, :, :1] if expected.shape[2] == 2 else expected[:, :, :channels]
    for name, decode in (("loader", by_loader), ("packing", by_packing)):
        pixels = decode(data, channels)
        if pixels is None:
            if expected is not None and kind in STRICT:
                yield f"{name} refuses what TensorFlow accepts"
        elif expected is None:
            if kind in STRICT:
                yield f"{name} accepts what TensorFlow refuses"
        elif pixels.shape[:2] != expected.shape[:2]:
            yield f"{name}: shape {pixels.shape} instead of {expected.shape}"
        else:
            difference = np.abs(pixels.astype(int) - expected)
            # where scans are missing, versions of libjpeg-turbo smooth blocks a little otherwise
            if difference.max() > (16 if kind == "jpeg" and is_progressive(data) else 0):
                yield f"{name}: pixels differ by up to {difference.max()}"
    report = verified(data)
    if (expected is None) != (report == "unreadable-image") and kind in STRICT:
        yield f"verify reports {report}"


def main() -> int:
    parser = option_parser(__doc__, 100, "damaged copies of each image")
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--keep", type=Path, help="a folder for the images that disagree")
    options = parser.parse_args()
    total = 0
    print("format  tried  refused by TensorFlow  loader  packing  verify  damage named  disagree")
    for kind in options.formats:
        counts: Counter[str] = Counter()
        found: list[str] = []
        for number in range(options.images):
            whole = draw(kind, number)
            rng = random.Random(f"{options.seed} {kind} {number}")
            for copy in range(options.count + 1):
                data = damage(whole, kind, rng) if copy else whole
                if not is_safe(data):
                    continue
                counts["tried"] += 1
                counts["tensorflow"] += by_tensorflow(data) is None
                counts["loader"] += by_loader(data, 3) is None
                counts["packing"] += by_packing(data, 3) is None
                counts[verified(data)] += 1
                problems = list(disagreements(kind, data))
                if problems:
                    found.append(f"  {kind} image {number}, copy {copy}: {'; '.join(problems)}")
                    if options.keep:
                        (options.keep / f"{number}-{copy}.{kind}").write_bytes(data)
        print(
            f"{kind:6} {counts['tried']:6} {counts['tensorflow']:22} {counts['loader']:7} "
            f"{counts['packing']:8} {counts['unreadable-image']:7} {counts['damaged-image']:13} "
            f"{len(found):9}"
        )
        print(*found[:20], sep="\n", end="\n" if found else "", flush=True)
        total += len(found)
    if total:
        print(f"{total} disagreements; seed {options.seed}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
