"""Where the time of packing goes: the steps that `pack` takes, in one thread, each timed apart.

    python benchmarks/stages.py                     all that there are
    python benchmarks/stages.py boxes tables-csv    some of them
    python benchmarks/stages.py boxes --functions   and the functions that take longest, by cProfile

CPU microseconds for each sample, the least of some runs. What is in no step, making files and
folders and waiting for the disk, is in the last row. cProfile makes calls of Python cost more than
they do, so its figures show the order, not the size.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from case import Settings
from inputs import Inputs
from measure import make_inputs

_AT_ONCE = 16  # samples that go through one step before the next: few, as in packing
_ROOTS = {
    "images": "photographs",
    "pairs": "pairs",
    "boxes": "voc",
    "coco": "coco",
    "coco-keypoints": "coco-keypoints",
    "yolo": "yolo",
    "tables-csv": "table.csv",
    "tables-parquet": "table.parquet",
}


def _source(name: str, root: Path) -> Any:
    import recordsmith as rs

    kinds = {
        "images": rs.ImageFiles,
        "pairs": rs.ImagePairs,
        "boxes": rs.Voc,
        "coco": rs.Coco,
        "coco-keypoints": rs.Coco,
        "yolo": rs.Yolo,
    }
    return kinds.get(name, rs.Table)(root)


class Steps:
    """CPU seconds of each step, in the order of their first use."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0) + time.process_time() - start


def pack_in_steps(source: Any, out: Path) -> tuple[Steps, int]:
    """What `pack` does, step by step, into one shard."""
    from recordsmith.dataset import ShardWriter
    from recordsmith.sources import ignore_note
    from recordsmith.writing.building.shards import survey_written
    from recordsmith.writing.packing.pack_options import PackOptions, SampleEncoder
    from recordsmith.writing.packing.shard_assignment import assign_shards

    steps = Steps()
    options = PackOptions(shards=1)
    with steps.step("listing"):
        listing = source.list_samples()
    with steps.step("planning: shuffle, fingerprint"):
        plan = assign_shards(listing, options, source.describe())
    encoder = SampleEncoder(options, listing.reader.kinds())
    numbers = plan.numbers(plan.shards[0]).tolist()
    with ShardWriter(out) as writer:
        for start in range(0, len(numbers), _AT_ONCE):
            with steps.step("samples of the listing"):
                samples = [listing.samples[n] for n in numbers[start : start + _AT_ONCE]]
            with steps.step("reading and checking samples"):
                contents = [listing.reader.read(sample, ignore_note) for sample in samples]
            with steps.step("encoding"):
                payloads = [encoder.payload(content, ignore_note) for content in contents]
            with steps.step("writing"):
                for payload in payloads:
                    writer.write(payload)
        with steps.step("writing"):
            writer.seal()
        with steps.step("reading back, counting features"):
            survey_written(writer)
    return steps, len(numbers)


def pack_whole(source: Any, out: Path) -> float:
    """CPU seconds of `pack` itself."""
    import recordsmith as rs

    start = time.process_time()
    rs.pack(source, out, shards=1, threads=1)
    return time.process_time() - start


def least(run: Callable[[], tuple[Steps, int]], rounds: int) -> tuple[dict[str, float], int]:
    """The least that each step took."""
    seconds: dict[str, float] = {}
    count = 0
    for _ in range(rounds):
        steps, count = run()
        for name, taken in steps.seconds.items():
            seconds[name] = min(taken, seconds.get(name, taken))
    return seconds, count


def main() -> None:
    arguments = _parse()
    settings = Settings(arguments.data, arguments.quick, arguments.repeat)
    inputs = Inputs(settings.folder, quick=settings.quick)
    for name in arguments.names or _ROOTS:
        make_inputs(settings, (_ROOTS[name],))
        root = inputs.path(_ROOTS[name])
        out = inputs.out("stages")

        def fresh(out: Path = out) -> Path:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            return out

        def run(name: str = name, root: Path = root, fresh: Any = fresh) -> tuple[Steps, int]:
            return pack_in_steps(_source(name, root), fresh() / "train.tfrecord")

        seconds, count = least(run, settings.repeat)
        whole = min(pack_whole(_source(name, root), fresh()) for _ in range(settings.repeat))
        seconds["the rest of `pack`"] = whole - sum(seconds.values())
        print(f"### {name}\n\n{count:,} samples, {whole / count * 1e6:.1f} µs each.\n")
        print("| step | CPU µs a sample | share |\n| --- | ---: | ---: |")
        for step, taken in seconds.items():
            print(f"| {step} | {taken / count * 1e6:.1f} | {taken / whole:.0%} |")
        print(flush=True)
        if arguments.functions:
            profile = cProfile.Profile()
            profile.runcall(run)
            pstats.Stats(profile).sort_stats("tottime").print_stats(20)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Where the time of packing goes.")
    names = ", ".join(_ROOTS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {names}")
    parser.add_argument("--functions", action="store_true", help="profile each run as well")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs [default: 3]")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        default=Path(tempfile.gettempdir()) / "recordsmith-benchmarks",
        help="where inputs are kept",
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in _ROOTS:
            parser.error(f"there is no {name!r}; there are {names}")
    return arguments


if __name__ == "__main__":
    main()
