"""The memory of fsspec, a file system without a server."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from recordsmith.stores.remote import FsspecStore

from .server import Address, NotInstalledError, Server


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
        return FsspecStore(self._files, folder)

    def close(self) -> None:
        self._files.store.clear()
        self._files.pseudo_dirs[:] = [""]
