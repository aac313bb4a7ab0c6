"""Pairs of jobs that start in one new folder at the same moment: one of them always makes it.

python tests/soak/simultaneous_packs.py --count 500
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image
from shared import exit_code, fork, option_parser, print_outcomes

import recordsmith as rs

RECORDS = 3


def pairs(count: int, seed: int, root: Path) -> Counter[str]:
    """How each of `count` pairs of packs ended, and of a fifth as many of each other job."""
    source = root / "source"
    (source / "a").mkdir(parents=True)
    for number in range(RECORDS):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(source / "a" / f"{number}.png")
    rs.pack(rs.ImageFolder(source), root / "dataset", shards=2)
    jobs: dict[str, Callable[[Path], Any]] = {
        "pack": lambda out: rs.pack(rs.ImageFolder(source), out, shards=2, threads=1),
        "reshard": lambda out: rs.reshard(root / "dataset", out, shards=2, threads=1),
        "export": lambda out: rs.export(root / "dataset", out, "csv"),
    }
    moments = random.Random(seed)
    ends: Counter[str] = Counter()
    names = ["pack"] * count + ["reshard", "export"] * (count // 5)
    for number, name in enumerate(names):
        out = root / "new" / f"{number}"
        start = time.monotonic() + 0.002
        delays = [0.0, moments.choice([0.0, moments.random() * 0.01])]
        children = [fork(partial(_run, jobs[name], out, start + delay)) for delay in delays]
        codes = sorted(map(exit_code, children))
        ends[f"{name}: {_judged(name, out, codes)}"] += 1
        shutil.rmtree(root / "new", ignore_errors=True)
    return ends


def _run(job: Callable[[Path], Any], out: Path, start: float) -> int:
    while time.monotonic() < start:
        pass
    try:
        job(out)
    except rs.FileAccessError as error:
        return 3 if "another process is writing" in str(error) else 8
    except rs.OptionError as error:  # the other one was done before this one looked
        return 2 if "is not empty" in str(error) else 7
    return 0


def _judged(name: str, out: Path, codes: list[int]) -> str:
    what = {0: "done", 2: "too late", 3: "refused"}
    if codes[0] != 0 or not set(codes) <= {*what}:
        return f"WRONG: exit codes {codes}"
    if name == "export":
        is_whole = sum(1 for path in out.glob("*.csv")) == 1
        left = [path.name for path in out.glob(".*.partial")]
    else:
        is_whole = rs.verify(out).is_good and len(rs.open(out)) == RECORDS
        left = [
            path.name
            for path in (out / ".recordsmith").iterdir()
            if path.suffix not in (".index", ".columns")
        ]
    left += [path.name for path in out.parent.glob(".*")]
    if not is_whole or left:
        return f"WRONG: complete: {is_whole}, left over: {left}"
    return f"{what[codes[0]]}, {what[codes[1]]}"


def main() -> int:
    options = option_parser(__doc__, 500, "pairs").parse_args()
    with tempfile.TemporaryDirectory() as root:
        ends = pairs(options.count, options.seed, Path(root))
    return print_outcomes(ends, options.seed, "one of each pair was done")


if __name__ == "__main__":
    sys.exit(main())
