"""Checking a large shard in ranges gives the same result as reading it in order."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.examining.verification import VerifyReport, frame_ranges
from recordsmith.stores import as_location
from recordsmith.stores.local.reader import LocalReader
from recordsmith.wire import encode_record, encode_records


def _summary(report: VerifyReport) -> Any:
    return (
        report.record_count,
        report.size_bytes,
        [(e.defect, e.record, e.offset) for e in report.defects],
    )


@settings(max_examples=150)
@given(data=st.data())
@pytest.mark.usefixtures("small_ranges")
def test_ranges_and_sequential_reading_agree(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sizes = data.draw(st.lists(st.integers(0, 250), min_size=1, max_size=30))
    # some payloads hold frames themselves, which a guess takes for the way
    payloads = [
        encode_records([bytes(size % 7)] * 3) if size % 5 == 0 else bytes(size) for size in sizes
    ]
    frames = bytearray(encode_records(payloads))
    for place in data.draw(st.lists(st.integers(0, len(frames) - 1), max_size=2)):
        frames[place] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.integers(0, 20))
    path = tmp_path_factory.mktemp("ranges") / "a.tfrecord"
    path.write_bytes(frames[: len(frames) - cut])
    if path.stat().st_size:
        assert _summary(rs.verify(path, threads=3)) == _summary(rs.verify(path, threads=1))


@pytest.mark.usefixtures("small_ranges")
def test_a_manifest_with_the_wrong_compression(tmp_path: Path, numbered: Any) -> None:
    folder = numbered.packed(tmp_path, {"train": [40]})
    path = folder / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "compression": "gzip"}))
    (error,) = rs.verify(folder, threads=3).defects
    assert error.defect is rs.Defect.BROKEN_MANIFEST


@pytest.mark.usefixtures("small_ranges")
def test_checksums_of_ranges_are_joined(tmp_path: Path, numbered: Any) -> None:
    folder = numbered.packed(tmp_path, {"train": [40]})
    assert rs.verify(folder, threads=3).is_good
    (path,) = folder.glob("*.tfrecord")
    data = path.read_bytes()
    path.write_bytes(encode_records(list(rs.open(path).records())[::-1]))
    assert path.stat().st_size == len(data)
    assert [e.defect for e in rs.verify(folder, threads=3).defects] == [rs.Defect.SHARD_CHECKSUM]


def test_a_record_longer_than_the_buffer(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    good = encode_records([b"x", bytes(range(256)) * 9000, b"y"])
    path.write_bytes(good)
    assert _summary(rs.verify(path))[0] == 3
    damaged = bytearray(good)
    damaged[1_500_000] ^= 4
    path.write_bytes(damaged)
    report = rs.verify(path)
    assert _summary(report) == (2, len(good), [(rs.Defect.PAYLOAD_CRC, 1, 17)])
    assert "second read" in report.defects[0].detail
    path.write_bytes(good[:2_000_000])
    assert _summary(rs.verify(path)) == (1, 2_000_000, [(rs.Defect.TRUNCATED_PAYLOAD, 1, 17)])


def test_a_record_over_2_gib(tmp_path: Path) -> None:
    """A sparse file: zeros take no space, and their checksum is worked out, not read."""
    from recordsmith.wire import combine_crc32c, crc32c
    from recordsmith.wire.framing import stored_crc

    size = (2 << 30) + 5
    path = tmp_path / "a.tfrecord"
    piece, crc, done = bytes(1 << 20), 0, 0
    of_piece = crc32c(piece)
    crc = of_piece
    done = len(piece)
    while 2 * done <= size:
        crc, done = combine_crc32c(crc, crc, done), 2 * done
    rest = size - done
    crc = combine_crc32c(crc, crc32c(bytes(rest)), rest)
    with open(path, "wb") as file:
        length = size.to_bytes(8, "little")
        file.write(length + stored_crc(crc32c(length)))
        file.seek(size, os.SEEK_CUR)
        file.write(stored_crc(crc) + encode_record(b"after"))
    report = rs.verify(path)
    assert (report.is_good, report.record_count) == (True, 2)


@pytest.mark.parametrize("offset", [0, 5, 8, 40, 50])
def test_a_bad_read_is_not_a_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records([b"first payload", b"second payload"]))
    read = frame_ranges.RangeCheck.read

    def misread(self: frame_ranges.RangeCheck, at: int, size: int) -> memoryview:
        block = read(self, at, size)
        if at <= offset < at + len(block):
            block[offset - at] ^= 1
        return block

    monkeypatch.setattr(frame_ranges.RangeCheck, "read", misread)
    report = rs.verify(path)
    assert report.is_good
    assert report.record_count == 2
    (notice,) = report.notices
    assert notice.defect is rs.Defect.TRANSIENT_READ
    assert notice.record == (0 if offset < 29 else 1)


def test_a_bad_read_of_a_compressed_file(
    tmp_path: Path, numbered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = numbered.write_shard(tmp_path / "a.tfrecord.gz", range(9), "gzip")
    good = path.read_bytes()
    damaged = bytearray(good)
    damaged[20] ^= 1
    path.write_bytes(damaged)
    monkeypatch.setattr(LocalReader, "drop_cached", lambda _: path.write_bytes(good))
    report = rs.verify(path)
    assert (report.is_good, report.record_count) == (True, 9)
    assert {notice.defect for notice in report.notices} == {rs.Defect.TRANSIENT_READ}


def test_bytes_are_read_again_from_any_offset(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = random.Random(0).randbytes(20_000)
    path.write_bytes(data)
    for start, stop in ((0, 20_000), (1, 2), (4095, 8193), (19_990, 30_000), (5, 5)):
        with as_location(path).open_read() as file:
            assert frame_ranges.read_again(file, start, stop) == data[start:stop]


@pytest.mark.parametrize(
    ("compression", "deep"), [("none", False), ("none", True), ("gzip", False)]
)
def test_a_growing_file_is_checked_up_to_its_first_size(
    tmp_path: Path, compression: Any, *, deep: bool
) -> None:
    """Read by ranges, and in order."""
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path, compression=compression) as writer:
        for _ in range(4):
            writer.write_example({"x": bytes(600_000)})
    calls: list[int] = []

    def grow(done: int, _total: int) -> None:
        calls.append(done)
        if len(calls) < 100:  # an endless read would never stop
            with open(path, "ab") as file:
                file.write(b"half a record")

    report = rs.verify(path, progress=grow, deep=deep)
    assert (report.is_good, report.record_count) == (True, 4)
    assert [notice.defect for notice in report.notices] == [rs.Defect.CHANGING_SHARD]


def test_a_file_truncated_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    frames = encode_records([bytes(600_000)] * 8)
    path.write_bytes(frames)
    report = rs.verify(path, progress=lambda *_: os.truncate(path, 2_000_000))
    assert not report.is_good
    assert "became shorter" in report.defects[0].problem


def test_a_file_removed_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records([bytes(600_000)] * 4))
    report = rs.verify(path, progress=lambda *_: path.unlink(missing_ok=True))
    assert (report.is_good, report.record_count) == (True, 4)
    assert "removed" in report.notices[0].problem
