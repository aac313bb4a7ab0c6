"""A dataset of a gigabyte into seven shards, beside copying its file.

Copying is the least that can be done: no checksum is looked at, no record is known. Both write
through to the disk. The dataset has a manifest, which tells its schema; a file that nothing is
known of is read for that, which is measured beside.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Settings, Table, Task
from inputs import LARGE_BYTES, Inputs
from measure import Worker, make_inputs, say

_SMALL, _LARGE = "small-packed", "large-packed"
_SHARDS = 7


def _resharding(name: str, *, is_foreign: bool = False, **options: Any) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith import reshard

        path = _file(inputs, name) if is_foreign else inputs.path(name)
        out = inputs.out("resharded")
        wanted = {"shards": _SHARDS, **options}
        return Task(
            lambda: reshard(path, out, **wanted),
            _count(inputs, name),
            before=lambda: shutil.rmtree(out, ignore_errors=True),
            digest=lambda report: report.bytes_out,
        )

    return prepare


def _copying(name: str) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        source, out = _file(inputs, name), inputs.out("copied")

        def run() -> int:
            shutil.copyfile(source, out)
            with open(out, "rb+") as file:
                os.fsync(file.fileno())
            return out.stat().st_size

        return Task(
            run, _count(inputs, name), before=lambda: out.unlink(missing_ok=True), digest=int
        )

    return prepare


def _file(inputs: Inputs, name: str) -> Path:
    """The one shard of a dataset."""
    (path,) = inputs.path(name).glob("*.tfrecord")
    return path


def _count(inputs: Inputs, name: str) -> int:
    return inputs.packed_small_count if name == _SMALL else inputs.packed_large_count


def _case(name: str, title: str, what: str, folder: str) -> Case:
    return Case(
        name=name,
        title=title,
        what=f"A gigabyte of records of {what} into {_SHARDS} shards, synced.",
        unit="record",
        peers=(
            Peer(OURS, _resharding(folder)),
            Peer("`shutil.copyfile`, `fsync`", _copying(folder), at_most=2),
            Peer(
                "recordsmith, a file without a manifest",
                _resharding(folder, is_foreign=True),
            ),
            Peer("recordsmith, shuffled", _resharding(folder, shuffle=True)),
        ),
        inputs=(folder,),
        on_wall_too=True,
    )


CASES = (
    _case("reshard-small", "Reshard small records", "about 200 bytes", _SMALL),
    _case("reshard-large", "Reshard large records", f"about {LARGE_BYTES // 1000} kB", _LARGE),
)

_ACTIONS: dict[str, dict[str, Any]] = {
    "`reshard`, in order": {},
    "`reshard`, a sample of 10%": {"sample": 0.1},
    "`reshard`, shuffled": {"shuffle": True},
}
_SIZES = {"of 200 bytes": _SMALL, f"of {LARGE_BYTES // 1000} kB": _LARGE}

MEMORY = Case(
    name="reshard-memory",
    title="Peak memory of resharding a gigabyte",
    what=(
        "MiB above what is resident after the imports, of one process for each figure. Indexes "
        "take 8 bytes a record: of the file at hand, of all files when they are shuffled; small "
        "records that are read here and there are mapped, up to 256 MiB."
    ),
    unit="record",
    peers=tuple(
        Peer(f"{action}, {size}", _resharding(folder, **options))
        for action, options in _ACTIONS.items()
        for size, folder in _SIZES.items()
    ),
    inputs=(_SMALL, _LARGE),
)


def report(settings: Settings) -> Table:
    """One fresh process for each figure and round: what was freed is not all given back."""
    say(MEMORY.name)
    make_inputs(settings, MEMORY.inputs)
    peaks: dict[str, list[int]] = {}
    for number in range(settings.repeat):
        say(f"  round {number + 1} of {settings.repeat}")
        for peer in MEMORY.peers:
            worker = Worker(settings, MEMORY, peer)
            worker.run()
            worker.close()
            peaks.setdefault(peer.name, []).append(worker.runs[0]["memory"])
    rows = tuple(
        (
            action,
            *(
                f"{statistics.median(peaks[f'{action}, {size}']) / (1 << 20):.1f}"
                for size in _SIZES
            ),
        )
        for action in _ACTIONS
    )
    data = [{"action": name, "peak_bytes": peak} for name, peak in peaks.items()]
    header = ("", *(f"records {size}, MiB" for size in _SIZES))
    return Table(MEMORY.name, MEMORY.title, MEMORY.what, header, rows, data={"rows": data})
