"""A dataset of a gigabyte into seven shards, next to copying its file.

Copying is the least that can be done: no checksum is looked at, no record is known. Both write
through to the disk. The dataset has a manifest, which has its schema; a file without one
is read for that, which is measured as well.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from case import OURS, Case, Peer, Task
from cases.whole_file import copying, file_of
from inputs import LARGE_BYTES, Inputs

SMALL, LARGE = "small-packed", "large-packed"
_SHARDS = 7


def resharding(name: str, *, is_foreign: bool = False, **options: Any) -> Callable[[Inputs], Task]:
    """Into seven shards, unless the options say otherwise."""

    def prepare(inputs: Inputs) -> Task:
        from recordsmith import reshard

        path = file_of(inputs, name) if is_foreign else inputs.path(name)
        out = inputs.out("resharded")
        wanted = {"shards": _SHARDS, **options}
        return Task(
            lambda: reshard(path, out, **wanted),
            inputs.record_counts[name],
            before=lambda: shutil.rmtree(out, ignore_errors=True),
            digest=lambda report: report.bytes_out,
        )

    return prepare


def _case(name: str, title: str, what: str, folder: str) -> Case:
    return Case(
        name=name,
        title=title,
        what=f"A gigabyte of records of {what} into {_SHARDS} shards, synced.",
        unit="record",
        peers=(
            Peer(OURS, resharding(folder)),
            Peer("`shutil.copyfile`, `fsync`", copying(folder), at_most=2),
            Peer(
                "recordsmith, a file without a manifest",
                resharding(folder, is_foreign=True),
            ),
            Peer("recordsmith, shuffled", resharding(folder, shuffle=True)),
        ),
        inputs=(folder,),
        on_wall_too=True,
    )


CASES = (
    _case("reshard-small", "Reshard small records", "about 200 bytes", SMALL),
    _case("reshard-large", "Reshard large records", f"about {LARGE_BYTES // 1000} kB", LARGE),
)
