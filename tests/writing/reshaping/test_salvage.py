"""Salvage: intact records become a valid dataset, and everything lost is reported."""

from __future__ import annotations

import errno
import gzip
import importlib.util
import io
import json
import os
import sys
import zlib
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import LABEL_MAP_NAME, begun_location, label_map_to_bytes
from recordsmith.format.example import SchemaSurvey
from recordsmith.format.wire import (
    LostBytes,
    Repair,
    encode_records,
    inflate_damaged_stream,
    read_records,
)
from recordsmith.stores import Location
from recordsmith.stores.local.reader import LocalReader
from recordsmith.support.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    OptionError,
    accessing,
)
from recordsmith.writing import SalvagedShard
from recordsmith.writing.reshaping.salvage import MAX_LISTED

from ... import numbered_examples as numbered
from ...places import change, contents, visible
from ...raising import raises

SHARD = "train-00000-of-00002.tfrecord"
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return numbered.packed(tmp_path / "in", {"train": [20, 10], "validation": [5]})


@pytest.fixture
def stored(place: Location) -> Location:
    return numbered.packed(place / "in", {"train": [20, 10], "validation": [5]})


@pytest.fixture
def damage() -> ModuleType:
    """The program that damages and counts."""
    spec = importlib.util.spec_from_file_location(
        "salvage_damage", BENCHMARKS / "salvage_damage.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_every_way_of_damage(damage, capsys: pytest.CaptureFixture[str]) -> None:
    assert damage.main(["--records", "120", "--damages", "25", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    assert "nothing is missing" in out
    lines = [line.split(" | ") for line in out.splitlines() if line.startswith("| ")]
    assert len(lines) == 2 + 9
    assert all(int(line[2].replace(",", "")) > 50 for line in lines[2:])


@pytest.mark.parametrize("held_bytes", [1 << 24, 50])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_the_schema_is_that_of_what_is_written(
    held_bytes: int, compression: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.format.wire.recovery.LONGEST_HELD_BYTES", held_bytes)
    monkeypatch.setattr("recordsmith.format.wire.recovery.BLOCK_BYTES", 64)
    path = tmp_path / "shard.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(40):
            writer.write_example({"id": number, "text": "x" * (number * 7 % 60), f"k{number}": 1.5})
    frame = 16 + len(rs.encode_example({"id": 0, "text": "", "k0": 1.5}))

    def damage(data: bytearray) -> None:
        data[frame] ^= 4  # in the length of the second record: turned back
        data[frame // 2] ^= 255  # in the payload of the first: lost

    change(path, damage)
    if compression:
        path.write_bytes(gzip.compress(path.read_bytes()))
    report = rs.salvage(path, tmp_path / "out")
    assert (report.record_count, report.repair_count) == (39, 1)
    counted = SchemaSurvey()
    for payload in rs.open(tmp_path / "out").records():
        counted.update(payload, np.array([0]), np.array([len(payload)]))
    manifest = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert manifest["schema"] == counted.finish().to_json()
    assert rs.verify(tmp_path / "out").is_good


@pytest.mark.parametrize("has_one", [True, False])
def test_a_label_map_is_copied(stored: Location, place: Location, *, has_one: bool) -> None:
    if has_one:
        (stored / LABEL_MAP_NAME).put(label_map_to_bytes(numbered.class_names))
    rs.salvage(stored, place / "out")
    names = visible(stored).keys()
    assert (LABEL_MAP_NAME in names) == has_one
    assert visible(place / "out").keys() == names
    if has_one:
        written = (place / "out" / LABEL_MAP_NAME).read()
        assert written == label_map_to_bytes(numbered.class_names)


def test_an_undamaged_dataset_comes_out_as_it_is(stored: Location, place: Location) -> None:
    before = contents(stored)
    report = rs.salvage(stored, place / "out")
    assert report.is_complete
    assert report.record_count == report.expected_count == 35
    assert contents(stored) == before
    after = contents(place / "out")
    for name in before:
        if name != "dataset.json":
            assert after[name] == before[name]
    old, new = rs.open(stored), rs.open(place / "out")
    assert new.schema == old.schema
    assert new.class_names == old.class_names
    assert rs.verify(place / "out").is_good


def test_lost_and_repaired_records_are_reported(stored: Location, place: Location) -> None:
    borders = [0]
    for payload in rs.open(stored / SHARD).records():
        borders.append(borders[-1] + len(payload) + 16)

    def edit(data: bytearray) -> None:
        data[borders[3] + 20] ^= 4  # a payload
        data[borders[5] + 1] ^= 2  # a length
        data[borders[8] - 1] ^= 128  # a checksum, of record 7
        data[borders[10] + 2 : borders[11] + 30] = bytes(borders[11] - borders[10] + 28)

    change(stored / SHARD, edit)
    progress: list[tuple[int, int]] = []
    report = rs.salvage(
        stored, place / "out", progress=lambda done, total: progress.append((done, total))
    )
    assert not report.is_complete
    assert report.record_count == 32
    assert report.expected_count == 35
    first = report.shards[0]
    assert (first.record_count, first.expected_count, first.file) == (17, 20, SHARD)
    assert first.lost == [
        LostBytes(borders[3], borders[4], Defect.PAYLOAD_CRC),
        LostBytes(borders[10], borders[12], Defect.LENGTH_CRC),
    ]
    assert first.repairs == [
        Repair(borders[5] + 1, 1, "length"),
        Repair(borders[8] - 1, 7, "payload-crc"),
    ]
    assert [shard.is_complete for shard in report.shards] == [False, True, True]
    ids = numbered.ids_of(rs.open(place / "out"))
    assert ids == [number for number in range(35) if number not in (3, 10, 11)]
    for example, number in zip(rs.open(place / "out"), ids, strict=True):
        numbered.assert_is_example(example, number)
    assert rs.verify(place / "out").is_good
    assert rs.inspect(place / "out").to_json()["features"]["id"]["present"] == 32
    total = sum(shard.size_bytes for shard in report.shards)
    assert progress[-1] == (total, total)
    assert progress == sorted(progress)
    document = json.loads(json.dumps(report.to_json()))
    assert document["shards"][0]["lost"][0] == {
        "start": borders[3],
        "stop": borders[4],
        "defect": "payload-crc-mismatch",
    }


def test_one_split(stored: Location, place: Location) -> None:
    rs.salvage(stored, place / "out", split="validation")
    assert numbered.ids_of(rs.open(place / "out")) == [30, 31, 32, 33, 34]
    with raises(OptionError, option="split", value="test"):
        rs.salvage(stored, place / "other", split="test")


def test_a_shard_of_which_nothing_is_left(stored: Location, place: Location) -> None:
    (stored / SHARD).put(b"<html><body>404</body></html>")
    report = rs.salvage(stored, place / "out")
    assert not report.is_complete
    assert report.shards[0].file is None
    assert "an HTML page" in report.shards[0].problem
    assert report.expected_count == 35
    assert numbered.ids_of(rs.open(place / "out")) == list(range(20, 35))
    assert not (place / "out" / SHARD).exists()
    assert rs.verify(place / "out").is_good


def test_a_missing_shard(stored: Location, place: Location) -> None:
    (stored / SHARD).delete()
    report = rs.salvage(stored, place / "out")
    assert report.record_count == 15
    assert not report.is_complete
    assert len(report.missing) == 1
    assert SHARD in report.missing[0]


def test_around_a_broken_manifest(stored: Location, place: Location) -> None:
    (stored / "dataset.json").put(b'{"format": "recordsmith-da')
    (stored / SHARD).put((stored / SHARD).read()[:-3])
    report = rs.salvage(stored, place / "out")
    assert "broken-manifest" in report.notices[0]
    assert report.expected_count is None
    assert numbered.ids_of(rs.open(place / "out")) == [*range(19), *range(20, 35)]
    assert rs.open(place / "out").class_names == numbered.class_names


def test_around_a_job_that_was_stopped(stored: Location, place: Location) -> None:
    (stored / "dataset.json").delete()
    (stored / "train-00001-of-00002.tfrecord").delete()
    begun_location(stored).put(b"{}")
    report = rs.salvage(stored, place / "out")
    assert "unfinished-dataset" in report.notices[0]
    assert len(report.missing) == 1
    assert numbered.ids_of(rs.open(place / "out")) == [*range(20), *range(30, 35)]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards(place: Location, compression: str) -> None:
    folder = numbered.packed(place / "in", {"train": [2000, 10]}, compression)
    shard = (folder / "train-00000*").glob()[0]
    size = shard.size()
    change(shard, lambda data: data.__setitem__(slice(size // 2, size // 2 + 20), bytes(20)))
    progress: list[tuple[int, int]] = []
    report = rs.salvage(folder, place / "out", progress=lambda *done: progress.append(done))
    first = report.shards[0]
    assert 200 < first.record_count < 2000
    assert first.compression == compression
    assert first.breaks[0].defect is Defect.BROKEN_COMPRESSION
    assert size // 2 - 64 <= first.breaks[0].start < first.breaks[0].stop == size
    assert sorted(path.name for path in (place / "out" / "train*").glob()) == sorted(
        path.name for path in (folder / "train*").glob()
    )
    ids = numbered.ids_of(rs.open(place / "out"))
    assert ids[: first.record_count - 5] == list(range(first.record_count - 5))
    assert ids[-10:] == list(range(2000, 2010))
    inspected = rs.inspect(place / "out")
    assert inspected.compression == compression
    assert rs.verify(place / "out").is_good
    assert progress[-1][0] == progress[-1][1]


def test_a_compressed_shard_without_its_end_mark(place: Location) -> None:
    path = numbered.write_shard(place / "a.tfrecord.gz", range(10), "gzip")
    change(path, lambda data: data.__delitem__(slice(-8, None)))
    report = rs.salvage(path, place / "out")
    assert report.record_count == 10
    assert not report.is_complete  # records may be missing
    size = path.size()
    assert report.shards[0].breaks == [LostBytes(size, size, Defect.TRUNCATED_COMPRESSION)]


def test_members_behind_a_break(place: Location) -> None:
    members = [
        gzip.compress(encode_records([bytes([number, i]) * 50 for i in range(100)]), mtime=0)
        for number in range(3)
    ]
    second = bytearray(members[1])
    second[30:50] = b"\x1f\x8b\x08" + bytes(17)  # looks like a member but is not
    path = place / "a.tfrecord.gz"
    path.put(bytes(members[0] + second + members[2]))
    report = rs.salvage(path, place / "out")
    with gzip.open((place / "out" / path.name).open_read()) as file:
        records = list(read_records(file))
    assert len(records) == report.record_count
    assert records[:100] == [bytes([0, i]) * 50 for i in range(100)]
    assert records[-100:] == [bytes([2, i]) * 50 for i in range(100)]
    (lost,) = report.shards[0].breaks
    assert lost.stop == len(members[0]) + len(second)


def test_decompression_bombs_are_cut(tmp_path: Path) -> None:
    data = zlib.compress(bytes(1 << 20))
    pieces = list(inflate_damaged_stream(io.BytesIO(data), "zlib", max_bytes=1000))
    assert pieces[-1].defect is Defect.DECOMPRESSION_LIMIT


@pytest.mark.parametrize(
    ("content", "defect", "text"),
    [
        (b"just a text\n" * 10, Defect.NOT_A_TFRECORD, "text file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), Defect.NOT_A_TFRECORD, "PNG"),
        (bytes(500), Defect.NOT_A_TFRECORD, "zeros"),
        (bytes(range(250, 256)) * 40, Defect.NOT_A_TFRECORD, "no record with"),
        (gzip.compress(b"just a text", mtime=0), Defect.NOT_A_TFRECORD, "gzip"),
    ],
)
def test_nothing_to_recover(place: Location, content: bytes, defect: Defect, text: str) -> None:
    path = place / "a.tfrecord"
    path.put(content)
    with raises(CorruptDataError, match=text, defect=defect, path=path):
        rs.salvage(path, place / "out")
    assert not (place / "out").is_folder()


def test_all_shards_are_missing(stored: Location, place: Location) -> None:
    for path in (stored / "*.tfrecord").glob():
        path.delete()
    with raises(CorruptDataError, defect=Defect.MISSING_SHARD):
        rs.salvage(stored, place / "out")
    assert not (place / "out").is_folder()


def test_a_manifest_without_shards(packed: Path, tmp_path: Path) -> None:
    path = packed / "dataset.json"
    document = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**document, "splits": {}}), "utf-8")
    with raises(CorruptDataError, defect=Defect.BROKEN_MANIFEST):
        rs.salvage(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_dataset_without_records(tmp_path: Path) -> None:
    folder = numbered.packed(tmp_path / "in", {"train": [0]})
    report = rs.salvage(folder, tmp_path / "out")
    assert report.is_complete
    assert len(rs.open(tmp_path / "out")) == 0


def test_invalid_folders(packed: Path, tmp_path: Path) -> None:
    for out in (packed, packed / "." / ""):
        with raises(OptionError, option="out"):
            rs.salvage(packed, out)
    around = tmp_path / "in" / ".." / "in"
    with raises(
        OptionError, option="out", value=tmp_path / "in/../in", match=f"{around} is .* {packed}"
    ):
        rs.salvage(packed, around)
    with raises(
        OptionError, option="out", value=tmp_path / "in", match=f"input file {packed / SHARD}"
    ):
        rs.salvage(packed / SHARD, packed)
    for paths in (packed, [packed]):
        with raises(
            OptionError, option="out", value=tmp_path / "in/deep/out", match=f"lies in .* {packed}"
        ):
            rs.salvage(paths, packed / "deep" / "out")
    assert not (packed / "deep").exists()
    with raises(OptionError, option="out", value=tmp_path / "in/labels.txt", match="file"):
        rs.salvage(packed, packed / "labels.txt")
    with raises(OptionError, option="threads", value=0):
        rs.salvage(packed, tmp_path / "out", threads=0)
    with pytest.raises(FileAccessError):
        rs.salvage(tmp_path / "nowhere", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_shards_of_one_name(packed: Path, tmp_path: Path) -> None:
    numbered.packed(tmp_path / "other", {"train": [2, 2]})
    for paths in ([packed, tmp_path / "other"], [packed / SHARD, packed / SHARD]):
        with raises(OptionError, option="paths", value=Path(SHARD).name):
            rs.salvage(paths, tmp_path / "out")


@pytest.mark.posix
def test_names_that_a_manifest_may_not_have(tmp_path: Path) -> None:
    path = numbered.write_shard(tmp_path / "10:30.tfrecord", range(3))
    rs.salvage(path, tmp_path / "out")
    assert (tmp_path / "out" / "10_30.tfrecord").exists()
    assert len(rs.open(tmp_path / "out")) == 3


def test_existing_datasets_are_kept(stored: Location, place: Location) -> None:
    out = numbered.packed(place / "out", {"train": [3], "test": [3]})
    before = contents(out)
    with raises(OptionError, option="out", value=place / "out", match="overwrite"):
        rs.salvage(stored, out)
    assert contents(out) == before
    rs.salvage(stored, out, overwrite=True)
    assert numbered.ids_of(rs.open(out)) == list(range(35))
    assert not (out / "test-00000-of-00001.tfrecord").exists()
    again = contents(out)
    rs.salvage(stored, out)  # the same job, again
    assert contents(out) == again


def test_the_same_job_again_gives_the_same(packed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = rs.salvage(packed, out)
    before = contents(out)
    (out / SHARD).write_bytes(b"short")
    assert rs.salvage(packed, out).to_json() == first.to_json()
    assert contents(out) == before
    os.utime(packed / SHARD, ns=(1, 1))
    with raises(OptionError, option="out", value=tmp_path / "out", match="overwrite"):
        rs.salvage(packed, out)


@pytest.mark.parametrize("step", ["open", "read"])
@pytest.mark.parametrize(
    "number", [errno.EMFILE, errno.ENFILE, errno.EACCES, errno.ESTALE, errno.ENOMEM, errno.EIO]
)
def test_what_the_system_refuses_is_not_damage(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    """Nothing is noted, so that the same job rescues everything once the system allows it."""
    name = "__init__" if step == "open" else "readinto"
    original = getattr(LocalReader, name)

    def refused(file: LocalReader, *arguments: Any, **options: Any) -> Any:
        path = str(arguments[0] if step == "open" else file.name)
        if path != str(packed / SHARD):
            return original(file, *arguments, **options)
        with accessing(path) if step == "open" else nullcontext():
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(LocalReader, name, refused, raising=False)
    with raises(FileAccessError, errno=number, filename=str(packed / SHARD)):
        rs.salvage(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    report = rs.salvage(packed, tmp_path / "out")
    assert report.is_complete


def test_long_lists_are_cut_and_counted() -> None:
    shard = SalvagedShard(Path("a"), "train")
    for number in range(MAX_LISTED + 5):
        shard.add_lost(LostBytes(2 * number, 2 * number + 1, Defect.LENGTH_CRC))
        shard.add_repair(Repair(number, 0, "length"))
    assert len(shard.lost) == len(shard.repairs) == MAX_LISTED
    assert shard.lost_count == shard.lost_bytes == shard.repair_count == MAX_LISTED + 5
