"""The first rows of a PNG, decoded alone, are those of the whole image."""

from __future__ import annotations

import struct
import zlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.raising import raises

from recordsmith.image import (
    SIGNATURE,
    Window,
    decode_mask,
    decode_part,
    decode_pixels,
    encode_mask,
    find_part,
    read_image_header,
)
from recordsmith.image.formats.png import (
    CHANNELS,
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGBA,
    Chunk,
    encode_chunk,
    encode_png_values,
)
from recordsmith.support.errors import CorruptDataError

HEIGHT, WIDTH = 60, 41
KINDS = [
    *((GREY, bits) for bits in (1, 2, 4, 8, 16)),
    *((PALETTE, bits) for bits in (1, 2, 4, 8)),
    *((kind, bits) for kind in (RGB, GREY_ALPHA, RGBA) for bits in (8, 16)),
]
ADAM7 = [  # first row and column of each pass, and its steps
    (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)
]  # fmt: skip


def values(kind: int, bits: int, seed: int = 0) -> Any:
    """Noise over a gradient, so that rows depend on those above."""
    rng = np.random.default_rng(seed)
    shape = (HEIGHT, WIDTH, CHANNELS[kind])
    ramp = np.add.outer(np.arange(HEIGHT), np.arange(WIDTH))[:, :, np.newaxis]
    levels = (ramp * ((1 << bits) - 1) // (HEIGHT + WIDTH) + rng.integers(0, 3, shape)) % (
        1 << bits
    )
    return levels.astype(np.uint16 if bits == 16 else np.uint8)


def chunks_of(kind: int, bits: int) -> list[Chunk]:
    if kind != PALETTE:
        return []
    colours = np.random.default_rng(1).integers(0, 256, 3 << bits, np.uint8)
    return [Chunk(b"PLTE", colours.tobytes())]


def pieces(data: bytes) -> list[tuple[bytes, bytes]]:
    """Name and body of each chunk."""
    at, found = len(SIGNATURE), []
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    return found


def joined(chunks: list[tuple[bytes, bytes]]) -> bytes:
    return SIGNATURE + b"".join(encode_chunk(name, body) for name, body in chunks)


def with_pixels(data: bytes, compressed: bytes, split: int = 1 << 20) -> bytes:
    """Replace the pixels, in IDAT chunks of `split` bytes."""
    others = [chunk for chunk in pieces(data) if chunk[0] != b"IDAT"]
    parts = [(b"IDAT", compressed[at : at + split]) for at in range(0, len(compressed), split)]
    return joined([*others[:-1], *parts, others[-1]])


