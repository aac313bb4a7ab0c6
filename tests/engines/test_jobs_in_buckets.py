"""Jobs of an engine whose inputs and outputs are in S3: no disk is shared."""

from __future__ import annotations

import errno
import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import Shard
from recordsmith.engines.processes import Processes
from recordsmith.support.errors import ForbiddenFileError

from ..places import contents, flip
from ..raising import raises
from ..repeating_engine import RepeatingEngine, plain

pytest.importorskip("obstore")


@pytest.fixture
def folder(
    bucket: tuple[str, dict[str, Any]],
    images: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """A dataset in a bucket with a damaged shard; workers find the options in their environment."""
    url, options = bucket
    monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", json.dumps(options))
    source = images.make_folder(tmp_path / "flowers", {"daisy": 9, "rose": 9})
    rs.pack(rs.ImageFolder(source), f"{url}/data", shards=3)
    return f"{url}/data"


def _damage(folder: str) -> None:
    shard = rs.open(folder).shards[1].location
    flip(shard, 40)


def test_reports(folder: str) -> None:
    engine = Processes(2)
    assert plain(rs.stats(folder, engine=engine)) == plain(rs.stats(folder))
    _damage(folder)
    expected = rs.verify(folder, deep=True)
    assert not expected.is_good
    assert plain(rs.verify(folder, deep=True, engine=engine)) == plain(expected)
    expected = rs.verify(folder)
    assert plain(rs.verify(folder, engine=engine)) == plain(expected)


def test_a_worker_without_credentials(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about the shards."""

    def open_read(shard: Shard) -> Any:
        raise ForbiddenFileError(errno.EACCES, "denied", str(shard.location))

    monkeypatch.setattr(Shard, "open_read", open_read)
    assert rs.verify(folder).defects
    with raises(rs.FileAccessError, errno=errno.EACCES):
        rs.verify(folder, engine=RepeatingEngine())


@pytest.mark.slow
@pytest.mark.parametrize("format", ["webdataset", "parquet", "tfds"])
def test_export(folder: str, bucket: tuple[str, dict[str, Any]], format: str) -> None:
    """Tasks have no credentials, and what an attempt has not completed is not there."""
    tasks: list[Any] = []
    found = []
    for number, engine in enumerate((RepeatingEngine(tasks.append), Processes(2))):
        out = f"{folder}-{number}"
        report = rs.export(folder, out, format, engine=engine)
        found.append((plain({**vars(report), "folder": None}), contents(out)))
        assert ".export.json" in found[-1][1]
        with raises(rs.OptionError, option="out"):
            rs.export(folder, out, format, engine=engine)
    assert found[0] == found[1]
    assert len(tasks) == 6
    values = [
        value for value in bucket[1].values() if isinstance(value, str) and "://" not in value
    ]
    assert values
    sent = pickle.dumps(tasks) + repr(tasks).encode()
    assert not [value for value in values if value.encode() in sent]
    _damage(folder)
    with pytest.raises(rs.CorruptDataError):
        rs.export(folder, f"{folder}-2", format, engine=Processes(2))
    assert contents(f"{folder}-2") == {}
    report = rs.export(
        rs.open(folder)[:2], f"{folder}-1", format, engine=Processes(2), overwrite=True
    )
    assert report.record_count == 2
    entries = json.loads(contents(f"{folder}-1").pop(".export.json"))["entries"]
    assert sorted([*entries, ".export.json"]) == [*contents(f"{folder}-1")]
