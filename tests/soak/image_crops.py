"""Crops of JPEGs: do parts that are cut out have the pixels of the whole image?

Draws JPEGs of every sampling, with restart markers at every distance, and decodes windows of them
with `decode_part` and whole. All pixels must be equal. Prints a table.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from shared import option_parser  # first: it makes `tests` a package
from tests.images import encode, noise, sampled_jpeg, segment

from recordsmith.image import Window, decode_part, decode_pixels, find_part, read_image_header

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
        self.head = read_image_header(self.data)
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


def main() -> int:
    options = option_parser(__doc__, 10_000, "crops").parse_args()
    by_sampling, wrong = crops(options.count, options.seed)
    print(f"{'sampling':26} crops  cut out  scaled  at an edge  wrong")
    total: Counter[str] = Counter()
    for name, counts in [*by_sampling.items(), ("all", total)]:
        total.update(counts if counts is not total else {})
        print(
            f"{name:26} {counts['crops']:5}  {counts['cut out']:7}  {counts['scaled']:6}  "
            f"{counts['edge']:10}  {counts['wrong']:5}"
        )
    print(*wrong[:20], sep="\n", end="\n" if wrong else "")
    if wrong:
        print(f"{len(wrong)} wrong; seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
