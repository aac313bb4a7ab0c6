"""Several threads decode one JPEG to the pixels that one thread decodes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import cv2
import numpy as np
import pytest

from recordsmith.errors import CorruptDataError
from recordsmith.image import decode_image
from recordsmith.image.decoding.bands import BAND_BYTES, decode_in_bands
from recordsmith.image.decoding.parts import Window, decode_part
from recordsmith.image.decoding.pixels import decode_pixels, read_image_head

HEIGHT, WIDTH = 1237, 1021
SAMPLINGS = {
    "4:4:4": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
    "4:2:2": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_422,
    "4:2:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    "4:4:0": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440,
    "4:1:1": cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411,
}


def encode(
    sampling: str = "4:2:0", interval: int = 1, height: int = HEIGHT, width: int = WIDTH
) -> bytes:
    """A photo-like JPEG with restart intervals."""
    random = np.random.default_rng(0)
    shape = (height // 8, width // 8, 3)
    blurred: Any = cv2.resize(random.integers(0, 256, shape, np.uint8), (width, height))
    pixels: Any = blurred if sampling != "grey" else blurred[:, :, 0]
    options = [cv2.IMWRITE_JPEG_RST_INTERVAL, interval]
    if sampling != "grey":
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, SAMPLINGS[sampling]]
    return cv2.imencode(".jpg", pixels, options)[1].tobytes()


def in_bands(data: bytes, threads: int = 3, **options: Any) -> Any:
    return decode_in_bands(data, *read_image_head(data)[1:], threads=threads, **options)


@pytest.mark.parametrize("sampling", [*SAMPLINGS, "grey"])
@pytest.mark.parametrize("interval", [1, 32, 5, 10_000])
def test_pixels_are_equal(sampling: str, interval: int) -> None:
    data = encode(sampling, interval)
    head = read_image_head(data)
    for divisor in (1, 2, 8):
        expected = decode_pixels(data, head, divisor=divisor)
        found = decode_pixels(data, head, divisor=divisor, threads=3)
        assert np.array_equal(found, expected)
    mcu_width = {"4:4:4": 8, "4:4:0": 8, "grey": 8, "4:1:1": 32}.get(sampling, 16)
    assert (in_bands(data) is not None) is (-(-WIDTH // mcu_width) % interval == 0)


def test_a_large_part_is_decoded_in_bands_as_well() -> None:
    data = encode(height=2500, width=1500)
    head = read_image_head(data)
    top, left, height, width = window = Window(201, 77, 2003, 1234)
    part = decode_part(data, head, window, threads=4)
    one = decode_part(data, head, window)
    assert part[1:] == one[1:]
    assert np.array_equal(part.pixels, one.pixels)
    whole = decode_image(data)[top : top + height, left : left + width]
    y, x = top - part.top, left - part.left
    assert np.array_equal(part.pixels[y : y + height, x : x + width], whole)


def test_what_is_not_decoded_in_bands(images: Any) -> None:
    plain = cv2.imencode(".jpg", np.zeros((HEIGHT, WIDTH, 3), np.uint8))[1].tobytes()
    progressive = images.encode(images.smooth(WIDTH, HEIGHT), "JPEG", progressive=True)
    small = encode(height=400, width=300)
    for data in (plain, progressive, small):
        assert in_bands(data) is None
        found = decode_pixels(data, read_image_head(data), threads=3)
        assert np.array_equal(found, decode_image(data))
    assert in_bands(encode(), threads=1) is None


def test_damage_is_treated_as_by_one_thread() -> None:
    """It raises the same error, or accepts the image with the same pixels."""
    whole = encode()
    random = np.random.default_rng(1)
    damaged = [whole[:-2], whole[: len(whole) // 2], whole + b"more", whole[:-2] + whole[-9000:]]
    for place in random.integers(700, len(whole), 40):
        changed = bytearray(whole)
        changed[place] ^= int(random.integers(1, 256))
        damaged.append(bytes(changed))
    outcomes = set()
    for data in damaged:
        head = read_image_head(data)
        found, expected = _outcome(data, head, 3), _outcome(data, head, 1)
        assert type(found) is type(expected)
        if isinstance(expected, CorruptDataError):
            assert found.lines == expected.lines
        else:
            assert np.array_equal(found, expected)
        outcomes.add(type(expected))
    assert len(outcomes) == 2


def _outcome(data: bytes, head: Any, threads: int) -> Any:
    try:
        return decode_pixels(data, head, threads=threads)
    except CorruptDataError as error:
        return error


@pytest.mark.parametrize("threads", [2, 4, 32])
def test_memory_is_within_what_is_reserved(threads: int) -> None:
    data = encode(height=3000, width=2000)
    decode_image(data, threads=threads)  # imports
    tracemalloc.start()
    try:
        decode_image(data, threads=threads)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    pixels = 3000 * 2000
    assert 3 * pixels < peak < (3 + BAND_BYTES) * pixels + len(data)


def test_the_limit_of_pixels_holds() -> None:
    data = bytearray(encode())
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"
    with pytest.raises(CorruptDataError, match="too large"):
        decode_image(bytes(data), threads=4)
