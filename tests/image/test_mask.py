"""Decoding masks to the stored class numbers, and rejecting colours."""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import suppress
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.image import decode_mask, encode_mask, resize_nearest
from recordsmith.image.formats.png import encode_chunk
from recordsmith.support.errors import CorruptDataError, Defect

RANDOM = np.random.default_rng(3)


def _palette_png(values: np.ndarray, **options: object) -> bytes:
    image = Image.frombytes("P", values.shape[::-1], values.tobytes())
    image.putpalette(RANDOM.integers(0, 256, 768, np.uint8).tobytes())
    out = io.BytesIO()
    image.save(out, "PNG", **options)
    return out.getvalue()


def _grey_png(values: np.ndarray, bits: int) -> bytes:
    """A grey PNG written by hand, because Pillow cannot write 2 and 4 bits."""
    height, width = values.shape
    rows = np.unpackbits(values.astype(">u2").view(np.uint8).reshape(height, width, 2), axis=2)
    rows = rows[:, :, 16 - bits :].reshape(height, width * bits)
    packed = np.packbits(rows, axis=1)
    body = b"".join(b"\0" + row.tobytes() for row in packed)
    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(body)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_palette_masks_decode_to_indices(bits: int) -> None:
    values = RANDOM.integers(0, 2**bits, (9, 13), np.uint8)
    decoded = decode_mask(_palette_png(values, bits=bits))
    assert decoded.dtype == np.uint8
    np.testing.assert_array_equal(decoded, values)


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_grey_levels_are_not_scaled(bits: int) -> None:
    values = RANDOM.integers(0, 2**bits, (9, 13))
    values[0, :2] = 0, 2**bits - 1
    decoded = decode_mask(_grey_png(values, bits))
    assert decoded.dtype == (np.uint16 if bits == 16 else np.uint8)
    assert decoded.shape == (9, 13)
    np.testing.assert_array_equal(decoded, values)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_kept(images: ModuleType, kind: str) -> None:
    values = RANDOM.integers(0, 65536, (9, 13), np.uint16)
    data = images.encode(Image.fromarray(values), kind)
    decoded = decode_mask(data)
    assert decoded.dtype == np.uint16
    np.testing.assert_array_equal(decoded, values)


def test_big_endian_tiff() -> None:
    values = RANDOM.integers(0, 65536, (9, 13), np.uint16)
    image = Image.frombytes("I;16B", (13, 9), values.astype(">u2").tobytes())
    out = io.BytesIO()
    image.save(out, "TIFF")
    np.testing.assert_array_equal(decode_mask(out.getvalue()), values)


@pytest.mark.parametrize(
    ("image", "kind", "found"),
    [
        *((Image.new(mode, (13, 9)), "PNG", f"mode {mode}") for mode in ("RGB", "RGBA", "LA")),
        *(
            (Image.fromarray(np.full((2, 2), value, np.int32)), "TIFF", f"from {value} to {value}")
            for value in (-1, 65_536)
        ),
        (Image.fromarray(np.full((2, 2), 0.5, np.float32)), "TIFF", "mode F"),
    ],
    ids=lambda value: value if isinstance(value, str) else "image",
)
def test_what_is_not_a_class_number_is_rejected(
    images: ModuleType, image: Image.Image, kind: str, found: str
) -> None:
    with pytest.raises(CorruptDataError) as caught:
        decode_mask(images.encode(image, kind))
    assert caught.value.defect is Defect.UNREADABLE_IMAGE
    assert found in caught.value.found


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_raise_a_defect(data: bytes) -> None:
    try:
        values = decode_mask(data)
    except CorruptDataError:
        return
    assert values.ndim == 2


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_encoding_round_trip(dtype: type) -> None:
    values = RANDOM.integers(0, np.iinfo(dtype).max, (5, 9), dtype, endpoint=True)
    data = encode_mask(values)
    assert decode_mask(data).dtype == dtype
    assert np.array_equal(decode_mask(data), values)
    with Image.open(io.BytesIO(data)) as image:
        assert image.mode == ("L" if dtype is np.uint8 else "I;16")


def test_resizing_adds_no_class_numbers() -> None:
    values = RANDOM.integers(0, 9, (6, 10), np.uint8)
    assert resize_nearest(values, 6, 10) is values
    doubled = resize_nearest(values, 12, 20)
    assert np.array_equal(doubled, values.repeat(2, 0).repeat(2, 1))
    assert np.array_equal(resize_nearest(doubled, 6, 10), values)


@given(st.data())
def test_masks_are_what_pillow_decodes(data: st.DataObject) -> None:
    """Rows with every filter, all or the first of them; damaged files like Pillow."""
    height, width, seed = (data.draw(st.integers(1, high)) for high in (9, 9, 2**32 - 1))
    random = np.random.default_rng(seed)
    highest = data.draw(st.sampled_from([0, 1, 2, 3, 4]))
    rows = random.integers(0, 256, (height, width + 1), np.uint8)
    rows[:, 0] = random.integers(0, highest + 1, height)
    size = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(rows.tobytes())
    chunks = [(b"IHDR", size), (b"IDAT", body), (b"IEND", b"")]
    encoded = b"\x89PNG\r\n\x1a\n" + b"".join(encode_chunk(*chunk) for chunk in chunks)
    with Image.open(io.BytesIO(encoded)) as image:
        expected = np.asarray(image)
    np.testing.assert_array_equal(decode_mask(encoded), expected)
    count = data.draw(st.integers(1, height))
    np.testing.assert_array_equal(decode_mask(encoded, count), expected[:count])
    cut = encoded[: data.draw(st.integers(0, len(encoded)))]
    with suppress(CorruptDataError):
        np.testing.assert_array_equal(decode_mask(cut), expected)
    damaged = bytearray(encoded)
    damaged[data.draw(st.integers(8, 32))] ^= 1  # the header
    with pytest.raises(CorruptDataError):
        decode_mask(damaged)
