"""Evaluation of a condition for all records of an input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from recordsmith.errors import located
from recordsmith.reshaping.changes import Selection
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.resharding.record_selection import SelectedRecords
from recordsmith.wire import FRAME_BYTES


def select(
    records: InputRecords, number: int, where: Selection, advance: Callable[[int], None]
) -> SelectedRecords:
    """Return the records of input `number` that match `where`.

    Args:
        records: of all inputs.
        number: of the input.
        where: the condition.
        advance: called with the number of bytes read since the last call.

    Raises:
        CorruptDataError: a record is damaged or cannot be parsed.
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
    return SelectedRecords(chosen, size_bytes)
