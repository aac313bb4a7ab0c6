"""Diff finds exactly the changes, independent of order, shards and encoding."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.checking.comparing.diff_report import MAX_LISTED
from recordsmith.dataset import LABELS_NAME, MANIFEST_NAME, labels_to_bytes
from recordsmith.format.wire import COMPRESSIONS

from ...raising import raises


def write(path: Path, payloads: Iterable[bytes], compression: str = "none") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with rs.ShardWriter(path, compression=compression, overwrite=True) as writer:
        for payload in payloads:
            writer.write(payload)
    return path


def row(number: int, **changes: Any) -> dict[str, Any]:
    usual = {"id": number, "name": f"n {number}", "size": number / 2, "tags": ["a", "b"]}
    return usual | changes


def encoded(rows: Iterable[Mapping[str, Any]]) -> list[bytes]:
    return [rs.encode_example(one) for one in rows]


def numbers_of(records: Sequence[Any]) -> list[int]:
    return [record.place.record for record in records]


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_are_counted_as_multisets(tmp_path: Path, a: list[int], b: list[int]) -> None:
    one = write(tmp_path / "a.tfrecord", [b"text %d" % value for value in [9, *a]])
    other = write(tmp_path / "b.tfrecord", [b"text %d" % value for value in [9, *b]])
    report = rs.diff(one, other)
    both = Counter(a) & Counter(b)
    assert report.same_count == report.same_bytes_count == both.total() + 1
    assert report.left_only_count == (Counter(a) - Counter(b)).total()
    assert report.right_only_count == (Counter(b) - Counter(a)).total()
    assert report.changed_count == 0
    assert report.is_equal == (Counter(a) == Counter(b))


@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_edit_is_one_difference(tmp_path: Path, data: Any) -> None:
    count = 30
    order = data.draw(st.permutations(range(count)))
    edited = set(data.draw(st.lists(st.integers(0, count - 1), unique=True, max_size=5)))
    gone = set(data.draw(st.lists(st.integers(0, count - 1), unique=True, max_size=3))) - edited
    new = data.draw(st.integers(0, 3))
    one = write(tmp_path / "a.tfrecord", encoded(map(row, range(count))))
    rows = [row(n, size=-1.0) if n in edited else row(n) for n in order if n not in gone]
    rows += [row(count + number) for number in range(new)]
    for shard in range(3):
        write(tmp_path / "b" / f"a-{shard:05d}-of-00003", encoded(rows[shard::3]))
    report = rs.diff(one, tmp_path / "b", threads=2)
    assert report.same_count == count - len(edited) - len(gone)
    assert (report.changed_count, report.left_only_count, report.right_only_count) == (
        len(edited),
        len(gone),
        new,
    )
    assert [change.a.record for change in report.changes] == sorted(edited)
    assert all(
        [(feature.feature, feature.b) for feature in change.features] == [("size", "-1.0")]
        for change in report.changes
    )
    assert numbers_of(report.left_only) == sorted(gone)
    assert sorted(str(record.key) for record in report.right_only) == [
        str(count + number) for number in range(new)
    ]
    if edited and not new and not gone:
        assert report.by == "id"
        assert report.changed_features == {"size": len(edited)}
    assert report.is_equal == (not edited and not gone and not new)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_order_shards_and_compression_are_ignored(tmp_path: Path, compression: str) -> None:
    payloads = encoded(map(row, range(50)))
    write(tmp_path / "a" / "train-00000-of-00001.tfrecord", payloads)
    for shard in range(4):
        path = tmp_path / "b" / f"train-{shard:05d}-of-00004.tfrecord"
        write(path, payloads[shard * 13 : shard * 13 + 13], compression)
    report = rs.diff(tmp_path / "a", tmp_path / "b")
    assert report.is_equal
    assert report.is_same_order
    assert (report.same_count, report.same_bytes_count) == (50, 50)
    assert (report.b.shard_count, report.b.compression) == (4, compression)
    random.Random(1).shuffle(payloads)
    write(tmp_path / "a" / "train-00000-of-00001.tfrecord", payloads)
    report = rs.diff(tmp_path / "a", tmp_path / "b")
    assert report.is_equal
    assert not report.is_same_order


def test_other_encodings_of_the_same_content(tmp_path: Path, reference: Any) -> None:
    """TensorFlow writes maps in any order; lists may be unpacked."""
    r = reference
    packed = [r.delimited(3, r.delimited(1, r.varint(n))) for n in range(20)]
    loose = [r.delimited(3, r.tag(1, r.VARINT) + r.varint(n)) for n in range(20)]
    text = r.delimited(1, r.delimited(1, b"text"))
    a = [r.example(r.entry(b"id", packed[n]), r.entry(b"t", text)) for n in range(20)]
    b = [r.example(r.entry(b"t", text), r.entry(b"id", loose[n])) for n in range(10)] + a[10:]
    report = rs.diff(write(tmp_path / "a.tfrecord", a), write(tmp_path / "b.tfrecord", b))
    assert report.is_equal
    assert (report.same_count, report.same_bytes_count) == (20, 10)
    assert report.is_same_order
    b[3] = r.example(r.entry(b"t", text), r.entry(b"id", loose[5]))
    report = rs.diff(tmp_path / "a.tfrecord", write(tmp_path / "b.tfrecord", b))
    assert (report.same_count, report.changed_count, report.left_only_count) == (19, 0, 1)
    # the first of two equal records is matched
    assert (numbers_of(report.left_only), numbers_of(report.right_only)) == ([3], [5])


def test_changed_features_are_reported(tmp_path: Path) -> None:
    image = bytes(range(256)) * 4
    a = row(1, image=image, label=3, gone=1, box=[0.25, 0.5])
    b = row(1, image=image[:-9], label=4, new="x", box=[0.25, 0.75], tags=["a"])
    del b["size"]
    c = row(2, image=image)
    report = rs.diff(
        write(tmp_path / "a.tfrecord", encoded([a, c])),
        write(tmp_path / "b.tfrecord", encoded([b, c | {"image": image[::-1]}])),
    )
    assert report.by == "id"
    first, second = report.changes
    assert {change.feature: (change.a, change.b) for change in first.features} == {
        "box": ("[0.25, 0.5]", "[0.25, 0.75]"),
        "gone": ("1", None),
        "label": ("3", "4"),
        "new": (None, '"x"'),
        "image": ("1,024 bytes", "1,015 bytes"),
        "size": ("0.5", None),
        "tags": ('["a", "b"]', '"a"'),
    }
    assert (first.key, first.a.record, first.b.record) == ("1", 0, 0)
    assert [(c.feature, c.a, c.b) for c in second.features] == [
        ("image", "1,024 bytes", "other 1,024 bytes")
    ]
    assert report.changed_features["image"] == 2
    assert {(change.feature, change.what) for change in report.schema} == {
        ("gone", "feature"),
        ("new", "feature"),
        ("size", "present"),
        ("tags", "values"),
    }


def test_sequences(tmp_path: Path) -> None:
    def payload(number: int, words: list[list[str]]) -> bytes:
        return rs.encode_sequence_example({"id": number}, {"words": words})

    a = [payload(n, [["a"], ["b", "c"]]) for n in range(4)]
    b = [payload(2, [["a"], ["b", "d"]]), *a[:2], a[3]]
    report = rs.diff(write(tmp_path / "a.tfrecord", a), write(tmp_path / "b.tfrecord", b))
    assert (report.changed_count, report.by) == (1, "id")
    (change,) = report.changes
    assert (change.a.record, change.b.record) == (2, 0)
    assert [(c.section, c.feature) for c in change.features] == [("feature_lists", "words")]


def test_a_key_must_be_unique(tmp_path: Path) -> None:
    """A feature with the same value in two differing records is not a key."""
    a = [row(n, id=n // 2) for n in range(6)]
    b = [*a[:4], row(4, id=2, size=6.0), row(5, id=2, size=7.0)]
    one = write(tmp_path / "a.tfrecord", encoded(a))
    other = write(tmp_path / "b.tfrecord", encoded(b))
    assert rs.diff(one, other).by == "name"  # id is not unique
    report = rs.diff(one, other, by="id")
    assert (report.by, report.changed_count, report.shared_key_count) == ("id", 0, 2)
    nameless = [{"x": n} for n in range(3)]
    one = write(tmp_path / "a.tfrecord", encoded(nameless))
    other = write(tmp_path / "b.tfrecord", encoded([*nameless[:2], {"x": 7}]))
    report = rs.diff(one, other)
    assert (report.by, report.left_only_count, report.right_only_count) == (None, 1, 1)
    assert [record.key for record in report.left_only + report.right_only] == [None, None]
    assert rs.diff(one, other, by="x").changed_count == 0
    assert "Name one with `--by KEY`" in " ".join(report.content().notes)


def test_records_that_share_their_key_are_counted(tmp_path: Path) -> None:
    a = [row(1), row(1, size=8.0), row(2)]
    b = [row(1, size=9.0), row(1, size=10.0), row(2, size=9.0)]
    report = rs.diff(
        write(tmp_path / "a.tfrecord", encoded(a)),
        write(tmp_path / "b.tfrecord", encoded(b)),
        by="id",
    )
    assert (report.changed_count, report.left_only_count, report.right_only_count) == (1, 2, 2)
    assert report.shared_key_count == 2


def test_an_unknown_key(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", encoded([row(1)]))
    with pytest.raises(rs.OptionError, match="'name'") as caught:
        rs.diff(path, path, by="nam")
    assert (caught.value.option, caught.value.value) == ("by", "'nam'")


def test_splits(tmp_path: Path, numbered: SimpleNamespace) -> None:
    """Moved records are a difference if both datasets have the same splits, not if the splits have
    other names. Copies in several splits are not reported as moved.
    """
    same = encoded([{"same": 1}])
    rows = encoded(map(row, range(10)))

    def splits(name: str, **payloads: list[bytes]) -> Path:
        for split, of_split in payloads.items():
            write(tmp_path / name / f"{split}-00000-of-00001.tfrecord", of_split)
        return tmp_path / name

    a = splits("a", train=rows[:6] + same, test=same + rows[6:])
    b = splits("b", train=same + rows[:5], test=rows[5:] + same)
    report = rs.diff(a, b)
    assert not report.is_equal
    assert (report.same_count, report.moved_count) == (12, 1)
    assert [tuple(move) for move in report.moves] == [("train", "test", 1)]
    assert (report.a.splits, report.b.splits) == (
        {"test": 5, "train": 7},
        {"test": 6, "train": 6},
    )
    assert rs.diff(a, a, split="test").a.record_count == 5
    shards = sorted(a.iterdir())
    report = rs.diff(shards, shards[::-1])
    assert report.is_equal
    assert report.is_same_order
    assert report.moves == ()
    other_names = splits("c", learn=rows[:6] + same, check=same + rows[6:])
    report = rs.diff(a, other_names)
    assert report.is_equal
    assert not report.splits_are_comparable
    assert report.moved_count == 0
    assert sum(move.record_count for move in report.moves) == 12


def test_class_names(tmp_path: Path, numbered: SimpleNamespace) -> None:
    a = numbered.packed(tmp_path / "a", {"train": [3]})
    b = Path(shutil.copytree(a, tmp_path / "b"))
    assert rs.diff(a, b).is_equal
    assert rs.diff(a, b / "train-00000-of-00001.tfrecord").is_equal
    (b / MANIFEST_NAME).unlink()
    (b / LABELS_NAME).unlink()
    assert rs.diff(a, b).is_equal  # its class names are unknown
    (b / LABELS_NAME).write_bytes(labels_to_bytes(("daisy", "rose", "a b")))
    report = rs.diff(a, b)
    assert not report.is_equal
    assert report.class_names_differ
    assert report.to_json()["class_names"]["b"] == ["daisy", "rose", "a b"]


def test_lists_are_limited_and_counts_are_not(tmp_path: Path) -> None:
    count = MAX_LISTED + 20
    report = rs.diff(
        write(tmp_path / "a.tfrecord", encoded(row(n) for n in range(count))),
        write(tmp_path / "b.tfrecord", encoded(row(n, size=-1.0) for n in range(count))),
    )
    assert (report.changed_count, len(report.changes)) == (count, MAX_LISTED)
    assert report.changed_features == {"size": count}
    assert [change.a.record for change in report.changes] == list(range(MAX_LISTED))


def test_a_dataset_without_records(tmp_path: Path, numbered: SimpleNamespace) -> None:
    none = numbered.packed(tmp_path / "none", {"train": [0]})
    some = numbered.packed(tmp_path / "some", {"train": [2]})
    assert rs.diff(none, none).is_equal
    report = rs.diff(none, some)
    assert (report.left_only_count, report.right_only_count, report.schema) == (0, 2, ())


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_damage_raises_an_error_with_its_place(
    tmp_path: Path, numbered: SimpleNamespace, compression: str
) -> None:
    good = numbered.write_shard(tmp_path / "a.tfrecord", range(5))
    bad = numbered.write_shard(tmp_path / "b.tfrecord", range(5), compression)
    bad.write_bytes(bad.read_bytes()[:-3])
    if compression == "none":
        with raises(rs.CorruptDataError, path=bad, record=4):
            rs.diff(good, bad)
    data = bytearray(good.read_bytes())
    data[30] ^= 1
    bad.write_bytes(data)
    with raises(rs.CorruptDataError, defect=rs.Defect.PAYLOAD_CRC, record=0):
        rs.diff(good, bad, threads=1)
    bad.write_bytes(b"")
    assert not rs.diff(bad, good).is_equal
    with pytest.raises(rs.FileAccessError):
        rs.diff(good, tmp_path / "none.tfrecord")


def test_progress_reaches_its_total(tmp_path: Path, numbered: SimpleNamespace) -> None:
    one = numbered.write_shard(tmp_path / "a.tfrecord", range(40))
    other = numbered.write_shard(tmp_path / "b.tfrecord", range(2, 44), "gzip")
    calls: list[tuple[int, int]] = []
    rs.diff(one, other, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > one.stat().st_size
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
