"""Every whole record of a damaged file written into a new dataset.

No other tool does it. It is compared with reading the file, undamaged, with every checksum, and
with copying it: rescuing does both, and surveys what the records hold.
"""

from __future__ import annotations

import shutil
from typing import Any

from case import OURS, Case, Peer, Task
from cases.whole_file import copying, file_of
from inputs import LARGE_BYTES, Inputs


def salvaging(size: str) -> Any:
    """The damaged file of small or large records."""

    def prepare(inputs: Inputs) -> Task:
        from recordsmith import salvage

        name, out = f"{size}-damaged.tfrecord", inputs.out("salvaged")
        path, count = inputs.path(name), inputs.record_counts[name]

        def run() -> None:
            report = salvage(path, out)
            assert report.shards[0].lost_count >= 100
            assert report.record_count > 0.5 * count

        return Task(run, count, before=lambda: shutil.rmtree(out, ignore_errors=True))

    return prepare


def _verify(size: str) -> Any:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith import verify

        name = f"{size}-packed"
        path = file_of(inputs, name)

        def run() -> None:
            assert verify(path).is_good

        return Task(run, inputs.record_counts[name])

    return prepare


def _case(size: str, of_what: str) -> Case:
    return Case(
        name=f"salvage-{size}",
        title=f"Salvage {size} records",
        what=(
            f"Whole records of {of_what} in a file with a hundred damages of each of three kinds, "
            "written, synced and surveyed, next to `verify` of them undamaged, and a copy."
        ),
        unit="record",
        peers=(
            Peer(OURS, salvaging(size)),
            Peer("recordsmith `verify`", _verify(size), at_most=3),
            Peer("`shutil.copyfile`, `fsync`", copying(f"{size}-packed")),
        ),
        inputs=(f"{size}-packed", f"{size}-damaged.tfrecord"),
        on_wall_too=True,
    )


CASES = (
    _case("small", "about 200 bytes"),
    _case("large", f"about {LARGE_BYTES // 1000} kB"),
)
