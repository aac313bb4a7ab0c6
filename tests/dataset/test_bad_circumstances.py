"""Files that grow, vanish, are too large or too many while they are read or written.

No circumstance gives a wrong record or a crash; each gives what was there, or an error that says
what happened.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.format.wire import encode_record, encode_records
from recordsmith.support.errors import MissingFileError

from .. import numbered_examples as numbered
from ..raising import raises

PAYLOADS = [bytes([number]) * 400_000 for number in range(8)]  # more than is read at a time


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "a.tfrecord"
    path.parent.mkdir()
    path.write_bytes(encode_records(PAYLOADS))
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


# ---- a file that changes while it is read --------------------------------------------------------


@pytest.mark.parametrize("size", [3, 12, 15, 19])
def test_partial_record_appended_while_reading_is_an_error(shard: Path, size: int) -> None:
    records = rs.open(shard).records()
    seen = [next(records)]
    append(shard, encode_record(b"more")[:size])
    with pytest.raises(rs.CorruptDataError) as caught:
        seen.extend(records)
    assert seen == PAYLOADS
    assert caught.value.record == len(PAYLOADS)
    assert caught.value.path == str(shard)


def test_packed_shard_that_grows_while_reading_is_an_error(tmp_path: Path) -> None:
    folder = numbered.packed(tmp_path, {"train": [30_000]})
    path = folder / "train-00000-of-00001.tfrecord"
    dataset = iter(rs.open(folder))
    next(dataset)
    append(path, encode_record(b""))
    with raises(rs.CorruptDataError, defect=rs.Defect.RECORD_COUNT):
        for _ in dataset:
            pass
    assert {error.defect for error in rs.verify(folder).defects} == {rs.Defect.SHARD_SIZE}


def test_shard_deleted_while_reading(tmp_path: Path, shard: Path) -> None:
    """An open file is read to its end; the next file is missing."""
    second = shard.with_name("b.tfrecord")
    second.write_bytes(shard.read_bytes())
    records = rs.open([shard, second]).records()
    seen = [next(records)]
    shard.unlink()
    second.unlink()
    with raises(MissingFileError, path=second):
        seen.extend(records)
    assert seen == PAYLOADS


def test_shard_deleted_before_reading(shard: Path) -> None:
    dataset = rs.open(shard)
    shard.unlink()
    for job in (
        lambda: len(dataset),
        lambda: list(dataset),
        lambda: dataset[0],
        lambda: dataset.read_records([0, 1]),
        lambda: rs.inspect(shard),
        lambda: rs.index(shard),
        lambda: list(rs.Loader(dataset, {"at": rs.Position()}, batch_size=2)),
    ):
        with pytest.raises(MissingFileError):
            job()


# ---- two at once ---------------------------------------------------------------------------------


# ---- no room, no rights --------------------------------------------------------------------------


@contextmanager
def no_room() -> Iterator[None]:
    """Limit files to 64 bytes, like a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.posix
@pytest.mark.parametrize("format_", ["recordsmith", "dali"])
def test_no_space_for_a_requested_index(shard: Path, format_: Any) -> None:
    with no_room(), pytest.raises(rs.FileAccessError) as caught:
        rs.index(shard, format=format_)
    assert caught.value.operation == "write"
    left = [path for path in shard.parent.rglob("*") if path.is_file()]
    assert left == [shard]


