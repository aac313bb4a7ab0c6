"""The memory of fsspec, a file system without a server."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import uuid4

from recordsmith.stores import check_key, pieces_of
from recordsmith.stores.network.fsspec_store import FsspecStore
from recordsmith.stores.object_writer import Data

from .server import Address, NotInstalledError, Server


class FilledFsspecStore(FsspecStore):
    """Files that its file system writes, past the store."""

    def put(self, key: str, data: Data) -> None:
        path = self._path(check_key(key))
        with self._in_turn():
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, b"".join(pieces_of(data)))

    def delete(self, key: str) -> None:
        with self._in_turn(), suppress(FileNotFoundError):
            self._files.rm_file(self._path(check_key(key)))


class MemoryFiles(Server):
    """Files in the memory of this process."""

    def __init__(self) -> None:
        try:
            from fsspec.implementations.memory import MemoryFileSystem
        except ImportError as error:
            raise NotInstalledError(error.name) from None
        self._files = MemoryFileSystem()

    def new_store(self, address: Address | None = None, **options: Any) -> FsspecStore:  # noqa: ARG002
        folder = f"/{uuid4().hex}"
        self._files.makedirs(folder)
        return FilledFsspecStore(self._files, folder)

    def close(self) -> None:
        self._files.store.clear()
        self._files.pseudo_dirs[:] = [""]
