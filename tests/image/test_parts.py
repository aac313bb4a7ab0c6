"""Parts of JPEGs have the pixels of the whole image, bit for bit.

`tests/soak/image_crops.py` does the same with many more crops; its images and checks are used here.
"""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import (
    ImageHeader,
    PartFile,
    Window,
    decode_part,
    decode_pixels,
    find_part,
    find_parts,
    read_image_header,
)
from recordsmith.image.storing.lossless import add_tiles
from recordsmith.jpeg import cut_jpeg, with_interval
from recordsmith.support.errors import CorruptDataError

from ..images import encode, noise, sampled_jpeg, segment, smooth
from ..raising import raises
from ..soak import image_crops as soak
from ..soak.image_crops import JFIF, SAMPLINGS, same_pixels

LUMA = {"4:4:4": (1, 1), "4:2:2": (2, 1), "4:2:0": (2, 2), "4:4:0": (1, 2), "4:1:1": (4, 1)}


def _colours(across: int, down: int) -> list[tuple[int, int]]:
    return [(across, down), (1, 1), (1, 1)]


def _find(data: bytes, window: Window, divisor: int = 1) -> PartFile:
    return find_part(data, read_image_header(data), window, divisor=divisor)


# -- undamaged images ------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_crops_have_the_pixels_of_the_whole_image() -> None:
    tables, wrong = soak.crops(960, seed=1)
    assert wrong == []
    for name, sampling in SAMPLINGS.items():
        assert (tables[name]["cut out"] > 0) == sampling.is_cut, name
    assert sum(counts["scaled"] for counts in tables.values()) > 100
    assert sum(counts["edge"] for counts in tables.values()) > 300


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("divisor", [1, 2, 4, 8])
@pytest.mark.parametrize("name", LUMA)
def test_narrow_images_and_each_edge_of_a_block(name: str, divisor: int) -> None:
    """Decoders repeat chroma, instead of interpolating it, where an image is narrow."""
    across, down = LUMA[name]
    cut_count = 0
    for side in range(1, 41) if divisor == 1 else range(16, 95, 6):
        other = 16 if divisor > 1 else 5
        for height, width in ((side, other), (other, side)):
            data = sampled_jpeg(height, width, _colours(across, down), seed=side, interval=1)
            head = read_image_header(data)
            whole = decode_pixels(data, head, divisor=divisor)
            for at in range(0, side, divisor):
                size = min(1 + at % 9, side - at)
                window = Window(at, 0, size, 5) if height == side else Window(0, at, 5, size)
                part = decode_part(data, head, window, divisor=divisor)
                assert same_pixels(part, whole, window, divisor), (height, width, window)
                cut_count += part.pixels.shape != whole.shape
    assert cut_count > 10


