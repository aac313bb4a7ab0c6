"""`Servers`: the real servers of the tests, each started when it is first needed.

By hand, `with Servers() as servers: store = servers.new_store("s3")`; in tests, the fixture
`servers`. A test of a server that is not installed is skipped, or fails where the variable
`RECORDSMITH_ALL_SERVERS` is set, as in CI.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib import import_module
from types import TracebackType

import pytest
from typing_extensions import Any, Self

from recordsmith.stores import Store

from .server import Address, NotInstalledError, Server

CLASSES = {
    "s3": "S3",
    "azure": "Azure",
    "gcs": "Gcs",
    "web": "Web",
    "sftp": "Sftp",
    "memory_files": "MemoryFiles",
}
"""Kind of store, which is a module here -> its server."""

HTTP_KINDS = ("s3", "azure", "gcs", "web")


class Servers:
    """The servers that have been started, until the `with` block ends."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}
        self._stack = ExitStack()

    def __getitem__(self, kind: str) -> Server:
        if kind not in self._running:
            self._running[kind] = self._stack.enter_context(_start(kind))
        return self._running[kind]

    def new_store(self, kind: str, address: Address | None = None, **options: Any) -> Store:
        """Return an empty store: see `Server.new_store`."""
        return self[kind].new_store(address, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def _start(kind: str) -> Server:
    try:
        module = import_module(f"{__package__}.{kind}")
        server: Server = getattr(module, CLASSES[kind])()
    except NotInstalledError as error:
        if "RECORDSMITH_ALL_SERVERS" in os.environ:
            raise
        pytest.skip(f"{error} is not installed")
    return server
