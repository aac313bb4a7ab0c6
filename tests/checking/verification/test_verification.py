"""Verify finds every flipped bit, every truncation, every missing or swapped shard."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.checking.verification import shard_check
from recordsmith.checking.verification import verify_report as verification_report
from recordsmith.dataset import Shard, ShardWriter, column_file
from recordsmith.format.wire import COMPRESSIONS, encode_record
from recordsmith.stores import Location, as_location

from ...places import flip
from ...raising import raises


@pytest.fixture
def tiny(place: Location) -> Location:
    """A packed shard of a few bytes, small enough to damage each of them."""
    path = place / "a.tfrecord"
    with ShardWriter(path) as writer:
        for number in range(3):
            writer.write_example({"x": number})
    return path


def _packed(folder: Location, compression: str, numbered: SimpleNamespace) -> Location:
    numbered.packed(folder, {"train": [2]}, compression)
    (path,) = (folder / "train-*").glob()
    return path


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_good_data_is_good(place: Location, numbered: SimpleNamespace, compression: str) -> None:
    folder = numbered.packed(place, {"train": [2, 0, 3], "test": [1]}, compression)
    shards = (folder / "*.tfrecord*").glob()
    size = sum(path.size() for path in shards)
    report = rs.verify(folder)
    assert report.is_good
    assert (report.record_count, report.shard_count, report.size_bytes) == (6, 4, size)
    assert rs.verify(folder, split="test").record_count == 1
    assert rs.verify([path for path in shards if path.size()]).is_good


@pytest.mark.parametrize("place", ["memory"], indirect=True)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_flipped_bit_in_any_byte_is_found(
    place: Location, numbered: SimpleNamespace, compression: str
) -> None:
    path = _packed(place, compression, numbered)
    good = path.read()
    for at in range(len(good)):
        damaged = bytearray(good)
        damaged[at] ^= 1 << at * 5 % 8
        path.put(bytes(damaged))
        report = rs.verify(place, threads=1)
        assert not report.is_good, f"byte {at}"
        assert {error.path for error in report.defects} == {str(path)}
    path.put(good)
    assert rs.verify(place).is_good


@pytest.mark.parametrize("place", ["memory"], indirect=True)
def test_every_flipped_bit_is_found_without_a_manifest(tiny: Path) -> None:
    good = tiny.read()
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        tiny.put(bytes(damaged))
        report = rs.verify(tiny, threads=1)
        assert not report.is_good, f"bit {bit}"
        # reading never returns the damaged record
        with pytest.raises(rs.CorruptDataError):
            list(rs.open(tiny).records())


@pytest.mark.parametrize("place", ["memory"], indirect=True)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_truncation_is_found(
    place: Location, numbered: SimpleNamespace, compression: str
) -> None:
    path = _packed(place, compression, numbered)
    good = path.read()
    for stop in range(len(good)):
        path.put(good[:stop])
        report = rs.verify(place, threads=1)
        assert not report.is_good, f"cut at {stop}"
        assert {error.path for error in report.defects} == {str(path)}
        with pytest.raises(rs.CorruptDataError):
            rs.open(place)


def test_every_truncation_is_found_without_a_manifest(tiny: Path) -> None:
    good = tiny.read()
    frame = len(good) // 3
    for stop in range(len(good)):
        tiny.put(good[:stop])
        report = rs.verify(tiny, threads=1)
        assert report.is_good == (stop % frame == 0)
        assert report.record_count == stop // frame
        assert [error.defect for error in report.notices] == [rs.Defect.EMPTY_FILE] * (stop == 0)


def test_trailing_bytes_are_found(place: Location, numbered: SimpleNamespace) -> None:
    for compression in COMPRESSIONS:
        folder = place / compression
        path = _packed(folder, compression, numbered)
        good = path.read()
        for more in (b"\0", encode_record(b"more"), good):
            path.put(good + more)
            assert not rs.verify(folder).is_good


def test_damage_does_not_hide_later_defects(tiny: Path) -> None:
    frames = [bytearray(encode_record(bytes([number]))) for number in range(6)]
    for number in (1, 4):
        frames[number][12] ^= 1
    tiny.put(b"".join(frames))
    report = rs.verify(tiny)
    assert report.record_count == 4
    assert [(error.record, error.offset) for error in report.defects] == [
        (number, number * len(frames[0])) for number in (1, 4)
    ]
    assert {error.defect for error in report.defects} == {rs.Defect.PAYLOAD_CRC}


def test_missing_paths_and_splits_raise(place: Location, numbered: SimpleNamespace) -> None:
    with pytest.raises(rs.FileAccessError):
        rs.verify(place / "missing")
    folder = numbered.packed(place / "set", {"train": [1]})
    with pytest.raises(rs.OptionError):
        rs.verify(folder, split="test")


@pytest.mark.parametrize("threads", [1, 2, 4, None])
def test_report_does_not_depend_on_threads(
    place: Location, numbered: SimpleNamespace, threads: int | None
) -> None:
    folder = numbered.packed(place, {"train": [2] * 6})
    for path in (folder / "train-*").glob()[::2]:
        flip(path)
    calls: list[tuple[int, int]] = []
    report = rs.verify(folder, threads=threads, progress=lambda *call: calls.append(call))
    assert [error.path for error in report.defects] == [
        str(path) for path in (folder / "train-*").glob()[::2]
    ]
    assert report.record_count == 9
    total = sum(path.size() for path in (folder / "train-*").glob())
    assert calls[-1] == (total, total)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.parametrize(
    "change", ["none", "payload", "length", "cut short", "records inside", "long record"]
)
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_share_a_large_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, threads: int
) -> None:
    rng = random.Random(threads)
    payloads = [rng.randbytes(rng.randrange(40)) for _ in range(300)]
    if change == "records inside":  # what seems to be a record in the middle is none
        payloads[150] = b"".join(map(encode_record, payloads[:50])) * 4
    elif change == "long record":
        payloads[150] = bytes(5000)
        monkeypatch.setattr(shard_check, "_FULL_BUFFER_BYTES", 1024)
    data = bytearray().join(map(encode_record, payloads))
    if change in {"payload", "length"}:
        start = len(b"".join(map(encode_record, payloads[:200])))
        data[start + (0 if change == "length" else 12)] ^= 1
    elif change == "cut short":
        del data[-3:]
    path = tmp_path / "large.tfrecord"
    path.write_bytes(data)
    in_order = rs.verify(path, threads=threads)
    monkeypatch.setattr(shard_check, "_SHARED_BYTES", 8192)
    monkeypatch.setattr(shard_check, "_BLOCK_BYTES", 64)
    shared = rs.verify(path, threads=threads)
    assert shared.to_json() == in_order.to_json()
    assert shared.is_good == (change in {"none", "records inside", "long record"})


def test_ranges_are_read_by_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.tfrecord"
    path.write_bytes(encode_record(b"value") * 1000 + encode_record(bytes(5000)))
    counts: list[int] = []
    count = shard_check._count_intact

    def noting(*args: Any) -> Any:
        counts.append(count(*args))
        return counts[-1]

    monkeypatch.setattr(shard_check, "_SHARED_BYTES", 8192)
    monkeypatch.setattr(shard_check, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(shard_check, "_count_intact", noting)
    assert rs.verify(path, threads=4).record_count == sum(counts) == 1001
    assert len(counts) == 4
    assert min(counts) > 30


def test_all_defects_are_counted_even_if_not_listed(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification_report, "MAX_DEFECTS_PER_SHARD", 3)
    frame = bytearray(encode_record(b"x"))
    frame[-1] ^= 1
    tiny.put(bytes(frame) * 10)
    report = rs.verify(tiny)
    assert (len(report.defects), report.defect_count, report.record_count) == (3, 10, 0)
    assert not report.is_good


def test_report_as_json(tiny: Path) -> None:
    data = bytearray(tiny.read())
    data[-1] ^= 1
    tiny.put(bytes(data))
    document = json.loads(json.dumps(rs.verify(tiny).to_json()))
    (defect,) = document.pop("defects")
    explanation = document.pop("explanations").pop("payload-crc-mismatch")
    assert explanation.keys() == {"meaning", "advice"}
    assert document == {
        "records": 2,
        "expected": None,
        "shards": 1,
        "size_bytes": len(data),
        "images": 0,
        "deep": False,
        "defect_count": 1,
        "notices": [],
        "unchecked": [],
    }
    assert defect.pop("detail")
    assert defect == {
        "defect": "payload-crc-mismatch",
        "path": str(tiny),
        "record": 2,
        "feature": None,
        "offset": len(data) // 3 * 2,
    }


def test_a_list_with_one_folder(numbered: SimpleNamespace, place: Location) -> None:
    """The manifest is used for folders in a list too."""
    folder = numbered.packed(place / "out", {"train": [3, 2]})
    first, second = (folder / "*.tfrecord").glob()
    second.put(first.read())
    for paths in (folder, [folder], [folder, numbered.packed(place / "more", {"train": [1]})]):
        (error,) = rs.verify(paths).defects
        assert (error.defect, error.path) == (rs.Defect.SWAPPED_SHARD, str(second))
        assert first.name in error.problem
        assert second.name in error.remedy
        with raises(rs.CorruptDataError, defect=rs.Defect.SHARD_SIZE):
            rs.open(paths)


@pytest.mark.parametrize("labels", [b"", None, b"0:other\n"])
def test_labels_that_differ_from_the_manifest(
    numbered: SimpleNamespace, place: Location, labels: bytes | None
) -> None:
    folder = numbered.packed(place / "out", {"train": [3]})
    if labels is None:
        (folder / "labels.txt").delete()
    else:
        (folder / "labels.txt").put(labels)
    (error,) = rs.verify(folder).defects
    assert error.defect is rs.Defect.LABELS


def test_ctrl_c_stops_within_a_block(place: Location) -> None:
    with rs.ShardWriter(place / "a.tfrecord") as writer:
        for _ in range(8):
            writer.write(bytes(1 << 20))
    seen: list[int] = []

    def stop(done: int, total: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rs.verify(place / "a.tfrecord", progress=stop)
    assert len(seen) == 1


@pytest.mark.parametrize("name", ["value label", "value text", "value weight", "count tokens"])
def test_kept_columns_are_compared_with_the_records(tmp_path: Path, name: str) -> None:
    """Those of the author of a dataset may be wrong, with matching checksums."""
    path = tmp_path / "a.tfrecord"
    with ShardWriter(path) as writer:
        for number in range(9):
            values = {"label": number % 3, "text": "ab"[number % 2], "weight": number / 2}
            writer.write_example({**values, "tokens": [1] * (number % 4)})
    rs.index(path, numbers_of=["label", "text", "weight", "tokens"])
    columns = tmp_path / ".recordsmith" / "a.tfrecord.columns"
    before = columns.read_bytes()
    assert rs.verify(path, deep=True).is_good
    assert columns.read_bytes() == before  # it writes nothing
    kept = column_file._parse(Shard(path, ""), as_location(path).info(), as_location(columns))
    forged = kept.columns[name].numbers.copy()
    forged[[3, 4]] = forged[[4, 3]]
    content = {**kept.columns, name: column_file.ShardColumn(forged, kept.columns[name].texts)}
    columns.write_bytes(b"".join(column_file.column_pieces(content, kept.origin)))
    (error,) = rs.verify(path, deep=True).defects
    assert error.defect is rs.Defect.COLUMNS
    assert (error.path, error.feature) == (str(columns), name.split()[1])
    assert rs.verify(path).is_good
    # those of another shard are not used, so they are not wrong
    path.write_bytes(path.read_bytes()[::-1])
    assert all(e.defect is not rs.Defect.COLUMNS for e in rs.verify(path, deep=True).defects)