@pytest.mark.parametrize(
    ("luma", "interval", "window", "divisor", "expected"),
    [
        # tiles of 2 MCUs: a multiple of 16 pixels, without a margin as no chroma is interpolated
        ((1, 1), 2, Window(40, 40, 16, 16), 1, (40, 32, 16, 32)),
        ((1, 1), 2, Window(39, 32, 2, 16), 1, (32, 32, 16, 16)),
        ((1, 1), 1, Window(159, 159, 1, 1), 1, (152, 152, 8, 8)),
        ((1, 1), 1, Window(40, 40, 16, 16), 4, (32, 32, 32, 32)),
        # 4:2:0: one sample of chroma more on each side
        ((2, 2), 1, Window(34, 34, 12, 12), 1, (32, 32, 16, 16)),
        ((2, 2), 1, Window(32, 34, 12, 12), 1, (16, 32, 32, 16)),
        ((2, 2), 1, Window(34, 34, 14, 12), 1, (32, 32, 32, 16)),
        ((2, 2), 1, Window(0, 0, 14, 14), 1, (0, 0, 16, 16)),
        # large windows without tiles: whole rows from the last row that starts with an interval
        ((1, 1), 0, Window(8, 0, 80, 150), 1, (0, 0, 88, 160)),
        ((1, 1), 20, Window(40, 0, 80, 150), 1, (40, 0, 80, 160)),
        ((1, 1), 40, Window(40, 0, 80, 150), 1, (32, 0, 88, 160)),
        ((1, 1), 30, Window(40, 0, 80, 150), 1, (24, 0, 96, 160)),
        ((1, 1), 7, Window(60, 0, 60, 150), 1, (56, 0, 64, 160)),
        ((1, 1), 500, Window(40, 0, 80, 150), 1, (0, 0, 120, 160)),
        # the codes of the rows above are skipped
        ((1, 1), 0, Window(40, 0, 80, 150), 1, (40, 0, 80, 160)),
        # small ones: the codes of their MCUs
        ((1, 1), 0, Window(40, 40, 16, 16), 1, (40, 40, 16, 16)),
        ((1, 1), 0, Window(155, 0, 1, 1), 1, (152, 0, 8, 8)),
        ((1, 1), 20, Window(41, 70, 16, 16), 1, (40, 64, 24, 24)),
        ((1, 1), 7, Window(60, 40, 16, 16), 1, (56, 40, 24, 16)),
        ((1, 1), 65_535, Window(40, 40, 16, 16), 1, (40, 40, 16, 16)),
        ((1, 1), 0, Window(155, 0, 1, 160), 1, (152, 0, 8, 160)),
        # hardly smaller
        ((1, 1), 1, Window(0, 0, 160, 159), 1, None),
        ((1, 1), 0, Window(0, 0, 155, 160), 1, None),
    ],
)
def test_the_smallest_part_is_cut_out(
    luma: tuple[int, int],
    interval: int,
    window: Window,
    divisor: int,
    expected: tuple[int, int, int, int] | None,
) -> None:
    data = sampled_jpeg(160, 160, _colours(*luma), interval=interval)
    file = _find(data, window, divisor)
    if expected is None:
        assert file == PartFile(data, read_image_header(data))
        return
    top, left, height, width = expected
    assert (file.top, file.left, file.head) == (top, left, ImageHeader("jpeg", height, width, 3))
    assert file.whole == (data, read_image_header(data))
    with Image.open(io.BytesIO(file.data)) as image:
        assert image.size == (width, height)


def test_the_file_of_a_part_has_nothing_else() -> None:
    """Of 400 tiles, one, the tables and the colour space; no EXIF, comments or profiles."""
    extra = b"".join(
        segment(marker, bytes(1000)) for marker in (0xE1, 0xE2, 0xEF, 0xFE)
    ) + soak.adobe(1)
    data = sampled_jpeg(160, 160, _colours(1, 1), interval=1, extra=JFIF + extra)
    file = bytes(_find(data, Window(40, 40, 8, 8)).data)
    assert len(file) < 900
    assert JFIF in file
    assert soak.adobe(1) in file


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("quality", [75, 95, 100])
def test_codes_of_noise_are_skipped(quality: int, optimize: bool) -> None:
    """Long codes, and blocks up to their last coefficient, which have no end."""
    data = encode(noise(160, 128), "JPEG", quality=quality, optimize=optimize, subsampling=0)
    head = read_image_header(data)
    whole = decode_pixels(data, head)
    for top, left in ((0, 72), (40, 0), (112, 140)):
        window = Window(top, left, 16, 16)
        part = decode_part(data, head, window)
        assert max(part.pixels.shape) <= 24
        assert same_pixels(part, whole, window)


