"""ArrayRecord files have the payloads of the records."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import as_folder

from ..raising import raises
from ..repeating_engine import RepeatingEngine


@pytest.mark.parametrize("engine", [None, RepeatingEngine()])
@pytest.mark.parametrize("place", ["files", "memory"])
def test_payloads_are_equal(write: Any, tmp_path: Path, engine: Any, place: str) -> None:
    module = pytest.importorskip("array_record.python.array_record_module")
    source = write(train=[{"n": n} for n in range(9)])
    out = as_folder(tmp_path / "out" if place == "files" else "memory://arrays/out")
    rs.export(source, out, "array-record", engine=engine, overwrite=True)
    copy = tmp_path / "copy"
    copy.write_bytes((out / "train-00000-of-00001.array_record").read())
    payloads = list(module.ArrayRecordReader(str(copy)).read_all())
    assert payloads == list(rs.open(source).records())


def test_missing_package(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "array_record.python", None)
    with raises(rs.MissingExtraError, extra="array-record"):
        rs.export(write(train=[{"n": 1}]), tmp_path / "out", "array-record")
