"""Jobs that are killed before any change, or run out of disk, and are run again."""

from __future__ import annotations

import errno
import importlib
import os
from itertools import count
from pathlib import Path

import pytest

import recordsmith as rs

from ... import numbered_examples as numbered
from ...killed_jobs import killed_before
from ...places import visible
from ...raising import raises


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize(
    ("compression", "options"),
    [
        ("none", {"shards": 2}),
        ("gzip", {"shards": 1, "shuffle": True, "splits": {"a": 0.5, "b": 0.5}}),
    ],
)
def test_killed_before_any_change(tmp_path: Path, compression: str, options) -> None:
    numbered.packed(tmp_path / "in", {"train": [30, 20], "test": [5]}, compression)
    rs.reshard(tmp_path / "in", tmp_path / "plain", **options)
    expected = visible(tmp_path / "plain")
    for step in count(1):
        out = tmp_path / str(step)

        def reshard() -> None:
            rs.reshard(tmp_path / "in", out, threads=1, **options)  # noqa: B023 - in this round

        killed = killed_before(step, reshard)
        if out.exists():
            shown = visible(out)  # what has its final name is whole
            assert all(shown[name] == expected[name] for name in shown)
        reshard()
        assert visible(out) == expected, step
        if not killed:
            break
    assert step > 20


@pytest.mark.posix
def test_a_full_disk_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbered.packed(tmp_path / "in", {"train": [100]})
    real, left = os.fsync, 9  # three of a shard

    def full(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with raises(rs.FileAccessError, errno=errno.ENOSPC):
        rs.reshard(tmp_path / "in", tmp_path / "out", shards=5, threads=1)
    assert os.listdir(tmp_path / "out") == [".recordsmith"]
    assert len(list((tmp_path / "out" / ".recordsmith").glob("*.done"))) == 3
    monkeypatch.setattr(os, "fsync", real)
    kept = {
        path.name: path.stat().st_mtime_ns
        for path in (tmp_path / "out" / ".recordsmith").glob("*.tfrecord.partial")
    }
    assert len(kept) == 3
    report = rs.reshard(tmp_path / "in", tmp_path / "out", shards=5, threads=1)
    assert (report.reused_count, report.shard_count) == (3, 5)
    for name, written in kept.items():
        assert (tmp_path / "out" / name.removesuffix(".partial")).stat().st_mtime_ns == written
    assert rs.reshard(tmp_path / "in", tmp_path / "plain", shards=5).reused_count == 0
    for path in (tmp_path / "plain").iterdir():
        if path.is_file():
            assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_work_of_another_input_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal names and sizes, but other records: nothing of the first run is kept."""
    path = numbered.write_shard(tmp_path / "train.tfrecord", range(10, 60))

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    module = importlib.import_module("recordsmith.writing.building.publishing")
    monkeypatch.setattr(module, "publish_dataset", stop)
    with pytest.raises(KeyboardInterrupt):
        rs.reshard(path, tmp_path / "out", shards=3)
    assert len(list((tmp_path / "out" / ".recordsmith").glob("*.done"))) == 3
    monkeypatch.undo()
    numbered.write_shard(tmp_path / "other", range(59, 9, -1))
    size = path.stat().st_size
    os.replace(tmp_path / "other", path)
    assert path.stat().st_size == size
    rs.reshard(path, tmp_path / "out", shards=3)
    assert numbered.ids_of(rs.open(tmp_path / "out")) == list(range(59, 9, -1))