@pytest.mark.parametrize(
    ("at", "changed"),
    [
        pytest.param(4, b"\x0c", id="12 bits"),
        pytest.param(5, b"\0\0", id="height after the scan"),
        pytest.param(7, b"\0\0", id="no width"),
        pytest.param(9, b"\2", id="2 components"),
        pytest.param(10, b"\2", id="the same component twice"),
        pytest.param(11, b"\x02", id="sampling factor 0"),
        pytest.param(11, b"\x52", id="sampling factor 5"),
        pytest.param(2, b"\0\x0e", id="short frame header"),
    ],
)
def test_other_frame_headers_are_not_cut(at: int, changed: bytes) -> None:
    start = HEIGHT - 5 + at
    data = TILED[:start] + changed + TILED[start + len(changed) :]
    assert cut_jpeg(TILED, 36, 34, 12, 12, 1) is not None
    assert cut_jpeg(data, 36, 34, 12, 12, 1) is None
    for stop in (0, 1, 3, start, len(TILED) // 3):
        assert cut_jpeg(TILED[:stop], 36, 34, 12, 12, 1) is None


# -- unusual files ---------------------------------------------------------------------------------

TILED = sampled_jpeg(80, 112, _colours(2, 2), interval=1, extra=JFIF)
PLAIN = sampled_jpeg(80, 112, _colours(2, 2), extra=JFIF)
SCAN = b"\xff\xda"
HEIGHT = TILED.index(b"\xff\xc0") + 5


def _with_code(data: bytes, code: int) -> bytes:
    return data.replace(b"\xff\xc0", bytes((0xFF, code)), 1)


def _with_fill(data: bytes) -> bytes:
    """Fill bytes before each restart marker."""
    for code in range(0xD0, 0xD8):
        data = data.replace(bytes((0xFF, code)), bytes((0xFF, 0xFF, 0xFF, code)))
    return data


def _nth_restart(data: bytes, number: int) -> int:
    at = data.index(SCAN)
    for _ in range(number + 1):
        at += 2
        while not 0xD0 <= data[at + 1] <= 0xD7 or data[at] != 0xFF:
            at += 1
    return at


def _interleaved_not() -> bytes:
    """Three scans, each of one component."""
    parts = [sampled_jpeg(80, 112, [(1, 1)], seed) for seed in range(3)]
    whole = sampled_jpeg(80, 112, _colours(1, 1))
    head = whole[: whole.index(SCAN)]
    scans = []
    for number, part in enumerate(parts, 1):
        at = part.index(SCAN)
        scans.append(SCAN + b"\0\x08\1" + bytes((number,)) + part[at + 6 : -2])
    return head + b"".join(scans) + b"\xff\xd9"


def _without_tables(data: bytes) -> bytes:
    """Without Huffman tables, as in films: decoders assume the usual ones."""
    kept, at = data[:2], 2
    while data[at : at + 2] != SCAN:
        stop = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        kept += b"" if data[at + 1] == 0xC4 else data[at:stop]
        at = stop
    return kept + data[at:]


def _odd_files() -> dict[str, tuple[bytes, bool]]:
    """Files, and whether a window in their middle is cut out."""
    restart = _nth_restart(TILED, 5)
    later = _nth_restart(TILED, 30)
    thumbnail = segment(0xE1, b"Exif\0\0" + sampled_jpeg(20, 20, _colours(1, 1)))
    photo = encode(noise(112, 80), "JPEG", restart_marker_blocks=1)
    height = int.from_bytes(TILED[HEIGHT : HEIGHT + 2], "big")
    dnl = segment(0xDC, height.to_bytes(2, "big"))
    one = segment(0xDD, b"\0\1")
    three = sampled_jpeg(80, 112, _colours(2, 2), interval=3)
    at = _nth_restart(three, 3)
    return {
        "thumbnail": (TILED[:2] + thumbnail + TILED[2:], True),
        "long segments": (TILED[:2] + segment(0xE5, b"\xff\xc0" * 30_000) * 3 + TILED[2:], True),
        "comment with markers": (
            TILED[:2] + segment(0xFE, b"\xff\xd9\xff\xc0\xff\xda") + TILED[2:],
            True,
        ),
        "two intervals stated": (TILED.replace(one, segment(0xDD, b"\0\3") + one), True),
        "extended sequential": (_with_code(TILED, 0xC1), True),
        "two images": (TILED + PLAIN, True),
        "two plain images": (PLAIN + TILED, True),
        "trailing bytes": (TILED + b"words\xff\xd3\xff\xc0", True),
        "trailing bytes, plain": (PLAIN + b"words\xff\xd3\xff\xc0", True),
        "fill before restarts": (_with_fill(TILED), True),
        "fill before the end": (TILED[:-2] + b"\xff" * 9 + TILED[-2:], True),
        "no end mark": (TILED[:-2], True),
        "no end mark, plain": (PLAIN[:-2], True),
        "truncated below": (TILED[:later], True),
        "truncated below, plain": (PLAIN[: len(PLAIN) * 9 // 10], True),
        "truncated above": (TILED[:restart], False),
        "ends with FF": (TILED[:later] + b"\xff", True),
        "sides of rows that are missing": (TILED[:HEIGHT] + b"\0\x90" + TILED[HEIGHT + 2 :], True),
        "fewer rows than there are": (TILED[:HEIGHT] + b"\0\x40" + TILED[HEIGHT + 2 :], True),
        "number of lines behind the scan": (TILED[:-2] + dnl + TILED[-2:], True),
        "usual Huffman tables assumed": (_without_tables(photo), True),
        "restart missing above": (TILED[:restart] + TILED[restart + 2 :], False),
        "restart doubled above": (
            TILED[:restart] + TILED[restart : restart + 2] + TILED[restart:],
            False,
        ),
        "restart misnumbered above": (TILED[: restart + 1] + b"\xd0" + TILED[restart + 2 :], False),
        "restart misnumbered among codes": (three[: at + 1] + b"\xd4" + three[at + 2 :], False),
        "restart missing below": (TILED[:later] + TILED[later + 2 :], True),
        "interval missing above": (TILED[: _nth_restart(TILED, 4)] + TILED[restart:], False),
        "eight intervals missing above": (
            TILED[: _nth_restart(TILED, 1)] + TILED[_nth_restart(TILED, 9) :],
            True,
        ),
        "restarts without an interval": (TILED.replace(one, b""), False),
        "an interval without restarts": (PLAIN.replace(SCAN, one + SCAN, 1), False),
        "fill in the header": (TILED[:2] + b"\xff" * 3 + TILED[2:], False),
        "garbage in the header": (TILED[:20] + b"???" + TILED[20:], False),
        "several scans": (_interleaved_not(), False),
        "progressive": (encode(noise(112, 80), "JPEG", progressive=True), False),
        "progressive, with restarts": (
            encode(noise(112, 80), "JPEG", progressive=True, restart_marker_blocks=1),
            False,
        ),
        "arithmetic codes": (_with_code(TILED, 0xC9), False),
        "lossless": (_with_code(TILED, 0xC3), False),
        "differential": (_with_code(TILED, 0xC5), False),
        "marker in the scan": (
            PLAIN[: len(PLAIN) // 4] + b"\xff\xc5" + PLAIN[len(PLAIN) // 4 :],
            False,
        ),
        "part of the coefficients": (
            TILED.replace(b"\0\x3f\0", b"\0\x3e\0", 1),
            False,
        ),
        "fewer components in the scan": (
            TILED.replace(SCAN + b"\0\x0c\3", SCAN + b"\0\x0c\2", 1),
            False,
        ),
        "progressive by its marker": (_with_code(TILED, 0xC2), False),
        "a table that is replaced": (
            PLAIN.replace(
                b"\xff\xc4", segment(0xC4, b"\0" + b"\1" + bytes(15) + b"\3") + b"\xff\xc4", 1
            ),
            True,
        ),
        "two frames": (TILED.replace(one, TILED[HEIGHT - 5 : HEIGHT + 14] + one), False),
    }


ODD_FILES = _odd_files()
DAMAGED_ELSEWHERE = {
    "no end mark",
    "no end mark, plain",
    "truncated below",
    "truncated below, plain",
    "truncated above",
    "ends with FF",
    "marker in the scan",
    "sides of rows that are missing",
    "restart missing below",
}
"""Files whose parts may be intact though the whole file is not."""


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("name", ODD_FILES)
def test_unusual_files(name: str) -> None:
    """The same pixels, or the same refusal, as of the whole file."""
    data, is_cut = ODD_FILES[name]
    intact = PLAIN if "plain" in name else TILED
    windows = [Window(36, 34, 12, 12), Window(0, 0, 9, 30), Window(20, 60, 30, 40)]
    head = read_image_header(data)
    assert (_find(data, windows[0]).whole is not None) == is_cut
    for window in windows:
        for channels in (1, 3):
            part = _or_none(decode_part, data, head, window, channels=channels)
            whole = _or_none(decode_pixels, data, head, channels=channels)
            if name in DAMAGED_ELSEWHERE and (is_cut or part is not None):
                whole = decode_pixels(intact, read_image_header(intact), channels=channels)
            assert (part is None) == (whole is None)
            assert part is None or same_pixels(part, whole, window)


def _or_none(decode: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return decode(*arguments, **options)
    except CorruptDataError:
        return None


# -- damaged images --------------------------------------------------------------------------------


@pytest.mark.usefixtures("each_jpeg_decoder")
@pytest.mark.parametrize("is_tiled", [False, True])
def test_damage_is_found_in_the_part_that_is_decoded(is_tiled: bool) -> None:
    """A part has the pixels of the damaged file or the intact ones, and is refused as the file."""
    plain = encode(smooth(256, 256), "JPEG")
    data = add_tiles(plain) if is_tiled else plain
    window = Window(128, 64, 64, 64)
    head = read_image_header(data)
    rows, columns = np.s_[128:192], np.s_[64:128]
    intact = decode_pixels(data, head)[rows, columns]
    dice, counts = random.Random(1), Counter[str]()
    for _ in range(120):
        damaged = bytearray(data)
        for _ in range(dice.choice([1, 1, 9])):
            damaged[dice.randrange(650, len(data) - 2)] ^= 1 << dice.randrange(8)
        whole = _or_none(decode_pixels, damaged, head)
        part = _or_none(decode_part, damaged, head, window)
        if part is None:
            assert whole is None
            counts["refused"] += 1
            continue
        found = part.pixels[128 - part.top :, 64 - part.left :][:64, :64]
        is_intact = np.array_equal(found, intact)
        assert is_intact or (whole is not None and np.array_equal(found, whole[rows, columns]))
        counts["intact" if is_intact else "damaged"] += 1
    assert counts["intact"] > 20
    assert counts["refused"] + counts["damaged"] > 10


# -- large images ----------------------------------------------------------------------------------

LARGE = 20_000
TILE = 50  # MCUs
COLOURS = ((200, 30, 60), (10, 240, 90), (120, 120, 250))

# Prints the colour of the centre, and by how many bytes the peak of the process grows.
_LOAD = """
import sys
from collections import Counter
from pathlib import Path
import numpy as np
import recordsmith as rs

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

def load(path):
    for image in (
        rs.Image(size=512, fit="crop-or-pad"),
        rs.Image(size=512, fit="random-crop", crop_area=(0.0006, 0.0008)),
    ):
        loader = rs.Loader(rs.open(path), {"image": image}, batch_size=1, seed=1)
        yield next(iter(loader))["image"][0]

list(load(sys.argv[1]))
Path("/proc/self/clear_refs").write_text("5")
before = peak()
crops = list(load(sys.argv[2]))
print(peak() - before, *(colour for crop in crops for colour in crop[256, 256]))
"""


def _large_jpeg(colours: tuple[tuple[int, int, int], ...], height: int = LARGE) -> bytes:
    """Columns of one colour, in turn; the bytes of a tile are encoded once and repeated."""
    tiles = []
    for colour in colours:
        image = Image.new("RGB", (16 * TILE, 16), colour)
        data = encode(image, "JPEG", restart_marker_blocks=TILE)
        scan = data.index(SCAN) + 14
        tiles.append(data[scan:-2])
    across = LARGE // (16 * TILE)
    body = b"".join(
        tiles[number % across % len(tiles)] + bytes((0xFF, 0xD0 + number % 8))
        for number in range(across * height // 16)
    )
    head = bytearray(data[:scan])
    at = head.index(b"\xff\xc0") + 5
    head[at : at + 4] = height.to_bytes(2, "big") + LARGE.to_bytes(2, "big")
    return bytes(head) + body[:-2] + b"\xff\xd9"


@pytest.fixture(scope="module")
def large() -> bytes:
    return _large_jpeg(COLOURS)


def _saved(path: Path, data: bytes) -> Path:
    with rs.ShardWriter(path) as writer:
        writer.write_example({"image/encoded": data})
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize("interval", [TILE, 0])
def test_crops_of_400_megapixels_take_little_memory(
    large: bytes, interval: int, tmp_path: Path
) -> None:
    data = large if interval == TILE else with_interval(large, interval)[1]
    assert read_image_header(data) == ("jpeg", LARGE, LARGE, 3, "")
    small = _saved(tmp_path / "small.tfrecord", _large_jpeg(COLOURS, height=800))
    path = _saved(tmp_path / "large.tfrecord", data)
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, small, path],
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=True,
    )
    peak, *colours = map(int, done.stdout.split())
    assert peak < 4 * len(data) + 20_000_000  # 1,200,000,000 for all pixels
    centre = LARGE // 2 // (16 * TILE)
    assert np.abs(np.subtract(colours[:3], COLOURS[centre % 3])).max() <= 4
    assert min(np.abs(np.subtract(colours[3:], colour)).max() for colour in COLOURS) <= 4


def test_the_limit_is_of_the_pixels_that_are_decoded(large: bytes, tmp_path: Path) -> None:
    crop, whole = (rs.Image(size=512, fit=fit) for fit in ("crop-or-pad", "resize"))
    progressive = _with_code(large, 0xC2)
    for name, data, image in (
        ("whole", large, whole),
        ("progressive", progressive, whole),
        ("crop of progressive", progressive, crop),
    ):
        loader = rs.Loader(rs.open(_saved(tmp_path / name, data)), {"image": image}, batch_size=1)
        with raises(CorruptDataError, defect="unreadable-image", found="20,000 x 20,000 pixels"):
            next(iter(loader))
    with raises(CorruptDataError, defect="unreadable-image", match="max_pixels"):
        head = read_image_header(large)
        decode_part(large, head, Window(9000, 9000, 500, 500), max_pixels=500 * 500)


def test_patches_of_a_large_plain_image_do_not_depend_on_where_they_are(large: bytes) -> None:
    plain = with_interval(large, 0)[1]
    head = read_image_header(plain)
    corners = [Window(0, 0, 64, 64), Window(19_900, 19_900, 64, 64)]
    files = find_parts(plain, head, corners)
    assert [windows for _, windows in files] == [[0], [1]]
    assert all(file.head.height * file.head.width < 1 << 22 for file, _ in files)


def test_large_images_get_tiles_and_are_verified(large: bytes, tmp_path: Path) -> None:
    plain = with_interval(large, 0)[1]
    tiled = add_tiles(plain)
    assert with_interval(tiled, 0)[1].endswith(plain[-1_000_000:])
    good, bad = rs.open(_saved(tmp_path / "a", tiled)), bytearray(tiled)
    assert rs.verify(good, deep=True).is_good
    bad[len(bad) // 2 : len(bad) // 2 + 8] = b"\xff\xd9" * 4
    (defect,) = rs.verify(_saved(tmp_path / "b", bytes(bad)), deep=True).defects
    assert defect.defect == "unreadable-image"


@pytest.mark.usefixtures("each_jpeg_decoder")
def test_damage_in_a_part_of_a_large_image(large: bytes) -> None:
    """Whether a decoder accepts it is only known of the whole image."""
    head = read_image_header(large)
    at = large.index(SCAN) + 14 + 40  # within the first tile
    damaged = large[:at] + large[at + 60 :]
    with raises(CorruptDataError, defect="unreadable-image", match="damaged"):
        decode_part(damaged, head, Window(0, 0, 64, 64))
    assert decode_part(damaged, head, Window(0, 20 * TILE, 64, 64)).pixels.size