READ_ONLY = """
import os, sys
import recordsmith as rs
import recordsmith.stores.cache  # the other user may not be able to read the package

folder, other = sys.argv[1:]

def read(path):
    assert len(rs.open(path)) == 100
    assert rs.open(path)[5]["id"][0] == 5
    assert sum(1 for _ in rs.open(path)) == 100
    assert rs.inspect(path).record_count == 100
    assert rs.verify(path).is_good
    for batch in rs.Loader(rs.open(path), {"at": rs.Position()}, batch_size=4):
        assert len(batch["at"]) == 4

def write(path):
    writer = lambda: rs.ShardWriter(path + "/b.tfrecord").close()
    index = lambda: rs.index(path + "/a.tfrecord")
    dali = lambda: rs.index(path + "/a.tfrecord", format="dali")
    export = lambda: rs.export(path + "/a.tfrecord", path + "/out", "parquet")
    pack = lambda: rs.pack(rs.Rows([{"a": 1}]), path + "/packed")
    sheet = lambda: rs.sheet(path + "/a.tfrecord", path + "/sheet.png", count=1)
    return dict(writer=writer, index=index, dali=dali, export=export, pack=pack, sheet=sheet)

read(other)  # imports everything that is needed
for name, job in write(other).items():
    job()
if os.geteuid() == 0:
    try:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    except OSError:  # for example in a container with a single user
        raise SystemExit("cannot run as another user") from None
    if not os.access(folder, os.R_OK | os.X_OK):  # temporary files are in a folder of root
        raise SystemExit("cannot run as another user")
read(folder)
for name, job in write(folder).items():
    try:
        job()
    except rs.FileAccessError as error:
        assert isinstance(error, PermissionError), error
        assert error.path.startswith(folder), error
        assert error.operation != "read", error
    else:
        raise SystemExit(f"{name} wrote to a folder that cannot be written")
print("done")
"""


@pytest.mark.posix
def test_folders_that_cannot_be_written() -> None:
    """Reading works; jobs that write raise. Run as another user, as root may write anywhere."""
    pixel = {"image/encoded": b"...", "image/format": "raw", "image/height": 1, "image/width": 1}
    examples = [
        rs.encode_example({"id": [number] * 20_000, "image/channels": 3, **pixel})
        for number in range(100)
    ]
    with tempfile.TemporaryDirectory() as root:
        folder, other = Path(root) / "folder", Path(root) / "other"
        for place in (folder, other):
            place.mkdir()
            (place / "a.tfrecord").write_bytes(encode_records(examples))
            (place / "a.tfrecord").chmod(0o444)
        Path(root).chmod(0o755)
        folder.chmod(0o555)
        try:
            job = subprocess.run(
                [sys.executable, "-c", READ_ONLY, str(folder), str(other)],
                env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            folder.chmod(0o755)
        if job.stderr == "cannot run as another user\n":
            pytest.skip(job.stderr.strip())
        assert job.stdout == "done\n", job.stderr
        assert os.listdir(folder) == ["a.tfrecord"]


# ---- too many, too large, nothing ----------------------------------------------------------------


def test_a_record_of_more_than_two_gigabytes(tmp_path: Path, reference: Any) -> None:
    """Records after it are found; it takes no memory until it is read."""
    length = 2**31 + 5
    path = tmp_path / "a.tfrecord"
    behind = rs.encode_example({"id": 7})
    with path.open("wb") as file:
        file.write(encode_record(b"before") + reference.header(length))
        file.seek(length + 4, os.SEEK_CUR)  # a hole; the checksum of the payload is wrong
        file.write(encode_record(behind))
    if path.stat().st_blocks * 512 > 2**20:
        pytest.skip("this file system has no holes")
    dataset = rs.open(path)
    assert len(dataset) == 3
    assert records_of(dataset).record_sizes([0, 1, 2]).tolist() == [6, length, len(behind)]
    assert records_of(dataset).read_record(2) == behind
    assert rs.index(path).record_count == 3
    rs.index(path, format="dali")
    assert path.with_name("a.tfrecord.idx").read_text().splitlines()[1] == f"22 {length + 16}"


@pytest.mark.parametrize("is_packed", [True, False])
def test_empty_dataset(tmp_path: Path, *, is_packed: bool) -> None:
    if is_packed:
        numbered.packed(tmp_path, {"train": [0, 0]})
    else:
        for name in ("a.tfrecord", "b.tfrecord"):
            (tmp_path / name).touch()
    dataset = rs.open(tmp_path)
    assert len(dataset) == 0
    assert list(dataset) == list(dataset.records()) == list(dataset.batches(3)) == []
    assert dataset.read_records([]).tolist() == []
    assert (dataset.schema.payload, dataset.schema.record_count) == ("none", 0)
    with pytest.raises(IndexError):
        dataset[0]
    assert rs.inspect(tmp_path).record_count == 0
    assert rs.index(tmp_path).record_count == 0
    report = rs.verify(tmp_path)
    assert report.is_good
    assert bool(report.notices) != is_packed  # the manifest lists no records: nothing to notice
    assert list(rs.Loader(dataset, {"at": rs.Position()}, batch_size=2)) == []
