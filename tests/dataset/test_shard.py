"""Shards: in order, by position, from many threads, and while the file changes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import Shard, ShardWriter, records_of, shard_sequence
from recordsmith.format.wire import encode_record, encode_records

from .. import numbered_examples as numbered
from ..raising import raises

PAYLOADS = [b"first", b"", b"x" * 300, b"fourth", b"y"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records(PAYLOADS))
    return path


def _in_order(shard: Shard, start: int = 0, stop: int | None = None) -> list[tuple[int, bytes]]:
    return [
        (position, bytes(payload))
        for block in shard.blocks(start, stop)
        for position, payload in enumerate(block.payloads(), block.position)
    ]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_ranges_in_order(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tfrecord"
    # more than one block of the reader
    payloads = [bytes([number]) * 300_000 for number in range(9)] + [b"", b"z"]
    with ShardWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    shard = Shard(path, "")
    assert shard.compression == compression
    everything = list(enumerate(payloads))
    for start in range(len(payloads) + 1):
        for stop in [*range(start, len(payloads) + 1), None]:
            assert _in_order(shard, start, stop) == everything[start:stop]


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
@pytest.mark.parametrize("start", range(len(PAYLOADS)))
def test_damage_is_located_by_every_way_of_reading(path: Path, number: int, start: int) -> None:
    frames = [bytearray(encode_record(payload)) for payload in PAYLOADS]
    frames[number][-1] ^= 1
    path.write_bytes(b"".join(frames))
    shard = Shard(path, "")
    place = (rs.Defect.PAYLOAD_CRC, str(path), number, sum(map(len, frames[:number])))
    with pytest.raises(rs.CorruptDataError) as caught:
        shard.read(number)
    assert _place(caught.value) == place
    if start > number:
        assert _in_order(shard, start) == list(enumerate(PAYLOADS))[start:]
        return
    found: list[int] = []

    def read_on() -> None:
        for block in shard.blocks(start):
            found.extend(range(block.position, block.position + len(block)))

    with pytest.raises(rs.CorruptDataError) as caught:
        read_on()
    assert _place(caught.value) == place
    assert found == list(range(start, number))  # every record before it was yielded


def _place(error: rs.CorruptDataError) -> tuple[object, ...]:
    return error.defect, error.path, error.record, error.offset


def test_payloads_do_not_change_with_the_file(path: Path) -> None:
    shard = Shard(path, "")
    shard.allow_map()
    views = [shard.read(number) for number in range(len(PAYLOADS))]
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
    assert views == PAYLOADS
    path.write_bytes(encode_records(PAYLOADS))
    shard.close()
    assert all(view.readonly for view in views)
    assert shard.read(3) == PAYLOADS[3]  # the map comes back


def test_many_shards_do_not_hold_many_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_files: Any
) -> None:
    monkeypatch.setattr(shard_sequence, "_MAX_OPEN_SHARDS", 4)
    for number in range(20):
        (tmp_path / f"{number:02d}.tfrecord").write_bytes(encode_record(bytes([number])))
    dataset = rs.open(tmp_path)
    for _ in range(2):
        assert [records_of(dataset[::-1]).read_record(i)[0] for i in range(20)] == list(range(20))[
            ::-1
        ]
        assert [records_of(dataset).read_record(i)[0] for i in range(20)] == list(range(20))
        assert 1 <= len(open_files(tmp_path)) <= 4


# -- a shard that is changed while it is open ----------------------------------------------------


def _right_or_refused(dataset: rs.Dataset, position: int, allowed: set[bytes]) -> bool:
    """Whether reading raised; fails for a payload that is not allowed."""
    try:
        payload = records_of(dataset).read_record(position)
    except rs.CorruptDataError:
        return True
    assert payload in allowed
    return False


def test_truncated_at_any_byte(path: Path) -> None:
    data = path.read_bytes()
    ends = [len(encode_records(PAYLOADS[: n + 1])) for n in range(len(PAYLOADS))]
    for stop in range(len(data)):
        path.write_bytes(data)
        dataset = rs.open(path)
        assert records_of(dataset).read_record(2) == PAYLOADS[2]
        os.truncate(path, stop)
        for position, payload in enumerate(PAYLOADS):
            refused = _right_or_refused(dataset, position, {payload})
            assert not refused if ends[position] <= stop else refused


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("touched", [True, False])
@pytest.mark.parametrize(
    "others",
    [
        [payload[::-1].upper() for payload in PAYLOADS],
        PAYLOADS[::-1],
        [b"z" * (sum(map(len, PAYLOADS)) + 16 * (len(PAYLOADS) - 1))],
        [b"one"],
        [b"q" * 5000] * 9,
    ],
    ids=["same-lengths", "reversed", "one-record", "smaller", "larger"],
)
def test_replaced(path: Path, others: list[bytes], replace: bool, touched: bool) -> None:
    """Each position returns the record of the old or new file, or raises a defect."""
    dataset = rs.open(path)
    assert len(dataset) == len(PAYLOADS)
    if touched:
        records_of(dataset).read_record(0)
    other = path.with_name("other")
    other.write_bytes(encode_records(others))
    if replace:
        os.replace(other, path)
    else:
        path.write_bytes(other.read_bytes())
    for position, payload in enumerate(PAYLOADS):
        _right_or_refused(dataset, position, {payload, *others[position : position + 1]})


@pytest.mark.parametrize("with_manifest", [True, False])
def test_other_shard_of_the_same_size_with_fewer_records(
    tmp_path: Path, with_manifest: bool
) -> None:
    folder = numbered.packed(tmp_path, {"train": [4]})
    (path,) = folder.glob("*.tfrecord")
    dataset = rs.open(folder if with_manifest else path)
    assert len(dataset) == 4
    size = path.stat().st_size
    candidates = (encode_record(rs.encode_example({"id": 7, "x": b"x" * n})) for n in range(size))
    path.write_bytes(next(frame for frame in candidates if len(frame) == size))
    if with_manifest:
        dataset = rs.open(folder)
    for position in range(1, 4):
        with pytest.raises(rs.CorruptDataError):
            dataset[position]
    for part in (dataset[:], dataset[1:], dataset[2:3]):
        with pytest.raises(rs.CorruptDataError):
            list(part)


def test_a_shard_that_changes_after_it_was_listed(tmp_path: Path) -> None:
    """The size in the listing of the folder counts only for the check that opens the dataset."""
    (shard,) = rs.open(numbered.packed(tmp_path / "out", {"train": [5]})).shards
    shard.check_size()
    with open(shard.location, "ab") as file:
        file.write(b"more")
    with raises(rs.CorruptDataError, defect=rs.Defect.SHARD_SIZE):
        shard.check_size()
