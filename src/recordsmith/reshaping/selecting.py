"""A condition is asked of all records of an input: what it keeps is a bit for each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recordsmith.errors import located
from recordsmith.reshaping.choosing import Kept
from recordsmith.reshaping.contract import Selection
from recordsmith.reshaping.records import Records
from recordsmith.wire import FRAME_BYTES


def select(records: Records, number: int, where: Selection, advance: Callable[[int], None]) -> Kept:
    """What `where` keeps of input `number`.

    Args:
        advance: told how many more bytes are read.

    Raises:
        CorruptDataError: a record is damaged, or cannot be understood.
    """
    chosen = []
    size_bytes = 0
    if records.counts[number]:
        with located(records.path(number)):
            for block in records.shard(number).blocks():
                flags = np.asarray(where.chosen(block), np.bool_)
                chosen.append(flags)
                size_bytes += int((block.lengths[flags] + FRAME_BYTES).sum())
                advance(len(block.frames()))
    return Kept(chosen, size_bytes)
