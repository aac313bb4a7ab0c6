"""An engine's job publishes the shards of its tasks, and no other shards of equal size."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, as_folder
from recordsmith.writing import ShardResult
from recordsmith.writing.building.shards import done_location, partial_location

from ...places import visible
from ...raising import raises
from .disturbed_stores import InStore


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, images: ModuleType) -> rs.ImageFiles:
    """Eight images of equal size, so that plans of all seeds have shards of equal size."""
    root = tmp_path_factory.mktemp("images")
    for number in range(8):
        (root / f"{number}.png").write_bytes(images.encode(images.noise(4, 3), "PNG"))
    return rs.ImageFiles(root)


def pack(source: Any, place: Location, **options: Any) -> dict[str, bytes]:
    """Return the files of a dataset of two shards."""
    rs.pack(source, place, shards=2, **options)
    return visible(place)


def noted(**fields: Any) -> Callable[[Location, str], None]:
    """Change fields of the note of a shard."""

    def change(place: Location, file: str) -> None:
        note = done_location(place, file)
        note.put(json.dumps(json.loads(note.read()) | fields).encode())

    return change


CHANGES: dict[str, Callable[[Location, str], None]] = {
    "removed": lambda place, file: partial_location(place, file).delete(),
    "shorter": lambda place, file: partial_location(place, file).put(b""),
    "without note": lambda place, file: done_location(place, file).delete(),
    "damaged note": lambda place, file: done_location(place, file).put(b"["),
    "other plan": noted(fingerprint="0" * 32),
    "other size": noted(size_bytes=1, object_version=""),
    "other bytes": noted(crc32c=1, object_version=""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_after_its_task(
    source: rs.ImageFiles, place: Location, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    def change(result: ShardResult) -> None:
        if "00001" in result.file:
            CHANGES[name](place, result.file)

    file = "train-00001-of-00002.tfrecord"
    with raises(rs.FileAccessError, path=place / file, errno=errno.ENOENT):
        pack(source, place, engine=InStore(place, change))
    assert not (place / "dataset.json").exists()
    expected = pack(source, as_folder(tmp_path_factory.mktemp("plain")))
    assert pack(source, place, engine=InStore(place)) == expected


def test_missing_over_an_older_dataset(source: rs.ImageFiles, tmp_path: Path) -> None:
    place = as_folder(tmp_path / "out")
    older = pack(source, place, seed=2)
    engine = InStore(place, lambda result: partial_location(place, result.file).delete())
    with raises(rs.FileAccessError, errno=errno.ENOENT):
        pack(source, place, engine=engine, overwrite=True)
    assert visible(place) == older
