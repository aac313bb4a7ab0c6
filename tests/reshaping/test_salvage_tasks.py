"""A salvage on an engine gives the dataset and the report of threads."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.wire import encode_records

from ..places import visible
from ..raising import raises
from ..repeating_engine import KilledProcesses, RepeatingEngine, plain

CORPUS = Path(__file__).parents[1] / "conformance" / "files"


def _assert_equal(paths: Any, out: Path, engine: Any = None) -> None:
    """Salvage with threads and on an engine: equal files, reports or errors."""
    found = []
    for number, used in enumerate((None, engine or RepeatingEngine())):
        folder = out / str(number)
        try:
            report = rs.salvage(paths, folder, engine=used)
        except rs.RecordsmithError as error:
            found.append((type(error), str(error)))
        else:
            found.append((plain({**vars(report), "folder": None}), visible(folder)))
            again = rs.salvage(paths, folder, engine=used)
            assert (again.is_new, again.shards) == (False, report.shards)
    assert found[0] == found[1]


@pytest.fixture
def damaged(numbered: Any, tmp_path: Path) -> Path:
    folder: Path = numbered.packed(tmp_path / "in", {"train": [20, 10, 5], "validation": [5]})
    first, second, third, _ = sorted(folder.glob("*.tfrecord"))
    data = bytearray(first.read_bytes())
    data[3] ^= 1  # repaired
    data[300:350] = bytes(50)  # lost
    first.write_bytes(data)
    second.unlink()
    third.write_bytes(bytes(1000))
    return folder


def test_a_damaged_dataset(damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _assert_equal("in", tmp_path / "out")


def test_a_killed_worker(damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = KilledProcesses(monkeypatch)
    _assert_equal(damaged, tmp_path / "out", engine)
    assert engine.killed == 1


@settings(max_examples=30)
@given(data=st.data())
def test_any_damage(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("salvage")
    for name in ("a", "b"):
        frames = bytearray(encode_records([bytes(size) for size in range(0, 90, 9)]))
        for place in data.draw(st.lists(st.integers(0, len(frames) - 1), max_size=4)):
            frames[place] ^= data.draw(st.integers(1, 255))
        (folder / f"{name}.tfrecord").write_bytes(frames[data.draw(st.integers(0, 30)) :])
    _assert_equal(sorted(folder.glob("*.tfrecord")), folder / "out")


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.iterdir()))
def test_damaged_files(name: str, tmp_path: Path) -> None:
    _assert_equal(CORPUS / name, tmp_path)


def test_files_of_other_programs(zoo_row: dict[str, Any], zoo: Path, tmp_path: Path) -> None:
    _assert_equal(zoo / zoo_row["file"], tmp_path)


def test_a_worker_that_sees_another_file(damaged: Path, tmp_path: Path) -> None:
    path = min(damaged.glob("*.tfrecord"))
    with raises(rs.FileAccessError, path=path, errno=errno.ESTALE):
        rs.salvage(
            damaged, tmp_path / "out", engine=RepeatingEngine(lambda _: os.utime(path, ns=(1, 1)))
        )
    assert not visible(tmp_path / "out")


def test_a_shard_that_is_not_here(damaged: Path, tmp_path: Path) -> None:
    """As where a worker's disk is not the one of this machine."""
    out = tmp_path / "out"

    def remove(_: Any) -> None:
        for path in (out / ".recordsmith").glob("*.partial"):
            path.unlink()

    with raises(rs.FileAccessError, errno=errno.ENOENT):
        rs.salvage(damaged, out, engine=RepeatingEngine(remove))
    assert not visible(out)
