"""Random access to frames: reading and mapping give the same bytes and errors."""

from __future__ import annotations

import itertools
import os
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import frames as frames_module
from recordsmith.dataset import records_of, shard_sequence
from recordsmith.dataset.frames import (
    FrameRows,
    MappedFrames,
    ReadFrames,
    open_frames,
    walk,
)
from recordsmith.format.wire import encode_record, encode_records, scan
from recordsmith.stores import as_location

PAYLOADS = [
    random.Random(size).randbytes(size)
    for size in (0, 1, 300, 5_000, 70_000, 3, 40_000, 0, 9, 300_000)
]
STARTS = np.cumsum([0, *(len(payload) + 16 for payload in PAYLOADS)])
BEGINS, ENDS = STARTS[:-1], STARTS[1:]

FORMS = pytest.mark.parametrize("may_map", [True, False])


def opened(path: Path, *, may_map: bool = False) -> MappedFrames | ReadFrames:
    frames = open_frames(as_location(path), may_map=may_map)
    assert isinstance(frames, MappedFrames if may_map else ReadFrames)
    return frames


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records(PAYLOADS))
    return path


def _gathered(
    frames: MappedFrames | ReadFrames, numbers: list[int], *, whole: bool = False
) -> tuple[int, list[bytes]]:
    sizes = [len(PAYLOADS[number]) + 16 * whole for number in numbers]
    places = np.cumsum([0, *sizes])
    out = np.full(places[-1], 0xAA, np.uint8)
    count = frames.gather(FrameRows(BEGINS[numbers], ENDS[numbers], places[:-1]), out, whole=whole)
    return count, [out[a:b].tobytes() for a, b in itertools.pairwise(places)]


@FORMS
def test_file_truncated_while_open(path: Path, may_map: bool) -> None:
    """A process that reads past the end of a map is killed by the system."""
    frames = opened(path, may_map=may_map)
    assert _gathered(frames, [9])[0] == 1
    os.truncate(path, 100)
    assert _gathered(frames, [9])[0] == 0
    assert _gathered(frames, [0, 9, 1])[0] < 3
    assert frames.view(int(BEGINS[9]), int(ENDS[9])) is None
    assert frames.view(0, 100) == encode_records(PAYLOADS)[:100]


@FORMS
@pytest.mark.parametrize("whole", [False, True])
def test_copied_bytes_are_the_verified_bytes(path: Path, may_map: bool, *, whole: bool) -> None:
    """A record that is overwritten in place is the old or the new one, or an error."""
    versions = [encode_record(letter * 8_000) for letter in (b"a", b"b")]
    path.write_bytes(versions[0])
    frames = opened(path, may_map=may_map)
    begins, ends = np.zeros(2, np.int64), np.full(2, len(versions[0]))
    payloads = {version if whole else version[12:-4] for version in versions}
    size = len(next(iter(payloads)))
    out = np.empty(2 * size, np.uint8)
    is_done = threading.Event()

    def write() -> None:
        with open(path, "r+b", buffering=0) as file:
            for version in itertools.cycle(versions):
                os.pwrite(file.fileno(), version, 0)
                if is_done.wait(0.001):
                    return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(400):
            count = frames.gather(FrameRows(begins, ends, np.arange(2) * size), out, whole=whole)
            assert {row.tobytes() for row in out.reshape(2, size)[:count]} <= payloads
            view = frames.view(0, len(versions[0]))
            assert view is not None
            if len(scan(view).starts) == 1:
                assert bytes(view) in versions
    finally:
        is_done.set()
        writer.join()


@pytest.mark.parametrize("offset", [0, 7, 8, 12, 150_000, 300_011, 300_012, 300_015])
def test_large_records_are_copied_and_verified(path: Path, offset: int) -> None:
    frames = opened(path)
    for numbers in ([9], [9, 1], [9, 4, 6, 9]):
        payloads = [PAYLOADS[number] for number in numbers]
        assert _gathered(frames, numbers) == (len(numbers), payloads)
    with open(path, "r+b") as file:
        file.seek(int(BEGINS[9]) + offset)
        byte = file.read(1)[0]
        file.seek(int(BEGINS[9]) + offset)
        file.write(bytes([byte ^ 1]))
    assert _gathered(frames, [9])[0] == 0
    assert _gathered(frames, [4, 9, 6])[0] == 0
    assert _gathered(frames, [4, 6])[0] == 2


def test_unused_file_is_closed(path: Path, open_files: Any) -> None:
    frames = opened(path)
    view = frames.view(12, 12)
    assert len(open_files(path.parent)) == 1
    del frames
    assert not open_files(path.parent)
    assert view == b""


def test_maps_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shards of small records are mapped; others are read."""
    for number in range(4):
        records = [bytes([number]) * 100] * 5
        if number == 0:
            records = [bytes(100_000)] * 5
        (tmp_path / f"{number}.tfrecord").write_bytes(b"".join(map(encode_record, records)))
    monkeypatch.setattr(shard_sequence, "_MAX_MAPPED_BYTES", 2 * 5 * 116)
    dataset = rs.open(tmp_path)
    for _ in range(2):
        assert [data[0] for data in dataset.read_records(range(0, 20, 2))] == [
            0, 0, 0, 1, 1, 2, 2, 2, 3, 3
        ]  # fmt: skip
        forms = [type(shard._frames) for shard in dataset.shards]
        assert forms == [ReadFrames, MappedFrames, MappedFrames, ReadFrames]
    assert records_of(dataset[3:7]).read_record(3)[0] == 1


@pytest.mark.parametrize(("block_bytes", "headers"), [(16, 1), (6_000, 2), (1 << 20, 1 << 10)])
def test_walking_in_pieces(
    path: Path, block_bytes: int, headers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small records in blocks, large ones by header; damage and truncation end the walk."""
    lengths = [len(payload) for payload in PAYLOADS]
    monkeypatch.setattr(frames_module, "_WALKED_BYTES", block_bytes)
    monkeypatch.setattr(frames_module, "_HEADERS_AT_A_TIME", headers)
    whole = path.read_bytes()

    def walked(data: bytes) -> tuple[list[int], bool]:
        path.write_bytes(data)
        with as_location(path).open_read() as file:
            found, is_whole = walk(file)
        assert found.dtype == np.int64
        return found.tolist(), is_whole

    assert walked(whole) == (lengths, True)
    assert walked(whole + b"more") == (lengths, False)
    assert walked(b"") == ([], True)
    for number, (begin, end) in enumerate(zip(BEGINS.tolist(), ENDS.tolist(), strict=True)):
        assert walked(whole[: end - 1]) == (lengths[:number], False)
        assert walked(whole[: begin + 11]) == (lengths[:number], False)
        damaged = bytearray(whole)
        damaged[begin + 8] ^= 1
        assert walked(bytes(damaged)) == (lengths[:number], False)
    assert walked(encode_records([b"x" * 20] * 500) + whole) == ([20] * 500 + lengths, True)
