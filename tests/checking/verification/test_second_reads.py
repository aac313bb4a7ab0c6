"""Damaged bytes are read again before they are reported; files may change while they are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.format.wire import encode_records
from recordsmith.stores.local.reader import LocalReader

D = rs.Defect


def test_a_record_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    good = encode_records([b"x", bytes(range(256)) * 9000, b"y"])
    path.write_bytes(good)
    assert rs.verify(path).record_count == 3
    damaged = bytearray(good)
    damaged[1_500_000] ^= 4
    path.write_bytes(damaged)
    report = rs.verify(path)
    (error,) = report.defects
    assert (report.record_count, report.size_bytes) == (2, len(good))
    assert (error.defect, error.record, error.offset) == (D.PAYLOAD_CRC, 1, 17)
    assert "second read" in error.detail
    path.write_bytes(good[:2_000_000])
    (error,) = rs.verify(path).defects
    assert (error.defect, error.record, error.offset) == (D.TRUNCATED_PAYLOAD, 1, 17)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("deep", [False, True])
def test_a_bad_read_is_not_a_defect(
    tmp_path: Path, numbered: Any, monkeypatch: pytest.MonkeyPatch, compression: Any, *, deep: bool
) -> None:
    path = numbered.write_shard(tmp_path / "a.tfrecord", range(9), compression)
    good = rs.verify(path, deep=deep)

    def misread(self: LocalReader, view: Any) -> int:
        count = read(self, view)
        if count > 20:
            view[20] ^= 1
        return count

    read = LocalReader.readinto
    monkeypatch.setattr(LocalReader, "readinto", misread)
    report = rs.verify(path, deep=deep)
    assert (report.is_good, report.record_count) == (True, 9)
    assert {notice.defect for notice in report.notices} == {D.TRANSIENT_READ}
    assert report.shards[0].checksum == good.shards[0].checksum
    monkeypatch.setattr(LocalReader, "read_uncached", lambda *_: None)  # impossible
    assert rs.verify(path, deep=deep).is_good


@pytest.mark.parametrize(
    ("compression", "deep"), [("none", False), ("none", True), ("gzip", False)]
)
def test_a_growing_file_is_checked_up_to_its_first_size(
    tmp_path: Path, compression: Any, *, deep: bool
) -> None:
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
    assert [notice.defect for notice in report.notices] == [D.CHANGING_SHARD]


def test_a_file_truncated_or_removed_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records([bytes(600_000)] * 8))
    report = rs.verify(path, progress=lambda *_: os.truncate(path, 2_000_000))
    assert not report.is_good
    assert "became shorter" in report.notices[0].problem
    report = rs.verify(path, progress=lambda *_: path.unlink(missing_ok=True))
    assert report.record_count == 3
    assert "removed" in report.notices[0].problem


def test_a_file_is_read_once_if_it_is_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records([b"x"]))
    monkeypatch.setattr(LocalReader, "read_uncached", None)
    assert rs.verify(path, deep=True).is_good
