"""ShardWriter: files are written atomically."""

from __future__ import annotations

import errno
import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import ShardWriter, records_of
from recordsmith.dataset.shard_index import load_index
from recordsmith.format.wire import COMPRESSIONS, crc32c, encode_records

from ..raising import raises

PAYLOADS = [b"first", b"", b"x" * 3_000_000, b"last"]  # more than the buffer

INFLATE: dict[str, Any] = {"none": bytes, "gzip": gzip.decompress, "zlib": zlib.decompress}


def _files(folder: Path) -> set[str]:
    """All files in a folder except indexes."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.endswith(".index")}


@pytest.mark.parametrize("compression", [*COMPRESSIONS, None, "GZIP"])
def test_bytes_are_frames_in_order(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "a.tfrecord"
    with ShardWriter(path, compression=compression) as writer:
        for number, payload in enumerate(PAYLOADS):
            assert writer.record_count == number
            writer.write(payload)
    data = path.read_bytes()
    assert INFLATE[(compression or "none").lower()](data) == encode_records(PAYLOADS)
    assert (writer.record_count, writer.size_bytes) == (len(PAYLOADS), len(data))
    assert writer.crc32c == crc32c(data)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_same_records_same_bytes(
    tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1e9)
    paths = [tmp_path / name for name in ("a.tfrecord", "another name.tfrecord")]
    for path in paths:
        monkeypatch.setattr("time.time", lambda: 2e9)
        with ShardWriter(path, compression=compression) as writer:
            for payload in PAYLOADS:
                writer.write(payload)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_frames_are_written_unchanged(tmp_path: Path, compression: str) -> None:
    """Also mixed with payloads that the writer frames; counts include both."""
    lengths = np.array([len(payload) for payload in PAYLOADS])
    with ShardWriter(tmp_path / "a", compression=compression) as writer:
        writer.write(b"before")
        writer.write_frames(encode_records(PAYLOADS), lengths)
        writer.write_frames(b"", lengths[:0])
        writer.write(b"after")
        assert writer.record_count == len(PAYLOADS) + 2
        for wrong in (lengths[1:], lengths + 1):
            with raises(rs.OptionError, match="bytes", option="frames"):
                writer.write_frames(encode_records(PAYLOADS), wrong)
    with ShardWriter(tmp_path / "b", compression=compression) as other:
        for payload in (b"before", *PAYLOADS, b"after"):
            other.write(payload)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert writer.crc32c == other.crc32c
    indexes = [load_index(tmp_path / name) for name in "ab"]
    assert (indexes[0] is None) == (indexes[1] is None)
    if indexes[0] and indexes[1]:
        assert indexes[0][0].offsets.tolist() == indexes[1][0].offsets.tolist()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_exception_leaves_no_file(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        _write_and_fail(tmp_path / "a.tfrecord", error)
    assert _files(tmp_path) == set()


def _write_and_fail(path: Path, error: type[BaseException], **options: Any) -> None:
    with ShardWriter(path, **options) as writer:
        writer.write(PAYLOADS[2])
        raise error


def test_existing_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"precious")
    with raises(rs.OptionError, option="overwrite") as caught:
        ShardWriter(path)
    assert "overwrite=True" in str(caught.value)
    assert path.read_bytes() == b"precious"
    assert _files(tmp_path) == {"a.tfrecord"}


def test_overwrite_replaces_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"precious")
    with pytest.raises(KeyboardInterrupt):
        _write_and_fail(path, KeyboardInterrupt, overwrite=True)
    assert path.read_bytes() == b"precious"
    with ShardWriter(path, overwrite=True) as writer:
        writer.write(b"new")
        assert path.read_bytes() == b"precious"
    assert path.read_bytes() == encode_records([b"new"])
    assert list(rs.open(path).records()) == [b"new"]
    assert (
        records_of(rs.open(path)).read_record(0) == b"new"
    )  # the index of the old file is not used


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("size", [10, 3_000_000])
def test_full_disk(
    tmp_path: Path, compression: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    payload = np.random.default_rng(0).bytes(size)
    with (
        pytest.raises(rs.FileAccessError) as caught,
        ShardWriter(tmp_path / "a.tfrecord", compression=compression) as writer,
    ):
        writer.write(payload)
    assert caught.value.errno == errno.ENOSPC
    assert str(tmp_path / "a.tfrecord") in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.posix
def test_file_is_synced_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tfrecord"
    synced: list[int] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        if not path.exists():
            synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    with ShardWriter(path) as writer:
        writer.write(b"x" * 100)
    assert path.stat().st_size in synced


# -- examples and columns ------------------------------------------------------------------------


@pytest.mark.parametrize("row_count", [0, 1, 7, (1 << 14) + 3])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_columns_are_written_like_rows(tmp_path: Path, row_count: int, compression: str) -> None:
    rng = np.random.default_rng(row_count)
    splits = np.concatenate([[0], np.cumsum(rng.integers(0, 3, row_count))])
    columns: dict[str, Any] = {
        "id": rng.integers(-(2**62), 2**62, row_count),
        "box": rng.random((row_count, 4), np.float32),
        "name": [f"näm {number}" for number in range(row_count)],
        "steps": rs.RaggedArray(rng.integers(0, 9, int(splits[-1])), splits),
    }
    paths = [tmp_path / name for name in ("columns", "rows")]
    with ShardWriter(paths[0], compression=compression) as writer:
        writer.write_columns(columns)
    assert writer.record_count == row_count
    with ShardWriter(paths[1], compression=compression) as writer:
        for number in range(row_count):
            row = {key: column[number] for key, column in columns.items()}
            writer.write_example(row, {"steps": "int64"})
    written = [list(rs.open(path).records()) for path in paths]
    assert written[0] == written[1]
    assert len(rs.open(paths[0])) == row_count
