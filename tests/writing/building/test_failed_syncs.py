"""A failed fsync is an error of every job, nothing is lost, and the job can run again."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import recordsmith as rs

from ...places import visible
from ...raising import raises

pytestmark = pytest.mark.posix

ROWS = [{"a": number} for number in range(9)]
JOBS: dict[str, tuple[str, Callable[[Path, Path], Any]]] = {
    "pack": ("", lambda _, out: rs.pack(rs.Rows(ROWS), out, shards=2)),
    "overwrite": ("in", lambda _, out: rs.pack(rs.Rows(ROWS), out, overwrite=True)),
    "append": ("in", rs.append),
    "reshard": ("", lambda data, out: rs.reshard(data, out, shards=2)),
    "edit": ("", lambda data, out: rs.edit(data, out, drop=["score"])),
    "repair": ("", rs.salvage),
    "text index": ("in", lambda _, out: rs.index(out, format="dali")),
    "export": ("", lambda data, out: rs.export(data, out, "csv")),
    "export into": ("empty", lambda data, out: rs.export(data, out, "csv")),
    "export again": ("exported", lambda data, out: rs.export(data, out, "csv", overwrite=True)),
}
"""Name -> what is in the folder before, and the job."""


@pytest.mark.parametrize("name", JOBS)
def test_failed_syncs(
    tmp_path: Path, numbered: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before, job = JOBS[name]
    data = tmp_path / "in"
    numbered.packed(data, {"train": [3, 2]})
    (tmp_path / "empty").mkdir()
    rs.export(data, tmp_path / "exported", "parquet")
    left, synced = [1 << 30], set()
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        left[0] -= 1
        if not left[0]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    def begin(folder: str) -> Path:
        out = tmp_path / folder / "out"
        out.parent.mkdir()
        if before:
            shutil.copytree(tmp_path / before, out)
        return out

    monkeypatch.setattr(os, "fsync", sync)
    out = begin("good")
    old = visible(out)
    job(data, out)
    good = visible(out)
    syncs = (1 << 30) - left[0]
    new = [out / file for file in good if good[file] not in old.values()]
    new += [out] * (name != "text index")  # is written again if it is lost
    new += [out.parent] * (name == "export")  # the job makes the folder
    assert [path for path in new if path.stat().st_ino not in synced] == []
    for number in range(1, syncs + 1):
        out = begin(f"fails-{number}")
        old = visible(out)
        left[0] = number
        with raises(rs.FileAccessError, errno=errno.EIO, operation="write"):
            job(data, out)
        found = {path.read_bytes() for path in out.parent.rglob("*") if path.is_file()}
        assert found.issuperset(old.values()) or visible(out) == good
        job(data, out)
        assert visible(out) == good


def test_failed_syncs_of_an_index(
    tmp_path: Path, numbered: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the folder of the shard fails, it is in the cache of the user."""
    shard = numbered.write_shard(tmp_path / "a.tfrecord", [1, 2])
    fails, fsync = [True] * 9, os.fsync

    def sync(descriptor: int) -> None:
        if fails.pop():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with raises(rs.FileAccessError, errno=errno.EIO, operation="write"):
        rs.index(shard)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.tfrecord"]
    fails[:] = [False] * 9 + [True]
    (file,) = rs.index(shard).files
    assert not Path(file.path).is_relative_to(tmp_path)
    assert Path(file.path).exists()
