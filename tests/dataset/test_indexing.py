"""`rs.index`: own indexes, and text indexes like those of DALI's tfrecord2idx."""

from __future__ import annotations

import os
import shutil
import stat
import struct
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset.shard_index import index_locations, load_index
from recordsmith.format.wire import encode_record

from ..killed_jobs import killed_before
from ..raising import raises

COUNTS = {"a.tfrecord": 5, "b.tfrecord": 1, "c.tfrecord": 0}


def tfrecord2idx(path: Path) -> str:
    """The output of DALI's script, computed in the same way: offset and size of each record."""
    lines = []
    with path.open("rb") as file:
        while True:
            begin = file.tell()
            head = file.read(8)
            if not head:
                return "".join(lines)
            file.seek(4 + struct.unpack("<q", head)[0] + 4, os.SEEK_CUR)
            lines.append(f"{begin} {file.tell() - begin}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shards of 5, 1 and 0 records of any length, one of them empty."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, count in COUNTS.items():
        payloads = [bytes(1000 * number**2) for number in range(count)]
        (folder / name).write_bytes(b"".join(map(encode_record, payloads)))
    return folder


def test_text_equals_the_output_of_other_scripts(folder: Path) -> None:
    report = rs.index(folder, format="dali")
    assert [Path(file.path).name for file in report.files] == [f"{name}.idx" for name in COUNTS]
    assert [file.record_count for file in report.files] == [*COUNTS.values()]
    assert (report.record_count, report.new_count) == (6, 3)
    for name in COUNTS:
        expected = tfrecord2idx(folder / name)
        assert (folder / f"{name}.idx").read_bytes() == expected.encode()
    assert not list(folder.glob(".*.partial"))


def test_text_indexes_are_not_shards(folder: Path) -> None:
    rs.index(folder, format="dali")
    assert len(rs.open(folder)) == len(rs.open(f"{folder}/*")) == 6
    with raises(rs.OptionError, match="text index", option="paths"):
        rs.open(folder / "a.tfrecord.idx")
    records = folder / "records.idx"  # the bytes decide before the name
    records.write_bytes((folder / "a.tfrecord").read_bytes())
    assert len(rs.open(records)) == 5
    assert len(rs.open(folder)) == len(rs.open(f"{folder}/*")) == 11


def test_shards_with_the_same_name_are_refused_before_writing(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "a.tfrecord"
    other.parent.mkdir()
    other.write_bytes(encode_record(b"x"))
    with raises(rs.OptionError, option="to", value=tmp_path / "to", match="same index"):
        rs.index([folder / "a.tfrecord", other], format="dali", to=tmp_path / "to")
    assert not (tmp_path / "to").exists()
    assert rs.index([folder / "a.tfrecord", other], format="dali").new_count == 2


def test_existing_files_are_replaced_only_with_overwrite(folder: Path) -> None:
    mine = folder / "a.tfrecord.idx"
    mine.write_text("0 17\n")
    with raises(rs.OptionError, option="to", match=r"a\.tfrecord\.idx"):
        rs.index(folder, format="dali")
    assert mine.read_text() == "0 17\n"
    assert rs.index(folder, format="dali", overwrite=True).files[0].is_new
    assert mine.read_text() == tfrecord2idx(folder / "a.tfrecord")
    before = mine.stat().st_mtime_ns
    again = rs.index(folder, format="dali", overwrite=True)
    assert not again.new_count
    assert mine.stat().st_mtime_ns == before


def test_damaged_frames_are_reported_and_no_text_is_written(folder: Path) -> None:
    shard = folder / "a.tfrecord"
    data = bytearray(shard.read_bytes())
    data[16 + 8] ^= 1  # the checksum of the second length
    shard.write_bytes(data)
    with raises(rs.CorruptDataError, defect=rs.Defect.LENGTH_CRC, path=shard, record=1):
        rs.index(shard, format="dali")
    shard.write_bytes(data[:10])
    with pytest.raises(rs.CorruptDataError):
        rs.index(shard, format="dali")
    assert list(folder.glob("*idx*")) == []


def test_compressed_shards(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord.gz"
    with rs.ShardWriter(path, compression="gzip") as writer:
        writer.write_example({"a": 1})
        writer.write_example({"a": 2})
    with raises(rs.OptionError, option="paths", value=tmp_path / "x.tfrecord.gz", match="gzip"):
        rs.index(path, format="dali")
    assert rs.index(path).record_count == 2


def test_own_indexes_of_small_shards_are_saved(folder: Path) -> None:
    report = rs.index(folder)
    assert (report.format, report.record_count, report.new_count) == ("recordsmith", 6, 3)
    for file in report.files:
        saved = load_index(Path(file.shard))
        assert saved is not None
        index, location = saved
        assert (file.path, file.record_count) == (str(location), index.record_count)
    again = rs.index(folder)
    assert not again.new_count
    assert [file.path for file in again.files] == [file.path for file in report.files]
    assert rs.index(folder, overwrite=True).new_count == 3
    with (folder / "a.tfrecord").open("ab") as shard:
        shard.write(encode_record(b"more"))
    assert [file.is_new for file in rs.index(folder).files] == [True, False, False]


@pytest.mark.posix
def test_folders_that_cannot_be_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".recordsmith").write_text("a file, where a folder should be")
    (file,) = rs.index(folder / "a.tfrecord").files
    assert file.path == str(index_locations(folder / "a.tfrecord")[1])
    cached = Path(file.path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cached, cached.parent)] == [0o600, 0o700]
    assert not rs.index(folder / "a.tfrecord").new_count
    cached.parent.parent.chmod(0o777)  # others may have replaced it
    with raises(rs.FileAccessError, path=folder / ".recordsmith" / "a.tfrecord.index"):
        rs.index(folder / "a.tfrecord")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "a.tfrecord"))
    with raises(rs.FileAccessError, operation="write"):
        rs.index(folder / "a.tfrecord", overwrite=True)
    with raises(rs.FileAccessError, operation="make folder"):
        rs.index(folder / "a.tfrecord", format="dali", to=folder / "b.tfrecord" / "idx")


@pytest.mark.posix
@pytest.mark.parametrize("format_", ["recordsmith", "dali"])
def test_killed_before_any_change_of_the_file_system(
    folder: Path, tmp_path: Path, format_: Any
) -> None:
    def build(place: Path) -> set[str]:
        rs.index(place, format=format_, overwrite=True)
        return {str(path.relative_to(place)) for path in place.rglob("*")}

    place = tmp_path / "copy"
    for step in range(100):
        shutil.copytree(folder, place)
        if not step:
            wanted = build(place)
        elif killed_before(step, lambda: build(place)):
            assert build(place) == wanted, step
        else:
            break
        shutil.rmtree(place)
    assert step > 4


def test_options(folder: Path, tmp_path: Path) -> None:
    with raises(rs.OptionError, option="format", value="idx") as caught:
        rs.index(folder, format="idx")  # type: ignore[arg-type]
    assert caught.value.expected == "one of recordsmith, dali"
    with raises(rs.OptionError, option="to"):
        rs.index(folder, to=tmp_path)
    with raises(rs.OptionError, value="", match="path"):
        rs.index(folder, format="dali", to="")


def test_the_first_damaged_shard_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.support.work.processor_count", lambda: 4)
    for number in range(9):
        (tmp_path / f"{number}.tfrecord").write_bytes(encode_record(b"x") + b"?" * (number > 1))
    dataset = rs.open(tmp_path)
    for read in (lambda: len(dataset), lambda: rs.index(tmp_path)):
        with raises(rs.CorruptDataError, path=tmp_path / "2.tfrecord"):
            read()
