"""Frames anywhere in a file, read or mapped: the same bytes, the same refusals."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import frames as frames_module
from recordsmith.dataset import open_shards
from recordsmith.dataset.frames import FrameReader, MappedFrames, ReadFrames, maps_well, walk
from recordsmith.wire import encode_record, encode_records, read_pieces

DICE = random.Random(0)
PAYLOADS = [DICE.randbytes(size) for size in (0, 1, 300, 5_000, 70_000, 3, 40_000, 0, 9, 200_000)]
STARTS = np.cumsum([0, *(len(payload) + 16 for payload in PAYLOADS)])
BEGINS, ENDS = STARTS[:-1], STARTS[1:]

FORMS = pytest.mark.parametrize("form", [MappedFrames, ReadFrames])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records(PAYLOADS))
    return path


def _gathered(
    frames: FrameReader, numbers: list[int], *, whole: bool = False
) -> tuple[int, list[bytes]]:
    sizes = [len(PAYLOADS[number]) + 16 * whole for number in numbers]
    places = np.cumsum([0, *sizes])
    out = np.full(places[-1], 0xAA, np.uint8)
    count = frames.gather(BEGINS[numbers], ENDS[numbers], places[:-1], out, whole=whole)
    return count, [out[a:b].tobytes() for a, b in itertools.pairwise(places)]


@FORMS
@pytest.mark.parametrize("group_bytes", [1, 50_000, 1 << 20])
def test_payloads_in_any_order(
    path: Path, form: type[FrameReader], group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, "_GROUP_BYTES", group_bytes)
    frames = form(path)  # type: ignore[call-arg]
    everything = list(range(len(PAYLOADS)))
    for numbers in (
        everything,
        everything[::-1],
        [9],
        [2, 2, 2],
        [],
        DICE.choices(everything, k=40),
    ):
        expected = [PAYLOADS[number] for number in numbers]
        assert _gathered(frames, numbers) == (len(numbers), expected)
        expected = [encode_record(payload) for payload in expected]
        assert _gathered(frames, numbers, whole=True) == (len(numbers), expected)


def test_neighbours_are_read_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def note(file: int, begins: Any, *rest: Any) -> bool:
        calls.extend(begins.tolist())
        return read_pieces(file, begins, *rest)

    monkeypatch.setattr("recordsmith.dataset.frames.read_pieces", note)
    _gathered(ReadFrames(path), [3, 1, 7, 2, 6])
    assert calls == [BEGINS[1], BEGINS[6]]


def test_reading_goes_on_where_the_system_stopped(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, views, at: preadv(file, [views[0][:999]], at))
    frames = ReadFrames(path)
    assert frames.view(5, 3_000) == path.read_bytes()[5:3_000]


@FORMS
def test_a_file_that_is_cut_while_it_is_open(path: Path, form: type[FrameReader]) -> None:
    """Nothing but being there ends a program that reads past the end of a map."""
    frames = form(path)  # type: ignore[call-arg]
    assert _gathered(frames, [9])[0] == 1
    os.truncate(path, 100)
    assert _gathered(frames, [9])[0] == 0
    assert _gathered(frames, [0, 9, 1])[0] < 3
    assert frames.view(int(BEGINS[9]), int(ENDS[9])) is None
    assert frames.view(0, 100) == encode_records(PAYLOADS)[:100]


@FORMS
def test_damage_is_never_copied_as_good(path: Path, form: type[FrameReader]) -> None:
    data = bytearray(path.read_bytes())
    data[int(ENDS[3]) - 1] ^= 1
    path.write_bytes(data)
    frames = form(path)  # type: ignore[call-arg]
    assert _gathered(frames, [1, 2])[0] == 2
    assert _gathered(frames, [1, 3, 2])[0] < 2


def test_the_file_is_closed_when_nobody_uses_it(path: Path, open_files: Any) -> None:
    frames = ReadFrames(path)
    view = frames.view(12, 12)
    assert len(open_files(path.parent)) == 1
    del frames
    assert not open_files(path.parent)
    assert view == b""


def test_what_pays_to_be_mapped() -> None:
    assert maps_well(200 * 1_000_000, 1_000_000)
    assert not maps_well(100_000 * 1_000, 1_000)


def test_maps_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shards of small records that fit; all others, and large records, are read."""
    for number in range(4):
        records = [bytes([number]) * 100] * 5
        if number == 0:
            records = [bytes(100_000)] * 5
        (tmp_path / f"{number}.tfrecord").write_bytes(b"".join(map(encode_record, records)))
    monkeypatch.setattr(open_shards, "_MAPPED_BYTES", 2 * 5 * 116)
    dataset = rs.open(tmp_path)
    for _ in range(2):
        assert [data[0] for data in dataset.read_records(range(0, 20, 2))] == [
            0, 0, 0, 1, 1, 2, 2, 2, 3, 3
        ]  # fmt: skip
        forms = [type(shard._frames) for shard in dataset.shards]
        assert forms == [ReadFrames, MappedFrames, MappedFrames, ReadFrames]
    assert dataset[3:7].read_record(3)[0] == 1


@pytest.mark.parametrize(("block_bytes", "headers"), [(16, 1), (6_000, 2), (1 << 20, 1 << 10)])
def test_walking_in_pieces(
    path: Path, block_bytes: int, headers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small records in blocks, large ones header by header; what is damaged or cut ends it."""
    lengths = [len(payload) for payload in PAYLOADS]
    monkeypatch.setattr(frames_module, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(frames_module, "_HEADERS_AT_A_TIME", headers)
    whole = path.read_bytes()

    def walked(data: bytes) -> tuple[list[int], bool]:
        path.write_bytes(data)
        with path.open("rb") as file:
            found, is_whole = walk(file.fileno())
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
