"""Cuts of JPEGs.

The invariant: any bytes and any window give a cut or None. A cut has at most 2,048 bytes more than
the file, for longer Huffman tables. It contains the window, starts at a multiple of 8 pixels, is
itself a JPEG with the sides that are returned, and is the same each time. A cut of an undamaged
file decodes to the pixels of the window, and windows outside the image give None.

An overread is only seen by a tool that watches memory: run_with_sanitizer.sh runs this under
AddressSanitizer. That is why each input lies in a block of exactly its size.
"""

from __future__ import annotations

import importlib.util
import random
import re
import struct
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness import mutated

from recordsmith.image.decoding.jpeg_pixels import decode_cut, decode_jpeg
from recordsmith.jpeg import cut_jpeg, read_frame

FACTORS = ((1, 1), (2, 1), (2, 2), (1, 2), (4, 1), (1, 4), (4, 2))
SIDES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 2**15, 65_500, 65_535, 65_536, 2**31 - 1)
MARKERS = bytes(
    (0x00, 0x01, 0xC0, 0xC1, 0xC2, 0xC4, *range(0xD0, 0xE0), 0xE0, 0xE1, 0xEE, 0xFE, 0xFF)
)
PARAMETERS = 6  # a marker, a length and the first bytes


def _images() -> Any:
    """tests/images.py."""
    path = Path(__file__).parent.parent / "images.py"
    spec = importlib.util.spec_from_file_location("fuzz_images_of_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Fuzz:
    watches_memory = True
    reached = (
        "cut",
        "scaled",
        "not cut",
        "outside",
        "undamaged",
        "huge",
        "changed markers",
        "changed tables",
    )

    def __init__(self, _: Path) -> None:
        self.last = b""
        images = _images()
        draw = images.sampled_jpeg
        exif = b"\xff\xe1\x00\x10Exif\0\0" + bytes(8)
        self.seeds: list[bytes] = []
        for number, (across, down) in enumerate(FACTORS):
            for interval in (0, 1, 2, 3, 7):
                height, width = 40 + 9 * number, 105 - 7 * number
                factors = [(across, down), (1, 1), (1, 1)]
                self.seeds.append(
                    draw(height, width, factors, number, interval=interval, extra=exif)
                )
        for interval in (0, 1, 4):
            self.seeds.append(draw(40, 50, [(2, 2)], interval=interval))
            self.seeds.append(draw(16, 40, [(1, 1)] * 4, interval=interval))
        for interval in (0, 1, 5):  # tables that lack codes, and long codes
            options = {"optimize": True, "restart_marker_blocks": interval}
            for quality in (30, 100):
                blurred = images.noise(15, 10, seed=quality).resize((90, 60))
                self.seeds.append(images.encode(blurred, "JPEG", quality=quality, **options))
        self.whole = cache(_decoded)

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        seed = data = dice.choice(self.seeds)
        way = dice.randrange(7)
        if way == 1:
            data = _with_sides(data, dice)
            counts["huge"] += 1
        elif way == 2:
            data = _with_markers(data, dice)
            counts["changed markers"] += 1
        elif way == 3:
            data = _with_tables(data, dice)
            counts["changed tables"] += 1
        elif way >= 4:
            data = mutated(data, self.seeds, dice)
        self.last = data
        frame = read_frame(data)
        height, width = (frame.height, frame.width) if frame is not None else (40, 40)
        window = _window(height, width, dice)
        divisor = dice.choice((1, 1, 1, 1, 2, 2, 4, 8) if dice.random() < 0.95 else (0, 3, 9, -1))
        block = np.empty(len(data), np.uint8)
        block[:] = np.frombuffer(data, np.uint8)
        cut = cut_jpeg(block, *window, divisor)
        is_outside = (
            min(window) < 0
            or window[0] + window[2] > height
            or window[1] + window[3] > width
            or not window[2] * window[3]
        )
        if frame is not None and is_outside:
            counts["outside"] += 1
            assert cut is None
        if cut is None:
            counts["not cut"] += 1
            return
        counts["cut"] += 1
        file, *place, interval = cut
        assert len(file) <= len(data) + 2048
        assert cut_jpeg(block, *window, divisor) == cut
        assert cut_jpeg(block, *window, divisor, interval) == cut
        wrong = dice.randrange(-9, 99), dice.randrange(2 * len(data))
        cut_jpeg(block, *window, divisor, wrong)
        assert frame is not None
        _check_place(place, window, height, width)
        found = read_frame(file)
        assert found is not None
        assert [found.height, found.width] == place[2:]
        assert file.endswith(b"\xff\xd9")
        if data == seed and divisor in (1, 2, 4, 8):
            counts["scaled"] += divisor > 1
            counts["undamaged"] += 1
            _check_pixels(file, place, self.whole(data, divisor), window, divisor)


def _with_sides(data: bytes, dice: random.Random) -> bytes:
    """Other sides and another restart interval, up to the largest."""
    at = data.index(b"\xff\xc0") + 5
    height, width = (dice.choice(SIDES[1:14]) for _ in "hw")
    data = data[:at] + struct.pack(">HH", height, width) + data[at + 4 :]
    at = data.find(b"\xff\xdd")
    if at >= 0 and dice.random() < 0.7:
        interval = dice.choice((0, 1, 2, 5, 4096, 8191, 65_535, dice.randrange(65_536)))
        data = data[: at + 4] + struct.pack(">H", interval) + data[at + 6 :]
    return data


def _with_markers(data: bytes, dice: random.Random) -> bytes:
    """Changed, doubled, missing and filled markers."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 5))):
        at = changed.find(b"\xff", dice.randrange(len(changed)))
        if at < 0:
            continue
        way = dice.randrange(5)
        if way == 0:
            changed[at + 1 : at + 2] = bytes((dice.choice(MARKERS),))
        elif way == 1:
            del changed[at : at + 2]
        elif way == 2:
            changed[at:at] = changed[at : at + dice.choice((2, PARAMETERS))]
        elif way == 3:
            changed[at:at] = b"\xff" * dice.choice((1, 2, 9))
        else:
            changed[at + 2 : at + 4] = struct.pack(">H", dice.choice((0, 1, 2, 8, 65_535)))
    return bytes(changed)


def _with_tables(data: bytes, dice: random.Random) -> bytes:
    """Codes of other lengths, as many as before, and other symbols."""
    changed = bytearray(data)
    tables = [match.start() + 5 for match in re.finditer(b"\xff\xc4", data)]
    at = dice.choice(tables)
    for _ in range(dice.choice((1, 1, 2, 9))):
        first, second = (at + dice.randrange(16) for _ in "ab")
        moved = min(changed[first], 255 - changed[second], dice.choice((1, 2, 255)))
        changed[first] -= moved
        changed[second] += moved
        if dice.random() < 0.3:
            changed[at + 16 + dice.randrange(12)] = dice.choice((0, 11, 12, 16, 0xF0, 255))
    return bytes(changed)


def _window(height: int, width: int, dice: random.Random) -> tuple[int, int, int, int]:
    if dice.random() < 0.1:
        top, left, tall, wide = (dice.choice((*SIDES, -1, -(2**31))) for _ in range(4))
        return top, left, tall, wide
    top, left = dice.randrange(max(1, height)), dice.randrange(max(1, width))
    tall, wide = (
        dice.choice((1, 2, 8, 17, most + (dice.random() < 0.1), most // 2, most // 4))
        for most in (height - top, width - left)
    )
    return top, left, tall, wide


def _check_place(
    place: list[int], window: tuple[int, int, int, int], height: int, width: int
) -> None:
    top, left, tall, wide = place
    assert top % 8 == left % 8 == 0
    assert 0 <= top <= window[0]
    assert 0 <= left <= window[1]
    assert window[0] + window[2] <= top + tall <= height
    assert window[1] + window[3] <= left + wide <= width
    assert (tall, wide) != (height, width)


def _check_pixels(
    file: bytes, place: list[int], whole: Any, window: tuple[int, int, int, int], divisor: int
) -> None:
    if whole is None:  # too small to be scaled in a known way
        return
    part: Any = decode_cut(file, *place[2:], whole.shape[2], divisor=divisor)
    assert part is not None
    half = divisor // 2
    top, left = ((window[axis] + half) // divisor for axis in (0, 1))
    bottom, right = ((window[axis] + window[axis + 2] + half) // divisor for axis in (0, 1))
    expected = whole[top:bottom, left:right]
    top, left = top - place[0] // divisor, left - place[1] // divisor
    found = part[top : top + expected.shape[0], left : left + expected.shape[1]]
    assert np.array_equal(found, expected)


def _decoded(data: bytes, divisor: int) -> Any:
    frame = read_frame(data)
    assert frame is not None
    if divisor > 1 and min(frame.height, frame.width) < 16:
        return None
    sides = frame.height, frame.width
    return decode_jpeg(data, *sides, frame.component_count, divisor=divisor)
