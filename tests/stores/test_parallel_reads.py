"""Reading over a network: which requests are made, and that they return the right bytes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.stores import Range
from recordsmith.stores.parallel_reads import (
    _AHEAD_BYTES,
    GAP_BYTES,
    REQUEST_BYTES,
    ReadAhead,
    requests_for,
)

from .delayed import DelayedStore

BYTES = np.random.default_rng(1).integers(0, 256, 5 * REQUEST_BYTES // 2, np.uint8).tobytes()


@st.composite
def some_ranges(draw: st.DrawFn) -> list[Range]:
    places = st.integers(0, len(BYTES) + 10)
    found = []
    for _ in range(draw(st.integers(0, 12))):
        start = draw(places)
        size = draw(st.sampled_from([0, 1, 100, GAP_BYTES, REQUEST_BYTES, 2 * REQUEST_BYTES + 1]))
        stop = draw(st.sampled_from([start + size] * 4 + [None]))
        found.append(Range(draw(st.sampled_from("ab")), start, stop))
    return found


@settings(deadline=None, max_examples=40)
@given(some_ranges())
def test_requests_read_what_is_wanted(ranges: list[Range]) -> None:
    requests = [*requests_for(enumerate(ranges))]
    assert {index for request in requests for index, _ in request.parts} == {*range(len(ranges))}
    for (key, start, stop, _), parts in requests:
        assert stop is None or stop - start <= REQUEST_BYTES
        covered = 0
        for _, wanted in sorted(parts, key=lambda part: part[1].start):
            assert wanted.key == key
            if len(parts) > 1:
                assert stop is not None
                assert wanted.stop is not None
                assert start <= wanted.start <= wanted.stop <= stop
                assert wanted.start - (covered or start) <= GAP_BYTES
                covered = max(covered, wanted.stop)
    store = DelayedStore(0)
    store.put("a", BYTES)
    store.put("b", BYTES[::-1])
    found = dict(store.read_many(ranges))
    assert {index: bytes(data) for index, data in found.items()} == {
        index: (BYTES if key == "a" else BYTES[::-1])[start:stop]
        for index, (key, start, stop, _) in enumerate(ranges)
    }


def test_neighbours_are_read_together() -> None:
    far = 3 * GAP_BYTES
    ranges = [Range("x", at, at + 10) for at in (0, far, 10, 20 + GAP_BYTES, far + 5)]
    found = [(start, stop, len(parts)) for (_, start, stop, _), parts in
             requests_for(enumerate(ranges))]  # fmt: skip
    assert found == [(0, 30 + GAP_BYTES, 3), (far, far + 15, 2)]
    versions = [Range("x", 0, 10, "1"), Range("x", 10, 20, "2"), Range("y", 10, 20, "2")]
    assert len([*requests_for(enumerate(versions))]) == 3


class _Reads:
    """Returns bytes of an object and notes what was read."""

    def __init__(self, size: int) -> None:
        self.data = np.arange(size, dtype=np.uint32).view(np.uint8)[:size]
        self.calls: list[tuple[int, int]] = []
        self.memory: list[object] = []
        self.lock = threading.Lock()

    def __call__(
        self, start: int, stop: int, allocate: Callable[[], memoryview] | None = None
    ) -> memoryview:
        with self.lock:
            self.calls.append((start, stop))
        found = self.data[start:stop].tobytes()
        if allocate is None or start % 3 == 0:  # a store may use other memory
            return memoryview(found)
        memory = allocate()
        with self.lock:
            self.memory.append(memory.obj)
        memory[: len(found)] = found
        return memory[: len(found)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_reader_that_jumps_has_the_right_bytes(seed: int) -> None:
    generator, reads = random.Random(seed), _Reads(6 * REQUEST_BYTES + 5)
    reader, at = ReadAhead(reads, len(reads.data)), 0
    for _ in range(300):
        jump = generator.choice([0] * 8 + [-1000, 1000, -at, generator.randrange(len(reads.data))])
        at = min(max(0, at + jump), len(reads.data))
        stop = at + generator.choice([1, 1000, 1 << 20, 3 * REQUEST_BYTES])
        data = reader.read(at, stop)
        assert data == memoryview(reads.data[at : at + len(data)].tobytes())
        assert len(data) > 0 or at >= len(reads.data)
        at += len(data)
    reader.close()
    assert reader.byte_count == 0


def test_what_is_read_in_order_is_read_once_and_ahead() -> None:
    block, reads = 1 << 20, _Reads(60 << 20)
    reader, at = ReadAhead(reads, len(reads.data)), 0
    most, back = 0, 110_000
    while data := reader.read(at, at + block):
        if at == 0:
            assert reads.calls == [(0, block)]  # the first read says nothing about the next
        most = max(most, reader.byte_count)
        at += len(data)
        if at > back and at < len(reads.data):
            assert reader.read(at - back, at)[0] == reads.data[at - back]  # begin of a record
    assert sum(stop - start for start, stop in reads.calls) == len(reads.data)
    assert most > _AHEAD_BYTES // 2
    assert most <= _AHEAD_BYTES
    assert len({id(memory) for memory in reads.memory}) < len(reads.memory)  # used again


def test_a_read_that_failed_can_be_repeated() -> None:
    reads, failing = _Reads(12 << 20), {5 << 20, 7 << 20}

    def read(start: int, stop: int, *allocate: Any) -> memoryview:
        if start in failing:
            failing.remove(start)
            raise OSError
        return reads(start, stop, *allocate)

    reader, found, failures = ReadAhead(read, len(reads.data)), bytearray(), 0
    for _ in range(16):
        try:
            found += reader.read(len(found), len(found) + (1 << 20))
        except OSError:
            failures += 1
    assert found == reads.data.tobytes()
    assert failures > 0


@pytest.mark.slow
def test_readers_share_what_is_read_ahead() -> None:
    readers = [ReadAhead(_Reads(64 << 20), 64 << 20) for _ in range(4)]
    places = [0] * 4
    for _ in range(40):
        for number, reader in enumerate(readers):
            places[number] += len(reader.read(places[number], places[number] + (1 << 20)))
        assert sum(reader.byte_count for reader in readers) <= _AHEAD_BYTES + 4 * REQUEST_BYTES
    for reader in readers:
        reader.close()
