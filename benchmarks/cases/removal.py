"""Removing 100 records from 1,000 shards in place, next to writing all shards without them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_REMOVED = 100


def _prepare(*, in_place: bool) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import recordsmith as rs

        path, out = inputs.path("remote/1000-shards"), inputs.out("without")
        count = len(rs.open(path))
        positions = [number * (count // _REMOVED) for number in range(_REMOVED)]

        def before() -> None:
            shutil.rmtree(out, ignore_errors=True)
            if in_place:  # shards are replaced, not changed: other names of a file stay as they are
                shutil.copytree(path, out, copy_function=os.link)

        def run() -> Any:
            if in_place:
                return rs.edit_in_place(out, without=positions)
            return rs.reshard(path, out, without=positions, shards=1000)

        return Task(run, _REMOVED, before, lambda report: report.record_count)

    return prepare


CASES = (
    Case(
        name="remove-records",
        title="Remove records",
        what=f"{_REMOVED} records, evenly spread, removed from 1,000 shards.",
        unit="removed record",
        peers=(
            Peer(OURS, _prepare(in_place=True)),
            Peer("`rs.reshard`, all shards", _prepare(in_place=False)),
        ),
        inputs=("remote/1000-shards",),
        on_wall_too=True,
    ),
)
