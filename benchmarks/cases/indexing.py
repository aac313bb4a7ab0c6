"""The index of a foreign gigabyte of small records, next to reading its file.

The index says where each record begins: the lengths are spread over the file, so all of it is read.
Reading it, and nothing else, is what that can be held against.
"""

from __future__ import annotations

import shutil

from case import OURS, Case, Peer, Task
from cases.reshard import SMALL
from cases.whole_file import file_of, reading
from inputs import Inputs


def _indexing(inputs: Inputs) -> Task:
    from recordsmith import index

    path = file_of(inputs, SMALL)
    return Task(
        lambda: index(path),
        inputs.record_counts["small-packed"],
        before=lambda: shutil.rmtree(path.parent / ".recordsmith", ignore_errors=True),
        digest=lambda report: report.record_count,
    )


CASES = (
    Case(
        name="index-small",
        title="Index small records",
        what="Where each record of a gigabyte of about 200 bytes each begins, kept in a file.",
        unit="record",
        peers=(Peer(OURS, _indexing), Peer("reading the file", reading(SMALL), at_most=2)),
        inputs=(SMALL,),
        on_wall_too=True,
    ),
)
