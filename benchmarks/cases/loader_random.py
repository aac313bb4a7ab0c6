"""Small records read here and there: what a shuffled epoch asks of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs


def _task(inputs: Inputs, read: Callable[[list[int]], Any], size: Callable[[Any], int]) -> Task:
    """Read records at random positions; `size` of what was read, in bytes."""
    import numpy as np

    positions = np.random.default_rng(6).integers(0, inputs.small_count, inputs.random_count)
    chosen = positions.tolist()
    return Task(lambda: read(chosen), len(chosen), digest=size)


def _recordsmith(inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    assert len(dataset) == inputs.small_count  # the index is there, as the offset table is
    return _task(inputs, dataset.read_records, lambda records: len(records.buffer))


def _one_by_one(inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    assert len(dataset) == inputs.small_count

    def read(positions: list[int]) -> list[bytes]:
        return [dataset.read_records([position])[0] for position in positions]

    return _task(inputs, read, _total)


def _pread(inputs: Inputs, *, with_checksums: bool) -> Task:
    from by_hand import FRAME_BYTES, HEADER_BYTES, find_checksum, frame_places, payload_of

    path = inputs.path("small.tfrecord")
    places = [(size - FRAME_BYTES, at + HEADER_BYTES) for at, size in frame_places(path)]
    file = os.open(path, os.O_RDONLY)

    def read(positions: list[int]) -> list[bytes]:
        return [os.pread(file, *places[position]) for position in positions]

    if not with_checksums:
        return _task(inputs, read, _total)
    frames = frame_places(path)
    checksum = find_checksum()

    def read_checked(positions: list[int]) -> list[bytes]:
        payloads = []
        for position in positions:
            at, size = frames[position]
            payloads.append(payload_of(os.pread(file, size, at), checksum))
        return payloads

    return _task(inputs, read_checked, _total)


def _array_record(inputs: Inputs) -> Task:
    from array_record.python.array_record_module import ArrayRecordReader

    inputs.make("small.arrayrecord")
    # no reading ahead is what its documentation advises for random access
    path = inputs.path("small.arrayrecord")
    reader = ArrayRecordReader(str(path), "readahead_buffer_size:0")
    return _task(inputs, reader.read, _total)


def _total(payloads: Iterable[bytes]) -> int:
    return sum(map(len, payloads))


CASE = Case(
    name="loader-random",
    title="Random reads",
    what=(
        "Small records at random positions, with one call where there is a call for many. "
        "recordsmith checks both checksums of each; ArrayRecord those of its own format."
    ),
    unit="record",
    peers=(
        Peer(OURS, _recordsmith),
        Peer(
            "`os.pread` from a table of offsets", partial(_pread, with_checksums=False), at_most=1
        ),
        Peer("`os.pread`, both checksums", partial(_pread, with_checksums=True), at_most=1),
        Peer("array_record, many at once", _array_record, at_most=1 / 4),
        Peer("recordsmith, one by one", _one_by_one),
    ),
    inputs=("small.tfrecord",),
)
