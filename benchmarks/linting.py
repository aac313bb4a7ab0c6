"""What `lint` costs, in CPU seconds: next to `verify --deep`, next to `pack`, and the search alone.

    python benchmarks/linting.py            # 2,000 images, 7 rounds: about two minutes
    python benchmarks/linting.py --count 500 --rounds 3

Variants alternate, so that other work of the machine affects all of them. Prints medians.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import recordsmith as rs
from clock import cpu_seconds
from drawing import Painter
from recordsmith.checking import lint_listing
from recordsmith.checking.linting.similar_images import SHAPE_BYTES, Shapes, find_similar
from recordsmith.sources import Listing, Source
from recordsmith.support.work import WorkerPool

CLASSES = 10
SIZES = ((320, 240), (500, 375))
THREADS = 2


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000, help="images of each size")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print("| images | lint | verify --deep | lint / verify | before pack | pack | share of pack |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            work = Path(folder) / str(size[0])
            print(_of_images(_draw(work / "images", size, given.count), work, given.rounds, size))
    print()
    print("| shapes | CPU seconds of the search |")
    print("| --- | --- |")
    for count in (100_000, 1_000_000):
        for name, shapes in _shapes(count):
            splits = np.arange(count) % 2
            spent = _seconds(lambda: find_similar(shapes, splits))  # noqa: B023 - called at once
            print(f"| {count:,} {name} | {spent:.1f} |")


def _draw(folder: Path, size: tuple[int, int], count: int) -> Path:
    painter = Painter(1, *size)
    for number in range(count):
        path = folder / f"class {number % CLASSES}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(painter.draw())
    return folder


def _of_images(images: Path, work: Path, rounds: int, size: tuple[int, int]) -> str:
    source = rs.ImageFolder(images)
    packed = work / "packed"
    count = rs.pack(source, packed).sample_count
    again = work / "again"
    variants: dict[str, Callable[[], object]] = {
        "lint": lambda: rs.lint(source, threads=THREADS),
        "verify": lambda: rs.verify(packed, deep=True, threads=THREADS),
        "pack": lambda: rs.pack(source, again, threads=THREADS),
    }
    seconds: dict[str, list[float]] = {name: [] for name in (*variants, "before")}
    for number in range(rounds + 1):
        for name, run in variants.items():
            shutil.rmtree(again, ignore_errors=True)
            spent = _seconds(run)
            if number:  # the first round warms up
                seconds[name].append(spent)
        if number:
            seconds["before"].append(_before_packing(source))
    lint, verify, pack, before = (
        statistics.median(seconds[name]) for name in ("lint", "verify", "pack", "before")
    )
    return (
        f"| {count:,} of {size[0]} x {size[1]} | {lint:.2f} s | {verify:.2f} s | "
        f"{lint / verify:.2f} | {before * 1000:.1f} ms | {pack:.2f} s | {before / pack:.1%} |"
    )


def _before_packing(source: Source) -> float:
    """The seconds of the checks that `pack` runs first, on a listing that it needs anyway."""
    listing = source.list_samples()
    len(listing.samples)
    checks = 20  # reading the clock takes longer than one
    return _seconds(lambda: [_check(listing) for _ in range(checks)]) / checks


def _check(listing: Listing) -> object:
    return lint_listing(listing, WorkerPool(1, None), deep=False)


def _shapes(count: int) -> Iterator[tuple[str, Shapes]]:
    rng = np.random.default_rng(1)
    yield "random", rng.integers(-30, 31, (count, SHAPE_BYTES), np.int8)
    yield (
        "of 1,000 kinds",
        rng.integers(-30, 31, (1000, SHAPE_BYTES), np.int8)[np.arange(count) % 1000],
    )
    yield "equal", np.full((count, SHAPE_BYTES), 16, np.int8)


def _seconds(run: Callable[[], object]) -> float:
    start = cpu_seconds()
    run()
    return cpu_seconds() - start


if __name__ == "__main__":
    main()
