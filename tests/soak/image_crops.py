"""Crops of JPEGs: do parts that are cut out have the pixels of the whole image?

Draws JPEGs of every sampling, with restart markers at every distance, and decodes windows of them
with `decode_part` and whole. All pixels must be equal. Then damages files, half of them within the
part that a window uses and half elsewhere, and compares with decoding the whole file. Prints a
table of each.

Damage within the part must give the same error, or the same pixels, as decoding the whole file.
Damage elsewhere must give the pixels of the undamaged file, unless the part is decoded with the
whole file because it cannot be cut. Exceptions are counted by their reason.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

import numpy as np
from tests.images import encode, noise, sampled_jpeg, segment

from recordsmith.errors import CorruptDataError
from recordsmith.examining.verification.image_check import check_example_images
from recordsmith.image.decoding.jpeg_pixels import decode_cut
from recordsmith.image.decoding.parts import Window, decode_part, find_part
from recordsmith.image.decoding.pixels import decode_pixels, read_image_head
from recordsmith.image.drawing.flowers import SPECIES, draw_flower

Pixels = np.ndarray[Any, np.dtype[Any]]

JFIF = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")


def adobe(transform: int) -> bytes:
    """The segment that states the colour space of a JPEG."""
    return segment(0xEE, b"Adobe\0d\0\0\0\0" + bytes((transform,)))


@dataclass(frozen=True)
class Sampling:
    """A sampling of colours.

    factors: of each component, across and down.
    ids, extra: as of `sampled_jpeg`.
    is_cut: whether parts are cut out; other images are decoded whole.
    is_optimized: encoded by Pillow, with Huffman tables that lack the codes that are not used.
    """

    factors: tuple[tuple[int, int], ...]
    ids: bytes = b"\1\2\3\4"
    extra: bytes = JFIF
    is_cut: bool = True
    is_optimized: bool = False


def _luma(across: int, down: int, **options: Any) -> Sampling:
    return Sampling(((across, down), (1, 1), (1, 1)), **options)


SAMPLINGS = {
    "4:4:4": _luma(1, 1),
    "4:2:2": _luma(2, 1),
    "4:2:0": _luma(2, 2),
    "4:4:0": _luma(1, 2),
    "4:1:1": _luma(4, 1),
    "4:4:1": _luma(1, 4),
    "4:1:0": _luma(4, 2, is_cut=False),
    "3 to 1": _luma(3, 1, is_cut=False),
    "4:4:4 with factors 2": Sampling(((2, 1),) * 3, is_cut=False),
    "unequal chroma": Sampling(((2, 2), (2, 1), (1, 2)), is_cut=False),
    "chroma of a larger scale": Sampling(((1, 1), (2, 1), (2, 1)), is_cut=False),
    "4:4:4, optimized": _luma(1, 1, is_optimized=True),
    "4:2:0, optimized": _luma(2, 2, is_optimized=True),
    "grey, optimized": Sampling(((1, 1),), is_optimized=True),
    "grey": Sampling(((1, 1),)),
    "grey with factors 2": Sampling(((2, 2),)),
    "grey with factors 4 and 1": Sampling(((4, 1),)),
    "without JFIF": _luma(2, 2, extra=b""),
    "RGB by Adobe": _luma(1, 1, extra=adobe(0)),
    "RGB by Adobe, 4:2:0": _luma(2, 2, extra=adobe(0)),
    "RGB by ids": _luma(1, 1, ids=b"RGB", extra=b""),
    "RGB by ids, with JFIF": _luma(2, 1, ids=b"RGB"),
    "CMYK": Sampling(((1, 1),) * 4, extra=adobe(0), is_cut=False),
    "YCCK": Sampling(((2, 2), (1, 1), (1, 1), (2, 2)), extra=adobe(2), is_cut=False),
}


class Drawn:
    """A JPEG of random size, contents and restart interval."""

    def __init__(self, name: str, rng: random.Random) -> None:
        sampling = SAMPLINGS[name]
        most = rng.choice((16, 40, 40, 90, 150))
        self.height, self.width = rng.randint(1, most), rng.randint(1, most)
        is_grey = len(sampling.factors) == 1
        across, down = (max(sides) for sides in zip(*sampling.factors, strict=True))
        across, down = (8, 8) if is_grey else (8 * across, 8 * down)
        mcus_across, mcus_down = -(-self.width // across), -(-self.height // down)
        tiles = [size for size in range(1, mcus_across) if mcus_across % size == 0]
        self.interval = rng.choice(
            (
                0,
                rng.choice(tiles or [1]),
                rng.choice(tiles or [1]),
                mcus_across * rng.randint(1, 3),
                rng.randint(1, mcus_across * mcus_down + 2),
                rng.choice((1, 65535)),
            )
        )
        self.data = self._encoded(sampling, rng)
        self.head = read_image_head(self.data)
        self._whole = cache(partial(decode_pixels, self.data, self.head))

    def _encoded(self, sampling: Sampling, rng: random.Random) -> bytes:
        seed = rng.getrandbits(32)
        if sampling.is_optimized:
            coarse = noise(
                1 + self.width // rng.choice((1, 4, 20)), 1 + self.height // 5, seed=seed
            )
            image = coarse.resize((self.width, self.height))
            return encode(
                image.convert("L" if len(sampling.factors) == 1 else "RGB"),
                "JPEG",
                optimize=True,
                quality=rng.choice((5, 50, 80, 97, 100)),
                subsampling=0 if sampling.factors[0] == (1, 1) else 2,
                restart_marker_blocks=self.interval,
            )
        return sampled_jpeg(
            self.height,
            self.width,
            list(sampling.factors),
            seed,
            interval=self.interval,
            ids=sampling.ids,
            extra=sampling.extra,
        )

    def check(self, window: Window, options: dict[str, Any]) -> bool:
        """Whether a window was cut out; raises AssertionError if its pixels are not right."""
        divisor = options["divisor"]
        part = decode_part(self.data, self.head, window, **options)
        assert part.top % 8 == part.left % 8 == 0
        assert same_pixels(part, self._whole(**options), window, divisor)
        file = find_part(self.data, self.head, window, divisor=divisor)
        # a part that seems damaged would be decoded with the whole image
        assert part[1:3] == (file.top, file.left)
        assert part.pixels.shape[:2] == tuple(-(-side // divisor) for side in file.head[1:3])
        return file.whole is not None


def same_pixels(part: Any, whole: Pixels, window: Window, divisor: int = 1) -> bool:
    """Whether a part has the pixels of a window of the whole image, rounded to the nearest."""
    top, left, height, width = window
    expected = _slice(whole, top, left, height, width, divisor)
    found = _slice(part.pixels, top - part.top, left - part.left, height, width, divisor)
    return expected.shape == found.shape and bool(np.array_equal(expected, found))


def _slice(pixels: Pixels, top: int, left: int, height: int, width: int, divisor: int) -> Pixels:
    assert min(top, left) >= 0
    rows, columns = (
        slice(*((side + divisor // 2) // divisor for side in (start, start + size)))
        for start, size in ((top, height), (left, width))
    )
    return pixels[rows, columns]


def draw_window(height: int, width: int, rng: random.Random) -> Window:
    """A window of an image, often at its edges or those of its blocks."""

    def side(size: int) -> tuple[int, int]:
        start, stop = sorted((rng.randrange(size + 1), rng.randrange(size + 1)))
        way = rng.randrange(6)
        if way == 0:
            start = 0
        elif way == 1:
            stop = size
        elif way == 2:
            start -= start % 8
        elif way == 3:
            stop = min(size, stop + -stop % 8)
        elif way == 4:
            stop = start + 1
        start = min(start, size - 1)
        return start, max(1, min(size, stop) - start)

    (top, tall), (left, wide) = side(height), side(width)
    return Window(top, left, tall, wide)


def draw_options(height: int, width: int, rng: random.Random) -> dict[str, Any]:
    """Options of `decode_part`: the loader does not scale images of fewer than 16 pixels a side."""
    return {
        "channels": rng.choice((1, 3, 3, 4)),
        "bits": rng.choice((8, 8, 8, 16, None)),
        "divisor": rng.choice((1, 1, 2, 4, 8)) if min(height, width) >= 16 else 1,
    }


def crops(count: int, seed: int, per_image: int = 10) -> tuple[dict[str, Counter[str]], list[str]]:
    """Decode windows of images of all samplings in turn.

    Returns:
        Sampling -> counts; what was wrong.
    """
    tables: dict[str, Counter[str]] = {name: Counter() for name in SAMPLINGS}
    wrong = []
    names = list(SAMPLINGS)
    for number in range(-(-count // per_image)):
        name = names[number % len(names)]
        rng = random.Random(f"{seed} {number}")
        image = Drawn(name, rng)
        for _ in range(min(per_image, count - number * per_image)):
            window = draw_window(image.height, image.width, rng)
            options = draw_options(image.height, image.width, rng)
            counts = tables[name]
            counts["crops"] += 1
            try:
                is_cut = image.check(window, options)
            except AssertionError:
                counts["wrong"] += 1
                wrong.append(
                    f"  {name}, image {number}: {image.height} x {image.width}, interval "
                    f"{image.interval}, {window}, {options}"
                )
                continue
            counts["cut out"] += is_cut
            counts["scaled"] += options["divisor"] > 1
            counts["edge"] += (
                window.top == 0
                or window.left == 0
                or window.top + window.height == image.height
                or window.left + window.width == image.width
            )
            counts["cut where it must not be"] += is_cut and not SAMPLINGS[name].is_cut
            if counts["cut where it must not be"]:
                wrong.append(f"  {name}, image {number}: cut, but must be decoded whole")
    return tables, wrong


# ---- damage --------------------------------------------------------------------------------------

_MARKER = re.compile(rb"\xff[\xd0-\xd9]")
WAYS = ("flip", "flips", "zeros", "removed", "inserted", "marker", "noise", "truncated")


class Target:
    """A photo-like JPEG, a window of it, and the bytes that the window uses.

    kind: plain, rows (an interval for each row) or tiles.
    """

    def __init__(self, kind: str, number: int, rng: random.Random) -> None:
        image = draw_flower(list(SPECIES)[number % len(SPECIES)], number)
        image.thumbnail((160 + number % 90, 160 + number % 70))
        options: dict[str, Any] = {
            "subsampling": (0, 2, 2)[number % 3],
            "quality": 60 + number % 35,
            "optimize": number % 8 >= 4,
        }
        is_grey = number % 5 == 4
        self.unit = 8 if is_grey or number % 3 == 0 else 16
        self.across = self.interval = -(-image.width // self.unit)
        if kind == "tiles":
            sizes = [size for size in range(1, self.across) if self.across % size == 0]
            self.interval = rng.choice(sizes)
        if kind != "plain":
            options["restart_marker_blocks"] = self.interval
        out = io.BytesIO()
        image.convert("L" if is_grey else "RGB").save(out, "JPEG", **options)
        self.kind = kind
        self.data = out.getvalue()
        self.head = read_image_head(self.data)
        self.scan = self.data.index(b"\xff\xda") + 2
        self.scan += int.from_bytes(self.data[self.scan : self.scan + 2], "big")
        self.end = self.data.index(b"\xff\xd9", self.scan)
        self.whole = decode_pixels(self.data, self.head)
        while True:
            tall, wide = (rng.randint(20, side // 2) for side in self.head[1:3])
            top, left = self.head.height - tall, self.head.width - wide
            self.window = Window(rng.randrange(top), rng.randrange(left), tall, wide)
            self.used = self._used()
            if sum(self.used) and not all(self.used[self.scan : self.end]):
                return

    def _used(self) -> Pixels:
        """Of each byte, whether the window uses it."""
        used = np.zeros(len(self.data), bool)
        part = find_part(self.data, self.head, self.window)
        if part.whole is None:
            return used
        if self.kind == "plain":
            low, high = self.scan, self.end  # the shortest file that has all of it
            while low < high:
                middle = (low + high) // 2
                short = find_part(self.data[:middle], self.head, self.window)
                is_enough = decode_cut(short.data, *short.head[1:]) is not None
                low, high = (low, middle) if is_enough else (middle + 1, high)
            used[self.scan : low] = True
            return used
        bottom, right = part.top + part.head.height, part.left + part.head.width
        rows = range(part.top // self.unit, -(-bottom // self.unit))
        columns = range(part.left // self.unit, -(-right // self.unit))
        intervals = {
            (row * self.across + column) // self.interval for row in rows for column in columns
        }
        at = self.scan
        for number, marker in enumerate(_MARKER.finditer(self.data, self.scan)):
            used[at : marker.start()] = number in intervals
            at = marker.end()
        return used

    def damage(self, is_inside: bool, way: str, rng: random.Random) -> bytes:
        """A copy that is damaged in what the window uses, or in what it does not."""
        places = np.flatnonzero(self.used[self.scan : self.end] == is_inside) + self.scan
        damaged = bytearray(self.data)
        at = int(rng.choice(places))
        same = self.used == is_inside
        same[: self.scan] = same[self.end :] = False
        length = min(rng.choice((1, 2, 8, 40)), int(np.argmin(same[at:])))
        if way in ("flip", "flips"):
            for place in [at] + [int(rng.choice(places)) for _ in range(9 * (way == "flips"))]:
                damaged[place] ^= 1 << rng.randrange(8)
        elif way == "zeros":
            damaged[at : at + length] = bytes(length)
        elif way == "noise":
            damaged[at : at + length] = rng.randbytes(length)
        elif way == "removed":
            del damaged[at : at + length]
        elif way == "inserted":
            damaged[at:at] = rng.randbytes(length)
        elif way == "marker":
            found = [m.start() for m in _MARKER.finditer(self.data, self.scan, self.end)]
            near = [place for place in found if self.used[place - 1] == is_inside]
            if near:
                damaged[rng.choice(near) + 1] = rng.choice((0x00, *range(0xC0, 0x100)))
            else:
                damaged[at : at + 2] = bytes((0xFF, rng.randrange(0xC0, 0x100)))
        else:
            del damaged[at:]
        return bytes(damaged)


@dataclass(frozen=True)
class Verdicts:
    """What decoding a damaged file gives: the whole of it, and the part that a window uses."""

    whole: Pixels | None
    part: Any
    is_cut: bool
    noticed_whole: bool
    noticed_part: bool
    noticed_by_verify: bool


def judge(data: bytes, window: Window) -> Verdicts:
    """Decode a file whole, and a part of it; None where it is refused."""
    notes: list[str] = []
    whole = part = None
    is_cut = noticed_part = False
    _, errors = check_example_images({"image/encoded": [data]}, ["image/encoded"])
    try:
        head = read_image_head(data)
        whole = decode_pixels(data, head, on_damage=notes.append)
    except CorruptDataError:
        pass
    try:
        head = read_image_head(data)
        file = find_part(data, head, window)
        is_cut = file.whole is not None
        if is_cut:
            noticed_part = decode_cut(file.data, *file.head[1:]) is None
        part = decode_part(data, head, window)
    except CorruptDataError:
        noticed_part = True
    return Verdicts(whole, part, is_cut, whole is None or bool(notes), noticed_part, bool(errors))


def explain(target: Target, verdicts: Verdicts, is_inside: bool) -> str:
    """How a part of a damaged file compares: "same", "intact", a known exception, or "WRONG"."""
    part, window = verdicts.part, target.window
    is_intact = part is not None and same_pixels(part, target.whole, window)
    if part is None or verdicts.whole is None:
        is_same = part is None and verdicts.whole is None
    else:
        is_same = same_pixels(part, verdicts.whole, window)
    if is_inside and is_same:
        return "same"
    if is_inside:  # a row of codes is used up to its last column
        return "intact: damaged behind the part, in its interval" if is_intact else "WRONG"
    if is_intact:
        return "intact"
    return "as the whole file, which cannot be cut" if is_same else "WRONG"


def damaged(count: int, seed: int) -> tuple[dict[tuple[str, str], Counter[str]], list[str]]:
    """Damage files within the part that a window uses, and elsewhere, in turn.

    Returns:
        (kind, place) -> counts; what was wrong.
    """
    tables: dict[tuple[str, str], Counter[str]] = {}
    wrong = []
    target = None
    for number in range(count):
        rng = random.Random(f"damage {seed} {number}")
        if number % 24 == 0 or target is None:
            target = Target(
                ("plain", "tiles", "rows", "tiles")[number // 24 % 4], number // 24, rng
            )
        is_inside = number % 2 == 0
        way = rng.choice(WAYS)
        data = target.damage(is_inside, way, rng)
        if data == target.data:
            continue
        verdicts = judge(data, target.window)
        outcome = explain(target, verdicts, is_inside)
        counts = tables.setdefault((target.kind, "inside" if is_inside else "outside"), Counter())
        counts["files"] += 1
        counts["whole"] += verdicts.noticed_whole
        counts["refused"] += verdicts.whole is None
        counts["part"] += verdicts.noticed_part or not verdicts.is_cut
        counts["verify"] += verdicts.noticed_by_verify
        counts[outcome] += 1
        if outcome == "WRONG":
            wrong.append(f"  damaged file {number}: {target.kind}, {is_inside=}, {way}")
    return tables, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000, help="crops; a fifth as many damaged")
    options = parser.parse_args()
    by_sampling, wrong = crops(options.count, options.seed)
    print(f"{'sampling':26} crops  cut out  scaled  at an edge  wrong")
    total: Counter[str] = Counter()
    for name, counts in [*by_sampling.items(), ("all", total)]:
        total.update(counts if counts is not total else {})
        print(
            f"{name:26} {counts['crops']:5}  {counts['cut out']:7}  {counts['scaled']:6}  "
            f"{counts['edge']:10}  {counts['wrong']:5}"
        )
    by_place, more = damaged(options.count // 5, options.seed)
    wrong += more
    print("\ndamaged          files  noticed in whole  refused  noticed in part  by verify --deep")
    for (kind, place), counts in sorted(by_place.items()):
        print(
            f"{kind:7} {place:8} {counts['files']:5}  {counts['whole']:16}  {counts['refused']:7}"
            f"  {counts['part']:15}  {counts['verify']:16}"
        )
        known = {"files", "whole", "refused", "part", "verify"}
        for outcome in sorted(set(counts) - known):
            print(f"    {counts[outcome]:5} {outcome}")
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    if wrong:
        print(f"{len(wrong)} wrong; seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
