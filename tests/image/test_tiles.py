"""Restart intervals are added without a change, compared with libjpeg and with decoders."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from recordsmith.image import ImageOptions, decode_image, store_image
from recordsmith.image.storing.lossless import NotLosslessError, add_tiles
from recordsmith.image.storing.shrinking import restart_interval
from recordsmith.image.storing.store import NOT_REWRITTEN, PROGRESSIVE, SHRUNK, TILED, TO_BASELINE
from recordsmith.jpeg import all_segments, is_progressive, tiling
from recordsmith.support.errors import CorruptDataError

TILES = ImageOptions(tiles=True)
SAMPLINGS = {"411": (4, 1), "420": (2, 2), "422": (2, 1), "440": (1, 2), "444": (1, 1)}
MARKER = re.compile(rb"\xff([\xd0-\xd7])")
DRI, DHT, SOS = 0xDD, 0xC4, 0xDA


def smooth(height: int, width: int, seed: int = 0) -> np.ndarray:
    """An image with large areas and edges, as photographs have."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (height // 24 + 2, width // 24 + 2, 3), np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


def encoded(height: int, width: int, sampling: str = "420", **options: int) -> bytes:
    flags = [
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{sampling}"),
    ]
    for name, value in options.items():
        flags += [getattr(cv2, f"IMWRITE_JPEG_{name.upper()}"), value]
    return cv2.imencode(".jpg", smooth(height, width), flags)[1].tobytes()


def jpegs(images: ModuleType) -> dict[str, bytes]:
    """Baseline JPEGs of every kind."""
    found = {}
    for height, width in ((1, 1), (13, 9), (65, 97), (130, 200)):
        for sampling in SAMPLINGS:
            found[f"{sampling} {height}"] = encoded(height, width, sampling)
            found[f"optimal {sampling} {height}"] = encoded(height, width, sampling, optimize=1)
        for quality in (3, 50, 100):
            found[f"quality {quality} {height}"] = encoded(height, width, quality=quality)
        for mode in ("L", "CMYK"):
            image = Image.fromarray(smooth(height, width)).convert(mode)
            for name, options in {"plain": {}, "optimal": {"optimize": True}}.items():
                found[f"{name} {mode} {height}"] = images.encode(image, "JPEG", **options)
        image = Image.fromarray(smooth(height, width))
        for number in (1, 2, 3, 7, 1000):
            found[f"interval {number} {height}"] = images.encode(
                image, "JPEG", restart_marker_blocks=number
            )
        found[f"interval of OpenCV {height}"] = encoded(height, width, rst_interval=3)
    for factors in (
        [(1, 1)], [(3, 1), (1, 1), (1, 1)], [(1, 1), (2, 2), (1, 1)],
        [(2, 1), (1, 2), (1, 1)], [(2, 2), (1, 1), (1, 1), (2, 2)], [(1, 4), (1, 1), (1, 1)],
    ):  # fmt: skip
        found[f"sampled {factors}"] = images.sampled_jpeg(50, 70, factors)
    exif = Image.Exif()
    exif[0x0112] = 6
    found["words"] = images.encode(
        Image.fromarray(smooth(40, 50)), "JPEG",
        exif=exif, icc_profile=bytes(range(256)) * 700, comment=b"\xff\xd0 hm",
    )  # fmt: skip
    return found


def intervals(data: bytes) -> list[int]:
    mcus = tiling.read_mcus(data)
    assert mcus is not None
    _, _, rows, row, _ = mcus
    return sorted({1, 2, 5, row, row * rows, 65_535, 0})


def written(data: bytes, interval: int) -> bytes:
    """With room for more markers than a JPEG usually gets."""
    code, file = tiling.with_interval(data, interval)
    assert code == tiling.DONE, code
    return file


def scan(data: bytes) -> bytes:
    parts, stop = all_segments(data)
    return data[next(part.stop for part in parts if part.marker == SOS) : stop]


def segments(data: bytes, *left_out: int) -> list[bytes]:
    parts = all_segments(data)[0]
    return [data[part.start : part.stop] for part in parts if part.marker not in left_out]


def coefficients(data: bytes, path: Path) -> list[Any]:
    jpeglib = pytest.importorskip("jpeglib")
    path.write_bytes(data)
    image = jpeglib.read_dct(str(path))
    parts = [getattr(image, name) for name in ("Y", "Cb", "Cr", "K")]
    return [part for part in parts if part is not None] + [image.qt]


def pixels(data: bytes) -> list[Any]:
    """By Pillow, OpenCV and recordsmith; None where OpenCV cannot decode such a JPEG."""
    with Image.open(io.BytesIO(data)) as image:
        by_pillow = np.array(image)
    by_opencv = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    return [by_pillow, by_opencv, decode_image(data)]


def assert_same(first: list[Any], second: list[Any]) -> None:
    for before, after in zip(first, second, strict=True):
        assert (before is None) == (after is None)
        np.testing.assert_array_equal(before, after)


