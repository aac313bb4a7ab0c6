"""Compare `detect` with listing the same folder: `python benchmarks/detecting.py 1000000`.

The files are empty. Prints CPU seconds, the median of some rounds, and the peak memory of `detect`.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import recordsmith as rs
from recordsmith.sources.files.account import Account
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.stores import as_folder

LAYOUTS = {
    "class folders": [f"class{number:03d}" for number in range(1000)],
    "two folders of pairs": ["images", "masks"],
    "one folder": ["all"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.count:,} files    listing    detect    detect/listing    peak memory")
    for name, folders in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as place:
            root = Path(place) / "data"
            each = options.count // len(folders)
            for folder in folders:
                (root / folder).mkdir(parents=True)
                for number in range(each):
                    (root / folder / f"image_{number:07d}.png").touch()
            listing, detecting = [], []
            for _ in range(options.rounds):
                listing.append(_seconds(functools.partial(_list, root)))
                detecting.append(_seconds(functools.partial(rs.detect, root)))
            tracemalloc.start()
            rs.detect(root)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            one, other = statistics.median(listing), statistics.median(detecting)
            print(
                f"{name:20} {one:8.2f} s {other:7.2f} s {other / one:12.2f} {peak / 1e6:12.0f} MB"
            )


def _list(root: Path) -> None:
    tree = FileTree(as_folder(root))
    for _ in tree.walk(tree.root, Account()):
        pass


def _seconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


if __name__ == "__main__":
    main()
