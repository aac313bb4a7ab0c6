"""The index of a foreign gigabyte of small records, beside reading its file.

The index says where each record begins: the lengths lie all over the file, so every page of it is
touched. Reading it in blocks of a mebibyte, and nothing else, is what that can be held against.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from case import OURS, Case, Peer, Task
from cases.reshard import SMALL
from inputs import Inputs


def _indexing(inputs: Inputs) -> Task:
    from recordsmith import index

    path = _file(inputs)
    return Task(
        lambda: index(path),
        inputs.record_counts["small-packed"],
        before=lambda: shutil.rmtree(path.parent / ".recordsmith", ignore_errors=True),
        digest=lambda report: report.record_count,
    )


def _reading(inputs: Inputs) -> Task:
    path = _file(inputs)
    buffer = bytearray(1 << 20)

    def run() -> int:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        return inputs.record_counts["small-packed"]

    return Task(run, inputs.record_counts["small-packed"], digest=int)


def _file(inputs: Inputs) -> Path:
    (path,) = inputs.path(SMALL).glob("*.tfrecord")
    return path


CASES = (
    Case(
        name="index-small",
        title="Index small records",
        what="Where each record of a gigabyte of about 200 bytes each begins, kept in a file.",
        unit="record",
        peers=(Peer(OURS, _indexing), Peer("reading the file", _reading, at_most=2)),
        inputs=(SMALL,),
        on_wall_too=True,
    ),
)
