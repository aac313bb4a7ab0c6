"""A comparison on an engine finds what it finds in threads."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import Shard
from recordsmith.engines import Processes
from recordsmith.examining.diff import comparing

from ...raising import raises
from ...repeating_engine import KilledProcesses, RepeatingEngine, plain


def _assert_equal(a: Any, b: Any, engine: Any = None, **options: Any) -> Any:
    expected = rs.diff(a, b, **options)
    found = rs.diff(a, b, engine=engine or RepeatingEngine(), **options)
    assert plain(found) == plain(expected)
    assert found.to_json() == expected.to_json()
    return found


def _write(folder: Path, shards: Iterable[Iterable[bytes]], split: str = "train") -> Path:
    folder.mkdir(exist_ok=True)
    shards = list(shards)
    for number, payloads in enumerate(shards):
        path = folder / f"{split}-{number:05d}-of-{len(shards):05d}.tfrecord"
        with rs.ShardWriter(path) as writer:
            for payload in payloads:
                writer.write(payload)
    return folder


def _row(number: int, **changes: Any) -> bytes:
    usual = {"id": number, "name": f"n {number}", "size": number / 2, "tags": ["a", "b"]}
    return rs.encode_example(usual | changes)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """Datasets with every difference: changed, renamed, lone, moved and repeated records."""
    rows = {number: _row(number) for number in range(120)}
    a = _write(tmp_path / "a", [[rows[at] for at in range(shard, 90, 3)] for shard in range(3)])
    _write(a, [[rows[at] for at in range(90, 120)]], "test")
    rows |= {number: _row(number, size=-1.0) for number in (3, 30, 31)}
    rows |= {5: _row(500, name="n 5"), 7: _row(7, size=0.1, name="other", new=b"x" * 5000)}
    del rows[17], rows[99]
    b = [*rows.values(), rows[20], _row(600), b"no example"]
    random.Random(2).shuffle(b)
    _write(tmp_path / "b", [b[:50], [], b[50:]])
    _write(tmp_path / "b", [[rows[8], rows[101]]], "test")
    return a, tmp_path / "b"


@pytest.mark.parametrize("by", [None, "id", "name"])
@pytest.mark.parametrize("limit", [comparing.DIGESTS_AT_ONCE, 40])
def test_every_difference(
    both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, by: str | None, limit: int
) -> None:
    monkeypatch.setattr(comparing, "DIGESTS_AT_ONCE", limit)
    monkeypatch.chdir(both[0].parent)
    found = _assert_equal("a", "b", by=by)  # paths in the report are as typed
    assert min(found.changed_count, found.left_only_count, found.right_only_count) > 0
    assert found.moved_count
    assert _assert_equal("a", "a", by=by).is_equal


def test_some_records(both: tuple[Path, Path]) -> None:
    a, b = map(rs.open, both)
    _assert_equal(a[10:70], b[3:100:3])
    _assert_equal(a.select([1, 5, 90]), b)
    _assert_equal(*both, split="test")


values = (
    st.integers(0, 3) | st.sampled_from([0.5, b"x", b"\xff"]) | st.lists(st.integers(0, 2))
).filter(lambda value: value != [])
records = st.dictionaries(st.sampled_from(["id", "a", "b"]), values, max_size=3)
shards = st.lists(st.lists(records, max_size=6), min_size=1, max_size=3)


@settings(max_examples=40)
@given(shards, shards, st.integers(0, 3))
def test_any_records(
    tmp_path_factory: pytest.TempPathFactory, a: Any, b: Any, sequences: int
) -> None:
    def encoded(record: Any, number: int) -> bytes:
        if number < sequences:
            return rs.encode_sequence_example(record, {"steps": [[1], [2, number]]})
        return rs.encode_example(record)

    folder = tmp_path_factory.mktemp("diff")
    _assert_equal(
        *(
            _write(folder / name, [[encoded(*one[::-1]) for one in enumerate(of)] for of in side])
            for name, side in (("a", a), ("b", b))
        )
    )


def test_a_killed_worker(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = KilledProcesses(monkeypatch)
    _assert_equal(*both, engine=engine)
    assert engine.killed == 1


def test_no_shard_is_read_here(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rs.diff(*both)
    datasets = [*map(rs.open, both)]
    monkeypatch.setattr(Shard, "open_read", None)
    assert plain(rs.diff(*datasets, engine=Processes(2))) == plain(expected)


def test_files_of_other_programs(zoo_row: dict[str, Any], zoo: Path, tmp_path: Path) -> None:
    path = zoo / zoo_row["file"]
    if zoo_row["tf_error"] is not None:
        with pytest.raises(rs.RecordsmithError):
            rs.diff(path, path, engine=RepeatingEngine())
        return
    other = tmp_path / "other.tfrecord"
    with rs.ShardWriter(other) as writer:
        for payload in list(rs.open(path).records())[::-2]:
            writer.write(payload)
    _assert_equal(path, other)


def test_damage(both: tuple[Path, Path]) -> None:
    path = max(both[1].glob("train*"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with raises(rs.CorruptDataError, path=path, defect=rs.Defect.PAYLOAD_CRC):
        rs.diff(*both, engine=RepeatingEngine())


def test_a_worker_that_sees_another_file(both: tuple[Path, Path]) -> None:
    path = max(both[1].glob("train*"))
    with raises(rs.FileAccessError, path=path, errno=errno.ESTALE):
        rs.diff(*both, engine=RepeatingEngine(lambda _: os.utime(path, ns=(1, 1))))
