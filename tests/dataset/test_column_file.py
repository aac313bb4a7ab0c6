"""Numbers of all records: equal to the columns, kept in files, and used only while they match."""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import ColumnsOrigin, ColumnSurvey, column_file, column_pieces
from recordsmith.dataset.column_file import ShardColumn, record_counts, record_values
from recordsmith.format.wire import HEADER_BYTES, encode_record
from recordsmith.stores import Location

SHARD_COUNT, PER_SHARD = 3, 7
TEXTS = ["rose", "daisy", "tulip", "fern"]


def _rows() -> Iterator[dict[str, Any]]:
    for number in range(SHARD_COUNT * PER_SHARD):
        yield {
            "label": number % 5 * 100,
            "weight": number / 4,
            "text": TEXTS[number % (2 + number // PER_SHARD)],
            "tokens": list(range(number % 6)),
            "frames": [b"frame"] * (number % 4),
            "fill": bytes(200_000),  # shards of more than 1 MiB keep their files
        }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = list(_rows())
    for number in range(SHARD_COUNT):
        with rs.ShardWriter(tmp_path / f"part-{number}.tfrecord") as writer:
            for row in rows[number * PER_SHARD : (number + 1) * PER_SHARD]:
                writer.write_example(row)
        _make_older(tmp_path / f"part-{number}.tfrecord")
    return tmp_path


def _make_older(path: Path, seconds: float = 3600) -> None:
    """Change the time of a file, which a clock may not distinguish from another one just now."""
    time = path.stat().st_mtime_ns - int(seconds * 1e9)
    os.utime(path, ns=(time, time))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*/*.columns"))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the shards that are read from their records."""
    names: list[str] = []
    read = column_file._read

    def noted(shard: Any, *args: Any) -> Any:
        names.append(shard.location.name)
        return read(shard, *args)

    monkeypatch.setattr(column_file, "_read", noted)
    return names


@pytest.mark.parametrize("is_kept", [False, True])
def test_equal_to_the_rows(folder: Path, is_kept: bool, reads: list[str]) -> None:
    rows = list(_rows())
    dataset = rs.open(folder)
    for chosen in (dataset, dataset[3:17:2], dataset.shuffle(seed=1)[:9], dataset[0:0]):
        for _ in range(1 + is_kept):
            own = [rows[number] for number in _numbers(chosen)]
            assert record_counts(chosen, "tokens").tolist() == [len(row["tokens"]) for row in own]
            assert record_counts(chosen, "frames").tolist() == [len(row["frames"]) for row in own]
            for key in ("label", "weight"):
                assert record_values(chosen, key).numbers.tolist() == [row[key] for row in own]
            numbers, texts = record_values(chosen, "text")
            assert texts == (tuple(sorted(TEXTS)) if len(chosen) else ())
            assert [texts[number] for number in numbers] == [row["text"] for row in own]
    assert len(reads) == 5 * SHARD_COUNT  # each feature once
    assert record_counts(dataset, "tokens").dtype == np.uint8
    assert record_values(dataset, "label").numbers.dtype == np.uint16


def _numbers(dataset: rs.Dataset) -> list[int]:
    return [int(weight * 4) for weight in record_values(dataset, "weight").numbers]


def test_files_are_used_only_while_they_match(folder: Path, reads: list[str]) -> None:
    expected = record_values(rs.open(folder), "label").numbers.tolist()
    assert len(_files(folder)) == SHARD_COUNT
    intact = _files(folder)[1].read_bytes()
    for place in range(len(intact)):
        reads.clear()
        damaged = bytearray(intact)
        damaged[place] ^= 1
        _files(folder)[1].write_bytes(damaged)
        assert record_values(rs.open(folder), "label").numbers.tolist() == expected
        assert reads == ["part-1.tfrecord"], place
    for cut in (0, 5, 30, len(intact) - 1):
        reads.clear()
        _files(folder)[1].write_bytes(intact[:cut])
        assert record_values(rs.open(folder), "label").numbers.tolist() == expected
        assert reads == ["part-1.tfrecord"], cut
    reads.clear()
    (folder / "part-0.tfrecord").write_bytes((folder / "part-1.tfrecord").read_bytes())
    again = record_values(rs.open(folder), "label").numbers.tolist()
    assert again == expected[PER_SHARD : 2 * PER_SHARD] + expected[PER_SHARD:]
    assert reads == ["part-0.tfrecord"]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("value text", ShardColumn(np.zeros(PER_SHARD, "<f4"), ("a", "b"))),
        ("value text", ShardColumn(np.full(PER_SHARD, -9, "<i8"), ("a", "b"))),
        ("value text", ShardColumn(np.full(PER_SHARD, 2, "<u1"), ("a", "b"))),
        ("count text", ShardColumn(np.full(PER_SHARD, -9, "<i8"))),
        ("count text", ShardColumn(np.ones(PER_SHARD, "<f4"))),
    ],
)
def test_impossible_numbers_are_not_used(
    folder: Path, reads: list[str], name: str, column: ShardColumn
) -> None:
    dataset = rs.open(folder)
    texts = record_values(dataset, "text")
    shard = folder / "part-0.tfrecord"
    origin = ColumnsOrigin(shard.stat().st_size, shard.stat().st_mtime_ns, 0)
    _files(folder)[0].write_bytes(b"".join(column_pieces({name: column}, origin)))
    reads.clear()
    if name == "count text":
        assert (record_counts(dataset, "text") == 1).all()
    else:
        np.testing.assert_equal(record_values(dataset, "text"), texts)
    assert "part-0.tfrecord" in reads


def test_huge_files_are_not_read(
    folder: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = record_values(rs.open(folder), "label").numbers.tolist()
    reads.clear()
    monkeypatch.setattr(column_file, "MAX_FILE_BYTES", _files(folder)[0].stat().st_size)
    with _files(folder)[0].open("ab") as file:
        file.write(b"\0")
    assert record_values(rs.open(folder), "label").numbers.tolist() == expected
    assert reads == ["part-0.tfrecord"]


def _with_label(folder: Path, row: int, label: int) -> bytes:
    """The bytes of the first shard with another label of a record: as many as before."""
    path = folder / "other.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number, own in enumerate([*_rows()][:PER_SHARD]):
            writer.write_example({**own, "label": label} if number == row else own)
    data = path.read_bytes()
    path.unlink()
    return data


def _rename_over(path: Path, data: bytes) -> None:
    path.with_name("new").write_bytes(data)
    os.replace(path.with_name("new"), path)


def _copy_older(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    _make_older(path, 2 * 3600)


@pytest.mark.parametrize("age", [0, 3600], ids=["young", "old"])
@pytest.mark.parametrize("replace", [_rename_over, Path.write_bytes, _copy_older])
@pytest.mark.parametrize("row", range(PER_SHARD))
def test_of_a_shard_that_is_replaced_by_one_of_equal_size(
    folder: Path, reads: list[str], replace: Any, age: int, row: int
) -> None:
    path = folder / "part-0.tfrecord"
    if not age:
        os.utime(path)
    labels = record_values(rs.open(folder), "label").numbers.tolist()
    record_values(rs.open(folder), "weight")
    other = labels[row] + 1 if labels[row] > 100 else 0 if labels[row] else 7
    data = _with_label(folder, row, other)
    assert len(data) == path.stat().st_size
    replace(path, data)
    reads.clear()
    labels[row] = other
    for _ in range(2):
        assert record_values(rs.open(folder), "label").numbers.tolist() == labels
        assert record_counts(rs.open(folder), "label").tolist() == [1] * len(labels)
    assert Counter(reads) == {"part-0.tfrecord": 2, "part-1.tfrecord": 1, "part-2.tfrecord": 1}


def test_of_a_shard_with_another_time(
    folder: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a copy: the checksums of its payloads are compared once."""
    expected = record_values(rs.open(folder), "label").numbers.tolist()
    before = [path.read_bytes() for path in _files(folder)]
    for path in folder.glob("*.tfrecord"):
        _make_older(path)
    reads.clear()
    assert record_values(rs.open(folder), "label").numbers.tolist() == expected
    times = [struct.unpack_from("<Q", path.read_bytes(), 16)[0] for path in _files(folder)]
    assert times == [path.stat().st_mtime_ns for path in sorted(folder.glob("*.tfrecord"))]
    assert all(len(a) == len(b.read_bytes()) for a, b in zip(before, _files(folder), strict=True))
    monkeypatch.delattr(column_file, "_shard_crc32c")
    assert record_values(rs.open(folder), "label").numbers.tolist() == expected
    assert not reads


def test_of_a_compressed_shard_with_another_time(tmp_path: Path, reads: list[str]) -> None:
    path = tmp_path / "rows.tfrecord"
    with rs.ShardWriter(path, compression="gzip") as writer:
        for number in range(9):
            writer.write_example({"label": number})
    rs.index(path, numbers_of=["label"])
    reads.clear()
    _make_older(path)
    assert record_values(rs.open(path), "label").numbers.tolist() == list(range(9))
    assert not reads


def test_sparse_files_are_not_read(tmp_path: Path, reads: list[str]) -> None:
    """A file may be long without taking disk space: the shard decides what it can hold."""
    path = tmp_path / "rows.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(200):
            writer.write_example({"label": number})
    rs.index(path, numbers_of=["label"])
    (columns,) = _files(tmp_path)
    good = columns.read_bytes()
    for length, text_bytes in ((1 << 30, 0), (1 << 29, 1 << 28), (1 << 29, 1 << 17)):
        head = bytearray(good)
        if text_bytes:
            head[32:36] = text_bytes.to_bytes(4, "little")
        columns.write_bytes(head)
        os.truncate(columns, length)
        reads.clear()
        tracemalloc.start()
        try:
            values = record_values(rs.open(path), "label").numbers
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()
        assert values.tolist() == list(range(200))
        assert reads == ["rows.tfrecord"]


def test_of_a_shard_that_is_removed_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    for label in (0, 1):  # so few bytes differ that no sample shows it
        path.unlink(missing_ok=True)
        with rs.ShardWriter(path) as writer:
            for number in range(500):
                writer.write_example({"label": label if number == 3 else 0, "fill": bytes(3000)})
        assert record_values(rs.open(path), "label").numbers.sum() == label


def test_long_texts_are_not_collected() -> None:
    record = rs.encode_example({"fill": bytes(100_000)})
    frame, start = encode_record(record), np.full(1, HEADER_BYTES)
    survey = ColumnSurvey(["fill"])
    tracemalloc.start()
    try:
        for _ in range(20):
            survey.update(frame, start, np.full(1, len(record)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert survey.finish() == {}


def test_columns_of_a_shard_share_a_file(folder: Path, reads: list[str]) -> None:
    dataset = rs.open(folder)
    record_values(dataset, "label")
    record_counts(dataset, "tokens")
    reads.clear()
    record_values(rs.open(folder), "label")
    record_counts(rs.open(folder), "tokens")
    assert not reads
    assert len(_files(folder)) == SHARD_COUNT


def test_remote_shards_keep_them_in_the_cache_of_the_user(
    folder: Path, place: Location, reads: list[str]
) -> None:
    for path in folder.glob("*.tfrecord"):
        (place / "copy" / path.name).put([path.read_bytes()])
    expected = record_counts(rs.open(folder), "tokens").tolist()
    for has_file in (False, True):
        reads.clear()
        assert record_counts(rs.open(place / "copy"), "tokens").tolist() == expected
        assert len(reads) == (0 if has_file else SHARD_COUNT)


def test_index_keeps_them_next_to_the_shards(place: Location, reads: list[str]) -> None:
    rows = [{"label": number, "tokens": [1] * number} for number in range(4)]
    with rs.ShardWriter(place / "copy" / "rows.tfrecord") as writer:
        for row in rows:
            writer.write_example(row)
    rs.index(place / "copy", numbers_of=["label", "tokens"])
    assert (place / "copy" / ".recordsmith" / "rows.tfrecord.columns").exists()
    reads.clear()
    dataset = rs.open(place / "copy")
    assert record_values(dataset, "label").numbers.tolist() == [0, 1, 2, 3]
    assert record_counts(dataset, "tokens").tolist() == [0, 1, 2, 3]
    assert not reads


@pytest.mark.parametrize(
    ("key", "words"), [("lable", "label"), ("tokens", "tokens"), ("fill", "short texts")]
)
def test_bad_keys(folder: Path, key: str, words: str) -> None:
    with pytest.raises((rs.OptionError, rs.CorruptDataError), match=words):
        record_values(rs.open(folder), key)
