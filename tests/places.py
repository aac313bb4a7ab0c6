"""Folders in every kind of store, and what tests do with the objects in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from recordsmith.stores import (
    FolderWriter,
    Location,
    PlaceLike,
    as_folder,
    as_location,
    remote,
    write_folder,
)

from .servers.servers import shared_servers
from .stores.delayed import DelayedStore

AnyPlace = TypeVar("AnyPlace", Path, Location)
KINDS = tuple(os.environ.get("RECORDSMITH_TEST_PLACES", "files memory delayed").split())
"""Where tests of the fixture `place` run; `make soak` runs them in `s3` as well."""

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
"""Root reads and writes files whatever their permissions."""


@contextmanager
def new_place(kind: str, path: Path) -> Iterator[Location]:
    """An empty folder in a store of a kind; `path` is an empty folder for files."""
    if kind == "delayed":
        yield Location(DelayedStore(0.0001), "some/folder")
        return
    if kind == "s3":
        url, options = shared_servers().new_bucket()
        yield remote(f"{url}/some/folder", store_options=options)
        return
    place = as_folder(path if kind == "files" else f"memory://{uuid4()}")
    yield place
    if kind == "memory":  # one store for the whole process
        for found in place.list():
            found.delete()


def contents(folder: PlaceLike) -> dict[str, bytes]:
    """Every object below a folder, hidden ones included: name -> bytes.

    Without the times of shards that their indexes and columns have.
    """
    below = as_folder(folder)
    found = {
        str(location.relative_to(below)): _without_time(location.read())
        for location in below.list()
    }
    return dict(sorted(found.items()))


def _without_time(data: bytes) -> bytes:
    """The bytes of an index or of columns without the version of the shard and their checksum."""
    checksum = 36
    if data[:8] not in (b"RSINDEX\3", b"RSCOLMN\2"):
        return data
    if data[:8] == b"RSINDEX\3":
        checksum += 4 * (int.from_bytes(data[28:36], "little") // 8192 + 1)
    return data[:16] + bytes(8) + data[24:checksum] + bytes(4) + data[checksum + 4 :]


def visible(folder: PlaceLike) -> dict[str, bytes]:
    """The objects that users see: name -> bytes."""
    return {name: data for name, data in contents(folder).items() if not name.startswith(".")}


def new_folder(folder: Location, **options: Any) -> AbstractContextManager[FolderWriter]:
    """Write a folder as `write_folder`, without `overwrite` and without problems."""
    defaults = {"overwrite": False, "keeping": {}, "report": pytest.fail}
    return write_folder(folder, {}, **{**defaults, **options})


def change(place: PlaceLike, edit: Callable[[bytearray], Any]) -> None:
    """Write an object again with other bytes."""
    location = as_location(place)
    data = bytearray(location.read())
    edit(data)
    location.put(bytes(data))


def flip(place: PlaceLike, at: int = -1, *, bits: int = 1) -> None:
    """Flip bits of one byte of an object."""

    def edit(data: bytearray) -> None:
        data[at] ^= bits

    change(place, edit)
