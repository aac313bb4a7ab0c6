"""Restart intervals of JPEGs.

The invariant: any bytes and any interval give a file, or a code that says why not, and nothing
else. The kernel never reads or writes outside the memory that it was given, never loops without
end, and writes at most twice the bytes that it reads, plus 2,048. A file has the interval, and the
MCUs of the original, and writing it again gives the same file. If simplejpeg finds no fault in the
original, both have the same pixels.
"""

from __future__ import annotations

import importlib.util
import io
import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from harness import FOLDER, mutated
from PIL import Image
from simplejpeg import decode_jpeg

from recordsmith.jpeg import tiling

OUTCOMES = {
    tiling.DONE: "done",
    tiling.UNSUPPORTED: "unsupported",
    tiling.DAMAGED: "damaged",
    tiling.LEFT_OVER: "left over",
    tiling.TOO_LARGE: "too large",
    tiling.NO_CODE: "no code",
}
SMALL_PIXELS = 1 << 16


class Fuzz:
    watches_memory = True
    reached = (*OUTCOMES.values(), "new codes", "same pixels")

    def __init__(self, _: Path) -> None:
        self.last = b""
        dice = random.Random(0)
        noise = Image.frombytes("RGB", (41, 37), dice.randbytes(3 * 41 * 37)).resize((24, 21))
        ramp = Image.linear_gradient("L").resize((72, 16))
        images = images_of_tests()
        flat = encoded(Image.new("L", (640, 640)))  # markers would make it much larger
        self.seeds = [flat, flat, *8 * [images.jpeg_with_full_table()]]
        for factors in ([(1, 1)], [(2, 2), (1, 1), (1, 1)], [(1, 1), (2, 1), (1, 2)]):
            self.seeds.append(images.sampled_jpeg(21, 24, factors))
        for image in (noise, ramp, noise.convert("CMYK")):
            for options in ({}, {"optimize": True}, {"quality": 100, "optimize": True}):
                for interval in (0, 1, 2):
                    self.seeds.append(encoded(image, restart_marker_blocks=interval, **options))
        for subsampling in ("4:4:4", "4:2:2"):
            self.seeds.append(encoded(noise, subsampling=subsampling))
        self.seeds.append(encoded(noise, progressive=True))

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        seed = dice.choice(self.seeds)
        scan = seed.rindex(b"\xff\xda")
        if dice.random() < 0.5:  # headers are long, and mutations few
            data = seed[:scan] + mutated(seed[scan:], self.seeds, dice)
        else:
            data = mutated(seed[:scan], self.seeds, dice) + seed[scan:]
        frame = data.find(b"\xff\xc0")
        if frame >= 0 and dice.random() < 0.1:  # sides and factors that lie
            at = frame + dice.choice((5, 7, 11))
            odd = struct.pack(">H", dice.choice((0, 1, 8, 17, 255, 4096, 65_535)))
            data = data[:at] + odd + data[at + 2 :]
        if dice.random() < 0.1:  # another interval than that of the scan, and several of them
            for _ in range(dice.choice((1, 2))):
                data = data[:2] + b"\xff\xdd\0\x04\0" + bytes((dice.randrange(4),)) + data[2:]
        self.last = data
        interval = dice.choice((0, 1, 1, 2, 3, 5, 30, 65_535))
        code, file = tiling.with_interval(exact(data), interval)
        counts[OUTCOMES[code]] += 1
        mcus = tiling.read_mcus(exact(data))
        if code != tiling.DONE:
            assert file == b""
            return
        assert mcus is not None
        assert tiling.read_mcus(file) == (*mcus[:-1], interval)
        assert len(file) <= 2 * len(data) + 2048
        assert tiling.with_interval(exact(file), interval) == (tiling.DONE, file)
        counts["new codes"] += file.count(b"\xff\xc4") > data.count(b"\xff\xc4")
        if mcus[0] * mcus[1] * mcus[2] * mcus[3] <= SMALL_PIXELS:
            before = pixels(data)
            if before is not None:
                after = pixels(file)
                assert after is not None
                np.testing.assert_array_equal(before, after)
                counts["same pixels"] += 1


def images_of_tests() -> Any:
    """The module of the tests that draws images."""
    spec = importlib.util.spec_from_file_location("drawn_images", FOLDER.parent / "images.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pixels(data: bytes) -> Any:
    try:
        return decode_jpeg(data, "GRAY")
    except ValueError:
        return None


def exact(data: bytes) -> Any:
    """A copy in a block of memory that ends where it ends."""
    return np.frombuffer(data, np.uint8).copy()


def encoded(image: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", **options)
    return stream.getvalue()
