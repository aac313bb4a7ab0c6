"""Rotating and resizing masks, compared with NumPy; palette and bits are kept."""

from __future__ import annotations

import io
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from recordsmith.image import apply_orientation, decode_mask, store_mask
from recordsmith.image.formats.png import GREY, PALETTE, Chunk, encode_png_values, read_png_header

RANDOM = np.random.default_rng(5)
COLOURS = RANDOM.integers(0, 256, 768, np.uint8).tobytes()
KINDS = [(1, PALETTE), (2, PALETTE), (4, PALETTE), (8, PALETTE), (1, GREY), (2, GREY), (4, GREY),
         (8, GREY), (16, GREY)]  # fmt: skip


def _mask(bits: int, colour_type: int) -> tuple[np.ndarray, bytes]:
    values = RANDOM.integers(0, 2**bits, (9, 13)).astype(np.uint16 if bits == 16 else np.uint8)
    values[0, :2] = 0, 2**bits - 1
    palette = [Chunk(b"PLTE", COLOURS[: 3 * 2 ** min(bits, 8)]), Chunk(b"tRNS", b"\x09")]
    chunks = palette if colour_type == PALETTE else []
    return values, encode_png_values(values, bits=bits, colour_type=colour_type, chunks=chunks)


def _pillow(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize(("bits", "colour_type"), KINDS)
def test_unchanged_masks_keep_their_bytes(bits: int, colour_type: int) -> None:
    values, data = _mask(bits, colour_type)
    stored = store_mask(data, height=9, width=13)
    assert stored.data is data
    assert not stored.is_changed
    assert stored.dtype == str(values.dtype)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("bits", "colour_type"), KINDS)
def test_rotated_and_resized(bits: int, colour_type: int, orientation: int) -> None:
    values, data = _mask(bits, colour_type)
    height, width = (7, 5) if orientation > 4 else (5, 7)
    stored = store_mask(data, height=height, width=width, orientation_applied=orientation)
    turned = apply_orientation(values, orientation)
    rows = ((np.arange(height) + 0.5) * turned.shape[0] / height).astype(int)
    columns = ((np.arange(width) + 0.5) * turned.shape[1] / width).astype(int)
    expected = turned[rows][:, columns]
    assert stored.format == "png"
    np.testing.assert_array_equal(decode_mask(stored.data), expected)
    header = read_png_header(stored.data)
    assert header is not None
    assert (header.bits, header.colour_type) == (bits, colour_type)
    before, after = _pillow(data), _pillow(stored.data)
    assert before.mode == after.mode
    assert before.getpalette() == after.getpalette()
    assert before.info.get("transparency") == after.info.get("transparency")


@pytest.mark.parametrize("bits", [1, 8, 16])
def test_raw(bits: int) -> None:
    values, data = _mask(bits, GREY)
    stored = store_mask(data, height=13, width=9, orientation_applied=6, raw=True)
    assert (stored.format, stored.dtype) == ("raw", str(values.dtype))
    expected = np.rot90(values, -1)
    np.testing.assert_array_equal(np.frombuffer(stored.data, stored.dtype).reshape(13, 9), expected)


@pytest.mark.parametrize("mode", ["P", "L", "1", "I;16"])
def test_masks_of_other_formats_become_png(images: ModuleType, mode: str) -> None:
    values = RANDOM.integers(0, 2, (9, 13), np.uint8)
    image = Image.frombytes("L", (13, 9), (values * 255).tobytes()).convert(mode)
    data = images.encode(image, "TIFF" if mode == "I;16" else "BMP")
    stored = store_mask(data, height=13, width=9, orientation_applied=6)
    expected = np.rot90(decode_mask(data), -1)
    np.testing.assert_array_equal(decode_mask(stored.data), expected)
    if mode == "P":
        assert np.array_equal(
            np.rot90(np.array(_pillow(data).convert("RGB")), -1),
            np.array(_pillow(stored.data).convert("RGB")),
        )