def test_pixels_stay(images: ModuleType) -> None:
    for data in jpegs(images).values():
        before = pixels(data)
        for interval in intervals(data):
            assert_same(before, pixels(written(data, interval)))


def test_markers_are_numbered_after_each_interval(images: ModuleType) -> None:
    for name, data in jpegs(images).items():
        _, _, rows, row, _ = tiling.read_mcus(data) or pytest.fail(name)
        for interval in intervals(data):
            file = written(data, interval)
            assert restart_interval(file) == interval, name
            numbers = [found[1][0] & 7 for found in MARKER.finditer(scan(file))]
            count = -(-rows * row // interval) - 1 if interval else 0
            assert numbers == [number % 8 for number in range(count)], name


def test_other_segments_keep_their_bytes(images: ModuleType) -> None:
    for name, data in jpegs(images).items():
        for interval in intervals(data):
            file = written(data + b"behind", interval)
            assert segments(file, DRI, DHT) == segments(data, DRI, DHT), name
            tables = segments(data, *set(range(256)) - {DHT})
            assert segments(file, *set(range(256)) - {DHT})[: len(tables)] == tables, name
            assert file.endswith(b"\xff\xd9behind"), name


def test_the_scan_is_that_of_libjpeg(images: ModuleType) -> None:
    """With the standard tables, libjpeg writes the same codes."""
    for mode in ("RGB", "L"):
        image = Image.fromarray(smooth(130, 200)).convert(mode)
        plain = images.encode(image, "JPEG")
        for interval in (1, 3, 8, 13, 25):
            direct = images.encode(image, "JPEG", restart_marker_blocks=interval)
            assert scan(written(plain, interval)) == scan(direct)
            assert written(direct, 0) != plain  # a segment states that there are no intervals
            assert scan(written(direct, 0)) == scan(plain)
            for other in (2, 5):
                assert scan(written(written(plain, other), interval)) == scan(direct)


def test_tables_get_codes_that_they_lack(images: ModuleType, tmp_path: Path) -> None:
    """An image with one bright corner has no large differences of DC, and no code for them."""
    ramp = np.arange(200, dtype=np.uint8)[None, :].repeat(64, 0)
    data = images.encode(Image.fromarray(ramp), "JPEG", optimize=True, quality=100)
    file = written(data, 5)
    assert len(segments(file)) == len(segments(data)) + 2  # tables and the interval
    assert_same(coefficients(data, tmp_path / "1.jpg"), coefficients(file, tmp_path / "2.jpg"))
    assert_same(pixels(data), pixels(file))
    assert scan(written(file, 0)) == scan(data)  # all other codes are those of the old table


def test_other_kinds_are_refused(images: ModuleType) -> None:
    image = images.noise(40, 30)
    plain = images.encode(image, "JPEG")
    two_scans = plain[:-2] + b"".join(segments(plain)[-1:]) + scan(plain)
    odd = {
        "progressive": images.encode(image, "JPEG", progressive=True),
        "png": images.encode(image, "PNG"),
        "fill bytes": plain[:2] + b"\xff" + plain[2:],
        "arithmetic": plain.replace(b"\xff\xc0", b"\xff\xc9", 1),
        "12 bits": plain.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc0\0\x11\x0c", 1),
        "empty": b"",
        "start": b"\xff\xd8",
    }
    for name, data in odd.items():
        assert tiling.with_interval(data, 1) == (tiling.UNSUPPORTED, b""), name
        assert tiling.read_mcus(data) is None, name
    assert tiling.with_interval(two_scans, 1)[0] == tiling.LEFT_OVER
    for interval in (-1, 65_536):
        with pytest.raises(ValueError, match="16 bits"):
            tiling.with_interval(plain, interval)


def test_damage_is_refused(images: ModuleType) -> None:
    plain = images.encode(Image.fromarray(smooth(40, 70)), "JPEG")
    marked = images.encode(Image.fromarray(smooth(40, 70)), "JPEG", restart_marker_blocks=2)
    start = len(plain) - len(scan(plain))
    for stop in range(len(plain)):
        code, file = tiling.with_interval(plain[:stop], 3)
        assert code != tiling.DONE
        assert file == b""
    first = marked.index(b"\xff\xd0")
    for name, data in {
        "extra byte": plain[:-2] + b"\0" + plain[-2:],
        "extra bytes": plain[:-2] + b"\x12\x34\x56\x78\x9a\xbc\xde\x01\x23" + plain[-2:],
        "marker without interval": plain[: start + 9] + b"\xff\xd0" + plain[start + 9 :],
        "wrong marker": marked[:first] + b"\xff\xd1" + marked[first + 2 :],
        "no marker": marked[:first] + marked[first + 2 :],
        "empty interval": marked[: first + 2] + b"\xff\xd1" + marked[first + 2 :],
        "end at a marker": marked[:first] + b"\xff\xd9" + marked[first + 2 :],
    }.items():
        expected = tiling.LEFT_OVER if name.startswith("extra") else tiling.DAMAGED
        assert tiling.with_interval(data, 3)[0] == expected, name
        with pytest.raises((NotLosslessError, CorruptDataError)):
            add_tiles(data)


def test_blocks_have_64_coefficients(images: ModuleType) -> None:
    end, sixteen_zeros, last, beyond = "0", "10", "110", "1110"
    symbols = bytes((0x00, 0xF0, 0xE1, 0xF1))  # 14 and 15 zeros before a coefficient of one bit
    tables = bytes((1, *[0] * 15, 0)), bytes((1, 1, 1, 1, *[0] * 12)) + symbols
    for codes, code in (
        (3 * sixteen_zeros + last + "1", tiling.DONE),  # at 63, without an end
        (3 * sixteen_zeros + beyond + "1", tiling.DAMAGED),
        (3 * sixteen_zeros + end, tiling.DONE),
        (4 * sixteen_zeros + end, tiling.DAMAGED),
    ):
        data = images.jpeg_of_bits(2 * ("0" + codes), 16, *tables)
        assert tiling.with_interval(data, 1)[0] == code


# ---- which tiles an image gets -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("height", "width", "sampling", "tile"),
    [
        (375, 500, "420", 64),  # 32 MCUs
        (375, 500, "444", 72),  # 63 MCUs
        (1200, 1600, "420", 64),
        (500, 4000, "420", 80),
        (300, 62 * 16, "420", 32),  # 62 MCUs: otherwise 496 pixels
        (300, 31 * 16, "420", 31 * 16),  # a prime number
        (200, 64 * 8, "411", 64),
    ],
)  # fmt: skip
def test_width_of_tiles(height: int, width: int, sampling: str, tile: int) -> None:
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 256, (height, width, 3), np.uint8)  # so large that growth is small
    flag = getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{sampling}")
    flags = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, flag]
    data = cv2.imencode(".jpg", noise, flags)[1].tobytes()
    tiled = add_tiles(data)
    mcus = tiling.read_mcus(tiled)
    assert mcus is not None
    _, mcu_width, _, row, interval = mcus
    assert row % interval == 0
    assert interval * mcu_width == tile
    assert add_tiles(tiled) is tiled


