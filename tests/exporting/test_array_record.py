"""ArrayRecord files, read by its own reader and by Grain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.errors import MissingExtraError, OptionError

from ..raising import raises

PAYLOADS = [b"", b"no example", b"\x0a\x00", b"\xff" * 100_000, *(b"%d" % n for n in range(20))]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two splits of any payloads, one of them compressed."""
    (tmp_path / "records").mkdir()
    for split, compression in (("train", "none"), ("test", "gzip")):
        path = tmp_path / f"records/{split}.tfrecord"
        with rs.ShardWriter(path, compression=compression) as writer:
            for payload in PAYLOADS[: 24 if split == "train" else 5]:
                writer.write(payload)
    return tmp_path / "records"


def test_payloads_are_equal_for_both_readers(records: Path, tmp_path: Path) -> None:
    module = pytest.importorskip("array_record.python.array_record_module")
    report = rs.export(records, tmp_path / "out", "array-record", shard_size_bytes=40_000)
    assert report.splits == {"test": 5, "train": 24}
    names = sorted(path.name for path in (tmp_path / "out").glob("*.array_record"))
    assert names[0] == "test-00000-of-00001.array_record"
    assert len(names) == report.file_count == 1 + 3
    for split in ("train", "test"):
        files = sorted(map(str, (tmp_path / "out").glob(f"{split}-*")))
        found = []
        for file in files:
            reader = module.ArrayRecordReader(file)
            found += reader.read_all()
            reader.close()
        assert found == PAYLOADS[: len(found)]
        assert len(found) == report.splits[split]


def test_grain_reads_them(records: Path, tmp_path: Path) -> None:
    pytest.importorskip("array_record")
    grain: Any = pytest.importorskip("grain.python")
    rs.export(records / "train.tfrecord", tmp_path / "out", "array-record", shard_size_bytes=40_000)
    files = sorted(map(str, (tmp_path / "out").glob("train-*")))
    with grain.ArrayRecordDataSource(files) as source:
        assert [source[number] for number in range(len(source))] == PAYLOADS


def test_other_stores(records: Path, tmp_path: Path) -> None:
    pytest.importorskip("array_record")
    rs.export(records, tmp_path / "out", "array-record")
    report = rs.export(records, "memory://array-record", "array-record", overwrite=True)
    for path in (tmp_path / "out").glob("*.array_record"):
        assert (report.folder / path.name).read() == path.read_bytes()


def test_missing_package(records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "array_record.python", None)
    with raises(MissingExtraError, extra="array-record", package="array_record"):
        rs.export(records, tmp_path / "out", "array-record")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format_", ["tfds", "array-record"])
def test_wrong_sizes(records: Path, tmp_path: Path, format_: str) -> None:
    if format_ == "array-record":
        pytest.importorskip("array_record")
    with raises(OptionError, option="shard_size_bytes", value=0):
        rs.export(records, tmp_path / "out", format_, shard_size_bytes=0)
