"""`export --overwrite` killed at random moments and run again: nothing is lost, nothing is left.

Half of the kills come at a random time, half before a random change of the file system.

    python tests/soak/killed_exports.py --count 300
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from shared import (
    exit_code,
    fork,
    option_parser,
    print_outcomes,
)  # first: it makes `tests` a package
from tests.killed_jobs import killed_before

import recordsmith as rs

FORMATS = ("csv", "parquet", "webdataset")
BEGUN = ".export.begun.json"  # until the last change of all: what is next to it is complete


def kills(count: int, seed: int, root: Path) -> Counter[str]:
    """What was found after each of `count` kills; the export was run again after most of them."""
    with rs.ShardWriter(root / "records.tfrecord") as writer:
        for number in range(40):
            writer.write_example({"id": number, "image/encoded": bytes(1000)})
    wanted, seconds = {}, 9.0
    for name in FORMATS:
        for _ in range(3):
            started = time.monotonic()
            exit_code(_export(root, root / name, name))
            seconds = min(seconds, time.monotonic() - started)
        wanted[name] = _files(root / name)
    moments = random.Random(seed)
    found: Counter[str] = Counter()
    out, there = root / "out", ""
    for _ in range(count):
        if not there:
            shutil.rmtree(out, ignore_errors=True)
            there = moments.choice(FORMATS)
            exit_code(_export(root, out, there))
            (out / "mine.txt").write_text("of somebody else")
        name = moments.choice(FORMATS)
        if moments.random() < 0.5:
            child = _export(root, out, name)
            time.sleep(moments.random() * seconds * 1.2)
            os.kill(child, signal.SIGKILL)
            exit_code(child)
        else:
            steps = moments.randrange(1, 60)
            killed_before(steps, lambda name=name: _run(root, out, name))
        everything = {path.read_bytes() for path in out.rglob("*") if path.is_file()}
        now = _files(out)
        if now == wanted[name]:
            found["complete"], there = found["complete"] + 1, name
        elif not everything.issuperset(wanted[there].values()):
            found["WRONG: lost"] += 1
        else:
            found["as it was" if now == wanted[there] else "between"] += 1
        if moments.random() < 0.7:  # else it is killed once more
            there = moments.choice(FORMATS)
            is_done = exit_code(_export(root, out, there)) == 0
            left = [path.name for name in (".*.partial", BEGUN) for path in root.glob(f"**/{name}")]
            if not is_done or _files(out) != wanted[there] or left:
                found[f"WRONG: run again: {is_done}, left over: {left}"] += 1
                there = ""
            elif (out / "mine.txt").read_text() != "of somebody else":
                found["WRONG: another file"] += 1
    return found


def _run(root: Path, out: Path, name: str) -> None:
    rs.export(root / "records.tfrecord", out, name, overwrite=True)


def _export(root: Path, out: Path, name: str) -> int:
    return fork(partial(_run, root, out, name))


def _files(out: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in out.iterdir()
        if path.is_file() and path.name not in ("mine.txt", ".export.json", BEGUN)
    }


def main() -> int:
    options = option_parser(__doc__, 300, "kills").parse_args()
    with tempfile.TemporaryDirectory() as root:
        outcomes = kills(options.count, options.seed, Path(root))
    return print_outcomes(outcomes, options.seed, "nothing was lost or left over")


if __name__ == "__main__":
    sys.exit(main())
