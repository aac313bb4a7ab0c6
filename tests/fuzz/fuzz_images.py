"""Headers of images.

The invariant: any bytes give what a header says, or unreadable-image, and nothing else; what is
said is a format with positive sides. Segments and chunks lie within the bytes, one behind the
other, and end. An image that was accepted and is small decodes to pixels of just the sides that it
told, or is unreadable after all. The first rows of a PNG, decoded alone, are those of the whole
image, if both are readable.
"""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness import mutated
from PIL import Image, features

from recordsmith.image import (
    Window,
    decode_image,
    decode_part,
    exif_orientation,
    palette_colours,
    probe_image,
    probe_mask,
    read_image_header,
)
from recordsmith.image.formats.png import (
    GREY,
    RGB,
    chunks_before_pixels,
    plain_png,
    read_png_header,
    transparent_colour,
)
from recordsmith.jpeg import all_segments, is_progressive, read_frame, read_head
from recordsmith.support.errors import CorruptDataError, Defect

SMALL_PIXELS = 1 << 16


class Fuzz:
    watches_memory = False
    reached = ("probed", "masks", "unreadable", "decoded", "segments", "chunks", "rows")

    def __init__(self, _: Path) -> None:
        self.last = b""
        self.seeds = []
        for name, modes in {
            "JPEG": ("L", "RGB", "CMYK"),
            "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
            "GIF": ("P",),
            "BMP": ("L", "RGB"),
            "TIFF": ("L", "RGB", "I;16"),
            "WEBP": ("RGB", "RGBA"),
            "PPM": ("RGB",),
        }.items():
            for mode in modes:
                image = Image.new(mode, (11, 7))
                options: dict[str, Any] = {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}
                self.seeds.append(encoded(image, name, **options))
                if name == "JPEG":
                    self.seeds.append(encoded(image, name, progressive=True))
                    self.seeds.append(encoded(image, name, icc_profile=bytes(200)))
        if features.check("avif"):
            self.seeds.append(encoded(Image.new("RGB", (11, 7)), "AVIF"))
        self.seeds.append(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n")

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        data = mutated(dice.choice(self.seeds), self.seeds, dice)
        if dice.random() < 0.1 and data[:8] == b"\x89PNG\r\n\x1a\n":  # sides that lie
            sides = struct.pack(">II", *(dice.choice((0, 1, 7, 2**16, 2**31 - 1)) for _ in "hw"))
            data = data[:16] + sides + data[24:]
        if dice.random() < 0.3 and data[:8] == b"\x89PNG\r\n\x1a\n":
            data = with_checksums(data)
        self.last = data
        found: Any = {}
        for name, ask in (
            ("probed", probe_image),
            ("masks", probe_mask),
            ("looked", read_image_header),
        ):
            try:
                found[name] = ask(data)  # type: ignore[operator]
            except CorruptDataError as error:
                assert error.defect is Defect.UNREADABLE_IMAGE  # noqa: PT017
                counts["unreadable"] += 1
                continue
            assert found[name].format
            assert found[name].height > 0
            assert found[name].width > 0
            counts[name] += 1
        if "probed" in found and "masks" in found:
            assert found["probed"][:3] == found["masks"][:3]
        frame, exif = read_head(data)
        assert frame == read_frame(data)
        assert exif is None or 0 < exif <= len(data)
        assert is_progressive(data) in (True, False)
        assert exif_orientation(data) in range(1, 9)
        segments, end = all_segments(data) if data[:2] == b"\xff\xd8" else ([], None)
        for before, after in pairwise(segments):
            assert before.start < before.stop <= after.start
        assert all(segment.stop <= len(data) for segment in segments)
        assert end is None or end <= len(data)
        counts["segments"] += len(segments)
        if data[:8] == b"\x89PNG\r\n\x1a\n":
            chunks = list(chunks_before_pixels(data))
            assert sum(12 + len(chunk.body) for chunk in chunks) <= len(data)
            assert len(palette_colours(data)) <= len(data)
            header = read_png_header(data)
            if header is not None and header.colour_type in (GREY, RGB):
                transparent_colour(data, header)
            with suppress(CorruptDataError):
                assert len(plain_png(data)) <= len(data)
            counts["chunks"] += len(chunks)
        if "looked" in found and found["looked"].height * found["looked"].width <= SMALL_PIXELS:
            pixels: Any = None
            try:
                pixels = decode_image(data)
            except CorruptDataError as error:
                assert error.defect is Defect.UNREADABLE_IMAGE  # noqa: PT017
                counts["unreadable"] += 1
            else:
                assert pixels.shape == (found["looked"].height, found["looked"].width, 3)
                counts["decoded"] += 1
            if data[:8] == b"\x89PNG\r\n\x1a\n":
                self.rows(data, dice.randint(1, found["looked"].height), pixels, counts)

    def rows(self, data: bytes, row_count: int, whole: Any, counts: Counter[str]) -> None:
        """Decode the first rows; `whole` are the pixels of the whole image, if that is readable."""
        head = read_image_header(data)
        try:
            pixels, *corner = decode_part(data, head, Window(0, 0, row_count, head.width))
        except CorruptDataError as error:
            assert error.defect is Defect.UNREADABLE_IMAGE  # noqa: PT017
            counts["unreadable"] += 1
            return
        assert corner[:2] == [0, 0]
        assert pixels.shape[0] in (row_count, head.height)
        assert whole is None or (pixels == whole[: len(pixels)]).all()
        counts["rows"] += len(pixels) < head.height


def with_checksums(data: bytes) -> bytes:
    """Correct the checksums of the chunks of a PNG."""
    fixed, at = bytearray(data), 8
    while at + 12 <= len(data):
        stop = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if stop > len(data):
            break
        fixed[stop - 4 : stop] = zlib.crc32(data[at + 4 : stop - 4]).to_bytes(4, "big")
        at = stop
    return bytes(fixed)


def encoded(image: Any, name: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    if name not in ("JPEG", "PNG", "WEBP", "TIFF"):
        options = {}
    image.save(stream, name, **options)
    return stream.getvalue()