def test_files_grow_by_two_percent_at_most() -> None:
    widths = set()
    for quality in range(1, 100, 7):
        data = encoded(300, 512, quality=quality)
        tiled = add_tiles(data)
        assert len(tiled) <= 1.02 * len(data)
        widths.add(16 * restart_interval(tiled))
    assert {64, 512} <= widths
    for side in (512, 4096):  # the markers would make it larger than the kernel allows
        grey = np.full((300, side), 7, np.uint8)
        flat = cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_OPTIMIZE, 1])[1].tobytes()
        assert add_tiles(flat) is flat


def test_store_image(images: ModuleType) -> None:
    data = encoded(300, 400, quality=95)
    stored = store_image(data, TILES)
    assert stored.changes == (TILED,)
    assert stored.data == add_tiles(data) != data
    assert store_image(stored.data, TILES).data is stored.data
    for kept, change in (
        (encoded(127, 4000), ()),
        (images.encode(images.noise(300, 200), "PNG"), ()),
        (images.encode(images.noise(300, 200), "JPEG", progressive=True), (PROGRESSIVE,)),
        (data + b"behind", (NOT_REWRITTEN,)),
        (data[:2] + b"\xff" + data[2:], (NOT_REWRITTEN,)),
    ):
        stored = store_image(kept, TILES)
        assert (stored.data, stored.changes) == (kept, change)


def test_encoded_images_get_tiles(images: ModuleType) -> None:
    source = images.encode(images.noise(700, 500), "PNG")
    options = {"store": "jpeg", "shorter_side": 256}
    plain = store_image(source, ImageOptions(**options))
    tiled = store_image(source, ImageOptions(**options, tiles=True))
    assert tiled.changes == (*plain.changes, TILED)
    assert restart_interval(tiled.data)
    assert_same(pixels(plain.data), pixels(tiled.data))


def test_progressive_images_get_tiles_with_baseline(images: ModuleType) -> None:
    pytest.importorskip("jpeglib")
    data = images.encode(images.noise(300, 200), "JPEG", progressive=True)
    for shrink in (False, True):
        stored = store_image(data, ImageOptions(baseline=True, tiles=True, shrink=shrink))
        assert stored.changes == (TO_BASELINE, TILED)
        assert restart_interval(stored.data)
        assert not is_progressive(stored.data)
        assert_same(pixels(data), pixels(stored.data))


def test_rewriting_keeps_intervals(images: ModuleType) -> None:
    """Those of tiles, and those of encoders, baseline and progressive."""
    pytest.importorskip("jpeglib")
    for progressive in (False, True):
        for interval in (2, 5, 40):
            image = Image.fromarray(smooth(200, 320))
            data = images.encode(
                image, "JPEG", progressive=progressive, restart_marker_blocks=interval
            )
            stored = store_image(data, ImageOptions(baseline=True, shrink=True))
            assert stored.changes == ((TO_BASELINE,) if progressive else (SHRUNK,))
            assert restart_interval(stored.data) == interval
            assert_same(pixels(data), pixels(stored.data))
