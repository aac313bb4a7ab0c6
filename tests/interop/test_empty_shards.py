"""Shards without records, as Beam and Spark write them: valid files, alone and among others."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.support.errors import Defect

EMPTY = {"none": b"", "gzip": gzip.compress(b"", mtime=0), "zlib": zlib.compress(b"")}
# the bytes of a shard without records, and the compression of the others
KINDS = {
    "plain": (b"", "none"),
    "gzip": (EMPTY["gzip"], "gzip"),
    "zlib": (EMPTY["zlib"], "zlib"),
    "0 bytes among gzip": (b"", "gzip"),
}
NAMES = [f"part-{number:05d}-of-00005" for number in range(5)]
IDS = list(range(7))

each_kind = pytest.mark.parametrize(("empty", "compression"), KINDS.values(), ids=KINDS)


@pytest.fixture
def folder(tmp_path: Path, numbered: Any, empty: bytes, compression: str) -> Path:
    """Five shards as Beam names them: the first, third and last without records."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name, ids in zip(NAMES, ([], IDS[:3], [], IDS[3:], []), strict=True):
        if ids:
            numbered.write_shard(folder / name, ids, compression)
        else:
            (folder / name).write_bytes(empty)
        os.utime(folder / name, (1e9, 1e9))  # the time of a young file is not kept in its index
    return folder


def ids(found: Any) -> list[int]:
    return [int(example["id"][0]) for example in found]


@each_kind
def test_read_like_tensorflow(tf: Any, folder: Path, empty: bytes, compression: str) -> None:
    files = [str(folder / name) for name in NAMES]
    kind = "" if compression == "none" else compression.upper()
    for paths in (files, files[:1]):
        expected = [bytes(one.numpy()) for one in tf.data.TFRecordDataset(paths, kind)]
        dataset = rs.open(paths)
        assert len(dataset) == len(expected)
        assert list(dataset.records()) == expected


@each_kind
def test_read_among_others(folder: Path, empty: bytes, compression: str) -> None:
    for paths in (folder, folder / "part-*", [folder / name for name in NAMES]):
        dataset = rs.open(paths)
        assert len(dataset) == len(IDS)
        assert ids(dataset) == IDS
        assert [shard.record_count for shard in dataset.shards] == [0, 3, 0, 4, 0]
        batches = [batch["id"] for batch in dataset.batches(2, ["id"])]
        assert np.concatenate(batches).ravel().tolist() == IDS
        if compression == "none":
            loader = rs.Loader(dataset, {"id": rs.Scalar("id")}, batch_size=2, shuffle=True)
            assert sorted(np.concatenate([batch["id"] for batch in loader]).tolist()) == IDS
            assert ids([dataset[-1], dataset[0]]) == [6, 0]
            assert len(dataset.read_records([6, 0, 3])) == 3


@each_kind
def test_inspected_among_others(folder: Path, empty: bytes, compression: str) -> None:
    inspection = rs.inspect(folder)
    assert (inspection.record_count, inspection.compression) == (len(IDS), compression)
    assert rs.stats(folder).record_count == len(IDS)
    assert rs.diff(folder, folder).is_equal
    for deep in (False, True):
        report = rs.verify(folder, deep=deep)
        assert report.is_good
        noticed = [] if empty else [str(folder / name) for name in NAMES[::2]]
        assert [error.path for error in report.notices] == noticed
        assert {error.defect for error in report.notices} <= {Defect.EMPTY_FILE}


@each_kind
def test_rewritten_among_others(folder: Path, empty: bytes, compression: str) -> None:
    out = folder.parent
    rs.reshard(folder, out / "resharded")
    assert ids(rs.open(out / "resharded")) == IDS
    rs.append(folder, out / "resharded")
    assert sorted(ids(rs.open(out / "resharded"))) == sorted(IDS * 2)
    report = rs.salvage(folder, out / "rescued")
    assert report.is_complete
    assert [shard.record_count for shard in report.shards] == [0, 3, 0, 4, 0]
    assert not any(shard.problem for shard in report.shards)
    assert ids(rs.open(out / "rescued")) == IDS
    rs.export(folder, out / "exported", format="csv")
    assert rs.verify(out / "rescued").is_good
    index = rs.index(folder)
    assert [file.record_count for file in index.files] == [0, 3, 0, 4, 0]
    assert not any(file.is_new for file in rs.index(folder).files)
    assert len(rs.open(folder)) == len(IDS)


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY)
def test_alone(tmp_path: Path, empty: bytes) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(empty)
    dataset = rs.open(path)
    assert (len(dataset), list(dataset), dataset.schema.payload) == (0, [], "none")
    assert len(dataset.read_records([])) == 0
    assert list(rs.Loader(dataset, batch_size=2)) == []
    assert rs.inspect(path).record_count == 0
    assert rs.stats(path).record_count == 0
    assert rs.diff(path, path).is_equal
    (file,) = rs.index(path).files
    assert file.record_count == 0
    report = rs.verify(path, deep=True)
    assert report.is_good
    noticed = [(str(path), Defect.EMPTY_FILE)] * (not empty)
    assert [(error.path, error.defect) for error in report.notices] == noticed
    for job in (rs.reshard, rs.salvage, rs.export):
        with pytest.raises(rs.SourceError, match="no records"):
            job(path, tmp_path / "out", **({"format": "csv"} if job is rs.export else {}))
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size_bytes", [None, 0])
def test_missing_records_are_detected(
    tmp_path: Path, numbered: Any, size_bytes: int | None
) -> None:
    """The manifest lists records in the empty shard: it is damaged, whatever size is listed."""
    folder = numbered.packed(tmp_path / "in", {"train": [3, 2]})
    document = json.loads((folder / "dataset.json").read_text())
    entry = document["splits"]["train"][1]
    (folder / entry["file"]).write_bytes(b"")
    if size_bytes is not None:
        entry |= {"size_bytes": size_bytes, "crc32c": "00000000"}
        (folder / "dataset.json").write_text(json.dumps(document))
    expected = Defect.SHARD_SIZE if size_bytes is None else Defect.RECORD_COUNT
    report = rs.verify(folder)
    assert [error.defect for error in report.defects] == [expected]
    assert report.notices == []
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.inspect(folder)
    assert (caught.value.defect, caught.value.path) == (expected, str(folder / entry["file"]))
    salvaged = rs.salvage(folder, tmp_path / "out")
    assert not salvaged.is_complete
    assert [shard.file is None for shard in salvaged.shards] == [False, True]
