"""Readers of files that hold many samples, in a process that has not listed them."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.sources import Rows, Sample, Source, open_reader
from recordsmith.sources.files.files_reader import below_common_folder
from recordsmith.stores import as_location

from ..raising import raises
from .source_contract import touch
from .test_stores_alike import CASES


@pytest.fixture(
    params=[
        "compressed npz",
        "csv",
        "jsonl",
        "csv.gz",
        "named images",
        "compressed archives",
        "shards",
    ]
)
def source(request: Any, tmp_path: Path, images: ModuleType) -> Source:
    return _make(request.param, tmp_path / "given", images)


def _make(case: str, folder: Path, images: ModuleType) -> Source:
    write_files, make = CASES[case]
    write_files(folder, images)
    return make(folder)


def test_files_are_opened_once_also_by_many_threads(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = source.list_samples()
    reader: Any = open_reader(listing.reader.to_json())
    opened = []
    real = type(reader)._open
    monkeypatch.setattr(
        type(reader), "_open", lambda self, name: opened.append(name) or real(self, name)
    )
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(reader.read, [listing.samples[0]] * 40))
    assert len(opened) == 1


def test_files_that_changed_since_they_were_listed_are_refused(
    source: Source, tmp_path: Path
) -> None:
    listing = source.list_samples()
    reader = open_reader(listing.reader.to_json())
    for file in (tmp_path / "given").rglob("*"):
        if file.is_file():
            touch(file)
    with raises(rs.SourceError, match="changed") as caught:
        reader.read(listing.samples[0])
    assert caught.value.path.startswith(str(tmp_path / "given"))


@pytest.mark.parametrize(
    "reference", [None, {}, {"file": "missing", "row": 0}, {"row": 0}, {"file": "../x", "row": 0}]
)
def test_references_from_elsewhere_are_refused(source: Source, reference: Any) -> None:
    reader = source.list_samples().reader
    with raises(rs.OptionError, option="sample", value="x"):
        reader.read(Sample("x", 1, reference=reference))


@pytest.mark.parametrize("row", [-1, 4, 10**9, "0", None])
def test_rows_that_do_not_exist_are_refused(tmp_path: Path, images: ModuleType, row: Any) -> None:
    reader = _make("csv", tmp_path / "x", images).list_samples().reader
    with raises(rs.OptionError, option="sample", value="x"):
        reader.read(Sample("x", 1, reference={"file": "rows.csv", "row": row}))


def test_rows_of_this_process_cannot_be_read_elsewhere() -> None:
    listing = Rows([{"x": 1}]).list_samples()
    with raises(rs.OptionError, match="only in this process"):
        listing.reader.to_json()


def test_the_common_folder(tmp_path: Path) -> None:
    places = [as_location(tmp_path / name) for name in ("a/b/c.csv", "a/d.csv")]
    folder, names = below_common_folder(places)
    assert names == ["b/c.csv", "d.csv"]
    assert str(folder) == str(tmp_path / "a")
    assert [str(folder / name) for name in names] == list(map(str, places))


def test_the_table_of_readers_is_complete() -> None:
    """A task of another process has imported none of them."""
    code = (
        "from recordsmith.sources.samples import READERS, StoredReader\n"
        "assert all(READERS[name].__name__ == name for name in READERS)\n"
        "import pkgutil, importlib, recordsmith.sources as sources\n"
        "known = {*READERS}\n"
        "for module in pkgutil.walk_packages(sources.__path__, f'{sources.__name__}.'):\n"
        "    importlib.import_module(module.name)\n"
        "assert {*READERS} == known\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
