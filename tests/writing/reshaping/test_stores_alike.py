"""Every job writes the same bytes to files, to memory and to a store without folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, as_folder

from ... import numbered_examples as numbered
from ...places import change, visible

JOBS: dict[str, Callable[[Location, Location], Any]] = {
    "pack": lambda source, out: rs.pack(
        rs.Shards(source), out, splits={"a": 0.7, "b": 0.3}, resplit=["train", "validation"]
    ),
    "reshard": lambda source, out: rs.reshard(source, out, shards=3, shuffle=True, seed=7),
    "compress": lambda source, out: rs.reshard(source, out, compression="gzip", where="id > 5"),
    "edit": lambda source, out: rs.edit(source, out, drop=["steps"], add={"new": 0.5}),
    "append": lambda source, out: (
        rs.reshard(source, out, split="train"),
        rs.append(source, out, split="validation"),
    ),
    "salvage": rs.salvage,
    "index": lambda source, out: (rs.reshard(source, out), rs.index(out, format="dali")),
    "overwrite": lambda source, out: (
        rs.reshard(source, out, shards=5),
        rs.reshard(source, out, shards=2, overwrite=True),
    ),
}


@pytest.fixture
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Location:
    return as_folder(tmp_path_factory.mktemp("on disk"))


def _write(folder: Location) -> Location:
    return numbered.packed(folder / "in", {"train": [20, 10], "validation": [6]})  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", JOBS)
def test_the_same_bytes_in_every_store(place: Location, on_disk: Location, name: str) -> None:
    for folder in (place, on_disk):
        source = _write(folder)
        if name == "salvage":
            change(source / "train-00000-of-00002.tfrecord", _flip)
        JOBS[name](source, folder / "out")
    found, expected = visible(place / "out"), visible(on_disk / "out")
    assert found.keys() == expected.keys()
    for file in expected.keys() - {"dataset.json"}:  # it has the versions of the inputs
        assert found[file] == expected[file], file
    assert rs.verify(place / "out").is_good
    read, wanted = rs.open(place / "out"), rs.open(on_disk / "out")
    assert read.schema == wanted.schema
    assert list(read.records()) == list(wanted.records())


def _flip(data: bytearray) -> None:
    data[50] ^= 1
