"""Folders with planted links: no job writes, moves or removes anything outside of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import LABEL_MAP_NAME, label_map_to_bytes
from recordsmith.writing.building import table_writing

pytestmark = pytest.mark.posix

SHARDS = [f"train-{number:05d}-of-{count:05d}.tfrecord" for number, count in ((0, 1), (1, 2))]
IN_A_DATASET = [
    *(f".recordsmith/{name}.partial" for name in ("dataset.json", "labels.txt", LABEL_MAP_NAME)),
    *(f".recordsmith/{shard}.partial" for shard in SHARDS),
    *(f".recordsmith/{SHARDS[0]}{suffix}" for suffix in (".done", ".index", ".index.partial")),
    *(f".recordsmith/{name}" for name in (".unpacked-0.partial", "lock", "begun.json")),
    *("labels.txt", LABEL_MAP_NAME, SHARDS[1], ".recordsmith"),
]
IN_AN_EXPORT = [
    *(".export.partial", *(f".export.partial/{name}" for name in ("new", "old", "lock"))),
    *(".export.json", ".export.begun.json", "train.parquet", "../.out.partial"),
]
BY_INDEX = ["a.tfrecord.idx", ".recordsmith/a.tfrecord.index", ".recordsmith"]


def _write_table(root: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", bytes)
        job = table_writing.begin_table(root / "out")
    result = table_writing.write_table_part(job, 0, [pa.table({"a": [1]})])
    table_writing.finish_table(job, [result])


JOBS: dict[str, tuple[list[str], Callable[[Path], Any]]] = {
    "pack": (
        IN_A_DATASET,
        lambda root: rs.pack(rs.ImageFolder(root / "flowers"), root / "out", shards=1),
    ),
    "table": (
        IN_A_DATASET,
        _write_table,
    ),
    "reshard": (
        IN_A_DATASET,
        lambda root: rs.reshard(root / "gzip", root / "out", shards=1, compression="none"),
    ),
    "replace": (
        IN_A_DATASET,
        lambda root: rs.reshard(root / "in", root / "dataset", shards=2, overwrite=True),
    ),
    "edit": (IN_A_DATASET, lambda root: rs.edit(root / "in", root / "out", drop=["name"])),
    "append": (IN_A_DATASET, lambda root: rs.append(root / "more.tfrecord", root / "dataset")),
    "salvage": (IN_A_DATASET, lambda root: rs.salvage(root / "in", root / "out")),
    "export": (IN_AN_EXPORT, lambda root: rs.export(root / "in", root / "out", "parquet")),
    "export again": (
        IN_AN_EXPORT,
        lambda root: rs.export(root / "in", root / "out", "parquet", overwrite=True),
    ),
    "index": (BY_INDEX, lambda root: rs.index(root / "out", overwrite=True)),
    "index for DALI": (
        BY_INDEX,
        lambda root: rs.index(root / "out", format="dali", overwrite=True),
    ),
}
LINKS = ("link to a file", "link to a folder", "link to nothing")
KINDS = (*LINKS, "hard link", "folder", "pipe")


@pytest.fixture(scope="module")
def template(
    tmp_path_factory: pytest.TempPathFactory, numbered: ModuleType, images: ModuleType
) -> Path:
    root = tmp_path_factory.mktemp("template")
    images.make_folder(root / "flowers", {"daisy": 1, "rose": 1})
    numbered.packed(root / "in", {"train": [3]})
    numbered.packed(root / "gzip", {"train": [3]}, "gzip")
    numbered.packed(root / "dataset", {"train": [2]})
    for folder in ("in", "gzip", "dataset"):
        (root / folder / LABEL_MAP_NAME).write_bytes(label_map_to_bytes(numbered.class_names))
    numbered.write_shard(root / "more.tfrecord", [50, 51])
    (root / "precious" / "new").mkdir(parents=True)
    for name in ("thesis", "new/thesis", "train.parquet", "thesis.partial"):
        (root / "precious" / name).write_text(f"years of work on {name}")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("job", JOBS)
def test_nothing_outside_is_touched(
    template: Path, tmp_path: Path, numbered: ModuleType, job: str, kind: str
) -> None:
    """The job replaces the link or refuses it, and does not wait for pipes."""
    places, run = JOBS[job]
    above = {str(Path(place).parent) for place in places}
    alone = [place for place in places if kind in LINKS or place in above or "lock" in place]
    together = [place for place in places if place not in alone]
    worked = 0
    for planted in filter(None, [together, *([place] for place in alone)]):
        root = tmp_path / "root"
        shutil.copytree(template, root)
        folder = root / ("dataset" if job in ("append", "replace") else "out")
        if places is BY_INDEX:
            numbered.write_shard(
                folder / "a.tfrecord", range(3)
            ) if folder.mkdir() is None else None
        elif not planted[0].startswith("../"):
            folder.mkdir(exist_ok=True)
        for place in planted:
            _plant(kind, folder / place, root / "precious")
        before = _contents(root / "precious")
        is_hidden_link = planted[0].startswith(".recordsmith/") and kind in LINKS
        with suppress(rs.OptionError if is_hidden_link else rs.RecordsmithError):
            run(root)
            worked += 1
            if places is IN_A_DATASET and job != "plan" and SHARDS[1] not in planted:
                assert rs.verify(folder).is_good, planted
        assert _contents(root / "precious") == before, planted
        shutil.rmtree(root)
    assert worked or kind not in LINKS


def _plant(kind: str, path: Path, precious: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kind in LINKS:
        path.symlink_to(precious / ("thesis", "", "not there yet")[LINKS.index(kind)])
    elif kind == "hard link":
        os.link(precious / "thesis", path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
        (path / "x").touch()


def _contents(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }
