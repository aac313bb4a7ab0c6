"""Indexes of shards: saved, and used only while they match."""

from __future__ import annotations

import os
import pickle
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import Shard, records_of, shard_index, version_of
from recordsmith.dataset.shard_index import (
    KEEP_FROM_BYTES,
    ShardIndex,
    index_locations,
    index_pieces,
    load_index,
    save_index,
)
from recordsmith.format.wire import encode_record, encode_records
from recordsmith.stores import as_location

from .. import numbered_examples as numbered

BIG_PAYLOADS = [bytes([number]) * (KEEP_FROM_BYTES // 3 + number) for number in range(4)]


def index_paths(shard: Path) -> list[Path]:
    """The possible paths of an index."""
    return [*map(Path, index_locations(shard))]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A shard without ShardWriter, large enough for its index to be saved."""
    path = tmp_path / "data" / "big.tfrecord"
    path.parent.mkdir()
    path.write_bytes(b"".join(map(encode_record, BIG_PAYLOADS)))
    _make_older(path)
    return path


def _make_older(path: Path) -> None:
    """Change the time of a file by an hour."""
    time = path.stat().st_mtime_ns - 3600 * 10**9
    os.utime(path, ns=(time, time))


def _payloads(path: Path) -> list[bytes]:
    dataset = rs.open(path)
    return [records_of(dataset).read_record(position) for position in range(len(dataset))]


def test_index_is_saved_next_to_a_large_shard(foreign: Path) -> None:
    assert load_index(foreign) is None
    index = Shard(foreign, "").index
    own, cached = index_paths(foreign)
    assert own.is_file()
    assert not cached.exists()
    assert own.parent.parent == foreign.parent
    assert own.parent.name.startswith(".")  # not matched by globs
    saved = load_index(foreign)
    assert saved is not None
    again, location = saved
    assert str(location) == str(own)
    np.testing.assert_array_equal(again.offsets, index.offsets)
    assert again.compression == index.compression == "none"


def test_index_is_saved_in_the_cache_if_the_folder_is_not_writable(foreign: Path) -> None:
    own, cached = index_paths(foreign)
    own.parent.write_bytes(b"in the way")  # also affects root, unlike permissions
    assert _payloads(foreign) == BIG_PAYLOADS
    assert cached.is_file()
    assert load_index(foreign) is not None


def test_index_is_not_saved_if_no_folder_is_writable(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    index_paths(foreign)[0].parent.write_bytes(b"in the way")
    assert save_index(foreign, ShardIndex.from_lengths(np.array([1]), "none")) is None
    assert _payloads(foreign) == BIG_PAYLOADS


def _replace(path: Path, data: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(data)
    os.replace(other, path)


@pytest.mark.parametrize("replace", [_replace, Path.write_bytes], ids=["replaced", "rewritten"])
@pytest.mark.parametrize(
    "change",
    [
        lambda frames: frames[:2],  # cut
        lambda frames: [*frames, encode_record(b"more")],  # grown
        lambda frames: frames[::-1],  # the same size, other records
        lambda frames: [encode_record(b"z" * (sum(map(len, frames)) - 16))],
        lambda _: [],
    ],
    ids=["cut", "grown", "reversed", "one-record", "empty"],
)
def test_index_of_a_changed_shard_is_not_used(foreign: Path, replace: Any, change: Any) -> None:
    _payloads(foreign)
    assert load_index(foreign) is not None
    frames = change(list(map(encode_record, BIG_PAYLOADS)))
    replace(foreign, b"".join(frames))
    assert load_index(foreign) is None
    assert _payloads(foreign) == [frame[12:-4] for frame in frames]


@pytest.mark.parametrize("age", [0, 3600], ids=["young", "old"])
@pytest.mark.parametrize("replace", [_replace, Path.write_bytes], ids=["replaced", "rewritten"])
def test_a_shard_of_equal_size_with_other_frames(foreign: Path, replace: Any, age: int) -> None:
    if not age:
        os.utime(foreign)
    _payloads(foreign)
    begin = len(encode_record(BIG_PAYLOADS[0]))
    old = encode_record(BIG_PAYLOADS[1])
    half = len(old) // 2
    halves = [b"p" * (half - 16), b"q" * (len(old) - half - 16)]
    data = foreign.read_bytes()
    new = b"".join(map(encode_record, halves))
    replace(foreign, data[:begin] + new + data[begin + len(old) :])
    for _ in range(2):
        assert _payloads(foreign) == [BIG_PAYLOADS[0], *halves, *BIG_PAYLOADS[2:]]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_index_of_a_copy_gets_its_time(
    tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path, compression=compression) as writer:
        for number in range(300):
            writer.write(np.random.default_rng(number).bytes(5000))
    before = index_paths(path)[0].read_bytes()
    _make_older(path)
    expected = Shard(path, "").index.offsets.tolist()
    after = index_paths(path)[0].read_bytes()
    assert int.from_bytes(after[16:24], "little") == path.stat().st_mtime_ns
    assert after[24:32] == before[24:32]
    # from now on, the time is enough
    monkeypatch.delattr(shard_index, "_fits")
    monkeypatch.delattr(Shard, "walk")
    assert Shard(path, "").index.offsets.tolist() == expected


def test_the_time_of_a_young_file_is_not_kept(tmp_path: Path) -> None:
    """Another change of it could have the same time."""
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_record(b"x"))
    location = as_location(path)

    def version(time: float, *, is_own: bool = False) -> int:
        os.utime(path, ns=(int(time), int(time)))
        return version_of(location, location.info(), is_own=is_own)

    now = time.time_ns() | 1
    assert version(now) == 0
    assert version(now, is_own=True) == now
    assert version(now - 10**9) == now - 10**9
    assert version(now // 10**9 * 10**9 - 10**9) == 0  # a clock of seconds
    assert version(now // 10**9 * 10**9 - 10**10) != 0
    assert 0 < version(-(10**9) - 1) < 1 << 63  # before 1970


@pytest.mark.parametrize("place", range(44 + 8 * (len(BIG_PAYLOADS) + 1)))
def test_index_damaged_at_any_byte_is_rebuilt(foreign: Path, place: int) -> None:
    Shard(foreign, "")._build_index()
    path = index_paths(foreign)[0]
    good = path.read_bytes()
    flipped = good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :]
    for damaged in (flipped, good[:place], good + good[: place + 1]):
        path.write_bytes(damaged)
        assert load_index(foreign) is None
        assert Shard(foreign, "").index.record_count == len(BIG_PAYLOADS)
        assert path.read_bytes() == good


def test_index_is_never_unpickled(foreign: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    path = index_paths(foreign)[0]
    path.parent.mkdir()
    path.write_bytes(pickle.dumps(Bomb()))
    assert _payloads(foreign) == BIG_PAYLOADS
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_indexes_of_writer_and_reader_are_equal(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.tfrecord"
    writer = rs.ShardWriter(path, compression=compression)
    for number in range(7):
        writer.write_example(numbered.features(number))
    writer.close()
    save_index(path, writer._index(), is_own=True)
    saved = load_index(path)
    assert saved is not None
    written = saved[0]
    built = Shard(path, "")._build_index()
    np.testing.assert_array_equal(written.offsets, built.offsets)
    assert written.compression == built.compression == compression


@pytest.mark.posix
def test_indexes_are_not_written_through_links(foreign: Path, tmp_path: Path) -> None:
    """A folder from an archive may contain links to anywhere."""
    (tmp_path / "elsewhere").mkdir()
    own, cached = index_paths(foreign)
    own.parent.symlink_to(tmp_path / "elsewhere")
    assert _payloads(foreign) == BIG_PAYLOADS
    assert os.listdir(tmp_path / "elsewhere") == []
    assert cached.is_file()


@pytest.mark.parametrize("count", [1 << 17, 1 << 22], ids=hex)
def test_impossible_record_counts_take_no_memory(foreign: Path, count: int) -> None:
    """A sparse file can be long without taking disk space."""
    own = index_paths(foreign)[0]
    shard = foreign.read_bytes()
    good = b"".join(index_pieces(foreign, Shard(foreign, "").index))
    own.write_bytes(good[:28] + count.to_bytes(8, "little"))
    with open(own, "r+b") as file:
        file.truncate(min(36 + 4 * (count // 8192 + 2) + 8 * (count + 1), 1 << 28))
    tracemalloc.start()
    try:
        assert load_index(foreign) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(shard) // 16
    assert _payloads(foreign) == BIG_PAYLOADS


@pytest.mark.posix
def test_a_pipe_is_not_read_as_index(foreign: Path) -> None:
    own = index_paths(foreign)[0]
    own.parent.mkdir()
    os.mkfifo(own)
    ends = threading.Timer(5, lambda: os.close(os.open(own, os.O_WRONLY | os.O_NONBLOCK)))
    ends.start()  # a waiting reader gets end of file, so that this test ends
    try:
        assert load_index(foreign) is None
        assert ends.is_alive()
    finally:
        ends.cancel()


def test_hostile_offsets_in_one_block_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(encode_records([b"x"] * 4))
    for offsets in (
        [0, 17, 16, 51, 68],
        [1, 17, 34, 51, 68],
        [0, 17, 34, 51, 67],
        [0, 9, 34, 51, 68],
    ):
        save_index(path, ShardIndex(np.array(offsets), "none"))
        assert load_index(path) is None
