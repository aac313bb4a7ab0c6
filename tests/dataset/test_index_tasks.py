"""Indexes that an engine writes are those of threads."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import Processes
from recordsmith.wire import encode_records

from ..places import contents
from ..raising import raises
from ..repeating_engine import KilledProcesses, RepeatingEngine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, count in {"a": 50, "b": 1, "c": 0, "d": 7}.items():
        payloads = [bytes(number**2) for number in range(count)]
        (folder / f"{name}.tfrecord").write_bytes(encode_records(payloads))
    return folder


def _indexes(folder: Path, engine: Any, **options: Any) -> tuple[list[Any], dict[str, bytes]]:
    """The reports of two calls and the files; then the indexes are removed."""
    reports = [rs.index(folder, engine=engine, **options) for _ in range(2)]
    files = contents(folder)
    for path in (*folder.rglob("*.index"), *folder.rglob("*.idx")):
        path.unlink()
    return reports, files


@pytest.mark.parametrize(
    "options", [{}, {"format": "dali"}, {"format": "dali", "to": "text"}], ids=str
)
def test_equal_indexes(folder: Path, options: dict[str, Any], monkeypatch: Any) -> None:
    """Paths in the reports are as typed."""
    monkeypatch.chdir(folder)
    here = Path()
    expected = _indexes(here, None, **options)
    assert expected[0][0].new_count == 4
    assert expected[0][1].new_count == 0
    for engine in (RepeatingEngine(), Processes(2), KilledProcesses(monkeypatch)):
        assert _indexes(here, engine, **options) == expected


def test_files_of_other_programs(zoo_row: dict[str, Any], zoo: Path) -> None:
    path = zoo / zoo_row["file"]
    try:
        expected = rs.index(path, overwrite=True)
    except rs.RecordsmithError as error:
        with pytest.raises(type(error)):
            rs.index(path, overwrite=True, engine=RepeatingEngine())
    else:
        assert rs.index(path, overwrite=True, engine=RepeatingEngine()) == expected


def test_damage(folder: Path) -> None:
    path = folder / "d.tfrecord"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with raises(rs.CorruptDataError, path=path, record=1, defect=rs.Defect.LENGTH_CRC):
        rs.index(folder, engine=RepeatingEngine())


def test_a_worker_that_sees_another_file(folder: Path) -> None:
    path = folder / "b.tfrecord"
    with raises(rs.FileAccessError, path=path, errno=errno.ESTALE):
        rs.index(folder, engine=RepeatingEngine(lambda _: os.utime(path, ns=(1, 1))))
    with raises(rs.FileAccessError, path=path, errno=errno.ENOENT):
        rs.index(folder, engine=RepeatingEngine(lambda _: path.unlink(missing_ok=True)))


def test_an_index_that_is_not_here(folder: Path, tmp_path: Path) -> None:
    """As where a worker's disk is not the one of this machine."""
    out = tmp_path / "text"

    def remove(_: Any) -> None:
        for path in out.iterdir():
            path.unlink()

    with raises(rs.FileAccessError, errno=errno.ENOENT):
        rs.index(folder, format="dali", to=out, engine=RepeatingEngine(remove))
