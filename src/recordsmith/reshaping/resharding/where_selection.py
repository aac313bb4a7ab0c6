"""Selection of records of an input by a condition, by number, or by both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from recordsmith.errors import located
from recordsmith.reshaping.changes import Selection
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.resharding.record_selection import KeptRecords
from recordsmith.wire import FRAME_BYTES


def select(
    records: InputRecords,
    number: int,
    where: Selection | None,
    selected: npt.NDArray[np.bool_] | None,
    advance: Callable[[int], None],
) -> KeptRecords:
    """Return the selected records of input `number` that match `where`.

    Args:
        records: of all inputs.
        number: of the input.
        where: the condition; None: none.
        selected: whether each record is selected; None: all.
        advance: called with the number of bytes read since the last call.

    Raises:
        CorruptDataError: a record is damaged or cannot be parsed.
    """
    if where is None:
        assert selected is not None
        numbers = np.flatnonzero(selected)
        sizes = records.shard(number).sizes(numbers) if len(numbers) else numbers
        return KeptRecords([selected], int(sizes.sum()) + FRAME_BYTES * len(numbers))
    chosen = []
    size_bytes = 0
    if records.counts[number]:
        with located(records.path(number)):
            for block in records.shard(number).blocks():
                flags = np.asarray(where.chosen(block), np.bool_)
                if selected is not None:
                    flags = flags & selected[block.position : block.position + len(block)]
                chosen.append(flags)
                size_bytes += int((block.lengths[flags] + FRAME_BYTES).sum())
                advance(len(block.frames()))
    return KeptRecords(chosen, size_bytes)
