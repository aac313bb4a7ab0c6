"""Verification on an engine reports what it reports in threads."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.support.errors import ForbiddenFileError

from ...places import flip
from ...raising import raises
from ...repeating_engine import KilledProcesses, RepeatingEngine, plain

CORPUS = Path(__file__).parents[2] / "conformance" / "files"


def _assert_equal(paths: Any, engine: Any = None, **options: Any) -> None:
    expected = rs.verify(paths, threads=2, **options)
    found = rs.verify(paths, engine=engine or RepeatingEngine(), **options)
    assert plain(found) == plain(expected)
    assert found.to_json() == expected.to_json()


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_damaged_files(name: str, deep: bool) -> None:
    try:
        rs.verify(CORPUS / name, deep=deep)
    except rs.RecordsmithError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            rs.verify(CORPUS / name, deep=deep, engine=RepeatingEngine())
        return
    _assert_equal(CORPUS / name, deep=deep)


@pytest.fixture
def damaged(tmp_path: Path, images: Any) -> Path:
    """A dataset with a bad payload, a shard that is missing, and one with other features."""
    rs.pack(rs.ImageFolder(images.make_folder(tmp_path / "flowers", {"daisy": 9, "rose": 9})),
            tmp_path / "out", shards=5)  # fmt: skip
    first, second, third, fourth, _ = sorted((tmp_path / "out").glob("*.tfrecord"))
    flip(first, 40)
    second.unlink()
    with rs.ShardWriter(third, overwrite=True) as writer:
        writer.write(rs.encode_example({"image/encoded": [b"no image"], "other": [1.5]}))
    fourth.write_bytes(b"")
    return tmp_path / "out"


@pytest.mark.parametrize("options", [{}, {"deep": True}, {"deep": True, "split": "train"}], ids=str)
def test_a_damaged_dataset(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.chdir(damaged.parent)
    _assert_equal("out", **options)  # paths in the report are as typed
    (damaged / "dataset.json").unlink()
    _assert_equal("out", **options)


def test_rules_of_a_schema_file(damaged: Path, tmp_path: Path) -> None:
    schema = {
        "format": "recordsmith-schema",
        "version": 1,
        "payload": "Example",
        "features": {
            "image/encoded": {"kind": "bytes", "content": "image"},
            "image/class/text": {"kind": "bytes", "allowed": ["rose"]},
            "image/class/label": {"kind": "int64", "max": 0},
        },
    }
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    _assert_equal(damaged, schema=path)


@pytest.mark.posix
def test_a_killed_worker(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = KilledProcesses(monkeypatch)
    _assert_equal(damaged, engine, deep=True)
    assert engine.killed == 1


def test_progress(damaged: Path) -> None:
    calls: list[tuple[int, int]] = []
    rs.verify(damaged, engine=RepeatingEngine(), progress=lambda *done: calls.append(done))
    total = sum(path.stat().st_size for path in damaged.glob("*.tfrecord"))
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)


@pytest.mark.parametrize("change", ["grown", "touched", "removed"])
def test_a_worker_that_sees_another_file(damaged: Path, change: str) -> None:
    path = max(damaged.glob("*.tfrecord"))

    def before(_: object) -> None:
        if change == "grown":
            path.write_bytes(path.read_bytes() + b"more")
        elif change == "touched":
            os.utime(path, ns=(1, 1))
        else:
            path.unlink(missing_ok=True)

    reason = errno.ENOENT if change == "removed" else errno.ESTALE
    with raises(rs.FileAccessError, path=path, errno=reason):
        rs.verify(damaged, engine=RepeatingEngine(before))


def test_a_shard_without_permission(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a finding with the path as the user typed it, as in threads."""
    from recordsmith.dataset import Shard

    monkeypatch.chdir(damaged)
    usual = Shard.open_read

    def open_read(shard: Shard) -> Any:
        if shard.location.name.startswith("train-00004"):
            raise ForbiddenFileError(errno.EACCES, "denied", str(shard.location))
        return usual(shard)

    monkeypatch.setattr(Shard, "open_read", open_read)
    _assert_equal(".")


@pytest.mark.posix
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    os.mkfifo(path)
    with raises(rs.FileAccessError, path=path, errno=errno.EINVAL):
        rs.verify(path, engine=RepeatingEngine())