def filtered(raw: bytes, row_bytes: int, unit: int) -> bytes:
    """Filter the rows with each of the five filters in turn (ISO/IEC 15948, clause 9)."""
    rows = np.frombuffer(raw, np.uint8).reshape(-1, 1 + row_bytes)[:, 1:].astype(int)
    above = np.vstack([np.zeros((1, row_bytes), int), rows[:-1]])
    pad = np.zeros((len(rows), unit), int)
    left, corner = (np.hstack([pad, array])[:, :row_bytes] for array in (rows, above))
    estimate = left + above - corner
    distances = np.stack([abs(estimate - near) for near in (left, above, corner)])
    paeth = np.choose(distances.argmin(axis=0), [left, above, corner])
    predicted = np.stack([0 * rows, left, above, (left + above) // 2, paeth])
    number = np.arange(len(rows)) * 3 % 5
    coded = (rows - predicted[number, np.arange(len(rows))]) % 256
    return np.hstack([number[:, np.newaxis], coded]).astype(np.uint8).tobytes()


def png(kind: int, bits: int, *, split: int = 300, level: int = 6) -> bytes:
    """A PNG with all filters and several IDAT chunks."""
    data = encode_png_values(
        values(kind, bits), bits=bits, colour_type=kind, chunks=chunks_of(kind, bits)
    )
    raw = zlib.decompress(dict(pieces(data))[b"IDAT"])
    row_bytes = len(raw) // HEIGHT - 1
    unit = max(1, CHANNELS[kind] * bits // 8)
    return with_pixels(data, zlib.compress(filtered(raw, row_bytes, unit), level), split)


def interlaced(kind: int, bits: int) -> bytes:
    """An interlaced PNG of the same values."""
    whole = values(kind, bits)
    raw = b""
    for top, left, down, across in ADAM7:
        one = encode_png_values(whole[top::down, left::across], bits=bits, colour_type=kind)
        raw += zlib.decompress(dict(pieces(one))[b"IDAT"])
    data = encode_png_values(whole, bits=bits, colour_type=kind, chunks=chunks_of(kind, bits))
    (_, header), *others = pieces(data)
    return with_pixels(joined([(b"IHDR", header[:12] + b"\1"), *others]), zlib.compress(raw))


def whole_of(data: bytes, **options: Any) -> Any:
    return decode_pixels(data, read_image_header(data), **options)


@pytest.mark.parametrize(("kind", "bits"), KINDS)
@pytest.mark.parametrize("row_count", [1, 2, 17, 40])
def test_rows_equal_those_of_the_whole_image(
    capfd: pytest.CaptureFixture[str], kind: int, bits: int, row_count: int
) -> None:
    data = png(kind, bits)
    head = read_image_header(data)
    assert len([name for name, _ in pieces(data) if name == b"IDAT"]) > 1
    for channels in (1, 3, 4):
        for stored in (8, 16, None):
            expected = whole_of(data, channels=channels, bits=stored)
            part = decode_part(
                data, head, Window(0, 5, row_count, 7), channels=channels, bits=stored
            )
            assert part[1:3] == (0, 0)
            assert part.pixels.dtype == expected.dtype
            np.testing.assert_array_equal(part.pixels, expected[:row_count])
    assert capfd.readouterr().err == ""  # libpng warns on the standard error stream


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_rows_equal_those_of_pillow(images: ModuleType, mode: str) -> None:
    if mode == "I;16":
        image = Image.fromarray(values(GREY, 16)[:, :, 0])
    else:
        image = images.noise(WIDTH, HEIGHT).convert(mode)
    data = images.encode(image, "PNG")
    bits = 16 if mode == "I;16" else 8
    channels = {"1": 1, "L": 1, "LA": 4, "RGBA": 4, "I;16": 1}.get(mode, 3)
    window = Window(3, 0, 20, WIDTH)
    part = decode_part(data, read_image_header(data), window, channels=channels, bits=bits)
    assert len(part.pixels) == 23
    shown = image if mode == "I;16" else image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels])
    expected = np.asarray(shown).reshape(HEIGHT, WIDTH, channels)[:23]
    np.testing.assert_array_equal(part.pixels, expected)


@pytest.mark.parametrize(("kind", "bits"), [(GREY, 8), (PALETTE, 4), (RGB, 16)])
def test_interlaced_images_are_decoded_whole(kind: int, bits: int) -> None:
    data = interlaced(kind, bits)
    np.testing.assert_array_equal(whole_of(data), whole_of(png(kind, bits)))
    head = read_image_header(data)
    file = find_part(data, head, Window(0, 0, 10, WIDTH))
    assert file.whole is None
    np.testing.assert_array_equal(file.decode().pixels, whole_of(data))


class TestDamage:
    """Damaged data with a right checksum, as an encoder that fails would write it."""

    @staticmethod
    def damaged(share: float) -> bytes:
        """The pixels after this share of the compressed data are missing."""
        data = png(RGB, 8)
        compressed = b"".join(body for name, body in pieces(data) if name == b"IDAT")
        return with_pixels(data, compressed[: int(share * len(compressed))])

    def test_in_the_part_it_is_found(self) -> None:
        data = self.damaged(0.3)
        with raises(CorruptDataError):
            decode_part(data, read_image_header(data), Window(0, 0, 39, 9))

    def test_below_the_part_it_is_not_looked_for(self) -> None:
        data = self.damaged(0.9)
        with raises(CorruptDataError):
            whole_of(data)
        part = decode_part(data, read_image_header(data), Window(0, 0, 39, 9))
        np.testing.assert_array_equal(part.pixels, whole_of(png(RGB, 8))[:39])

    def test_checksums_are_verified_everywhere(self) -> None:
        data = png(RGB, 8)
        at = data.rindex(b"IDAT") + 10
        data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with raises(CorruptDataError):
            decode_part(data, read_image_header(data), Window(0, 0, 10, 9))

    def test_any_damage_gives_pixels_or_an_error(self) -> None:
        rng = np.random.default_rng(3)
        good = png(RGB, 8, split=1 << 20)
        compressed = bytearray(dict(pieces(good))[b"IDAT"])
        results = set()
        for _ in range(300):
            changed = compressed.copy()
            changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
            data = with_pixels(good, bytes(changed))
            head = read_image_header(data)
            try:
                part = decode_part(data, head, Window(0, 0, 30, WIDTH)).pixels
            except CorruptDataError:
                results.add("damaged")
                continue
            results.add("decoded")
            try:
                expected = whole_of(data)
            except CorruptDataError:
                continue
            np.testing.assert_array_equal(part[:30], expected[:30])
        assert results == {"damaged", "decoded"}


@pytest.mark.parametrize("row_count", [1, 25, 40])
@pytest.mark.parametrize(
    ("kind", "bits"), [(kind, bits) for kind, bits in KINDS if kind in (GREY, PALETTE)]
)
def test_rows_of_masks(kind: int, bits: int, row_count: int) -> None:
    data = png(kind, bits)
    whole = decode_mask(data)
    np.testing.assert_array_equal(whole, values(kind, bits)[:, :, 0])
    rows = decode_mask(data, row_count)
    assert rows.dtype == whole.dtype
    np.testing.assert_array_equal(rows, whole[:row_count])


def test_the_rest_of_a_mask_is_not_read() -> None:
    data = encode_mask(values(GREY, 8)[:, :, 0])
    compressed = dict(pieces(data))[b"IDAT"]
    cut = with_pixels(data, compressed[: len(compressed) * 3 // 4])
    with raises(CorruptDataError):
        decode_mask(cut)
    np.testing.assert_array_equal(decode_mask(cut, 20), decode_mask(data)[:20])
    with raises(CorruptDataError):
        decode_mask(with_pixels(data, compressed[: len(compressed) // 9]), 20)
