"""`Servers`: the real servers of the tests, each started when it is first needed.

By hand, `with Servers() as servers: store = servers.new_store("s3")`; in tests, the fixture
`servers`. A test of a server that is not installed is skipped, or fails where the variable
`RECORDSMITH_ALL_SERVERS` is set, as in CI.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Self

import pytest

from recordsmith.stores import Store
from recordsmith.stores.network.object_store import _import_obstore
from recordsmith.support.errors import MissingExtraError

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
            module = import_module(f"{__package__}.{kind}")
            with _skipping():
                self._running[kind] = self._stack.enter_context(getattr(module, CLASSES[kind])())
        return self._running[kind]

    def new_store(self, kind: str, address: Address | None = None, **options: Any) -> Store:
        """Return an empty store: see `Server.new_store`."""
        with _skipping():
            return self[kind].new_store(address, **options)

    def new_bucket(self) -> tuple[str, dict[str, Any]]:
        """Return the URL of an empty bucket in S3, and the options of its store, which are JSON."""
        with _skipping():
            _import_obstore()
            return self["s3"].new_bucket()  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@functools.cache
def shared_servers() -> Servers:
    """Return the servers of this process."""
    return Servers()


@contextmanager
def _skipping() -> Iterator[None]:
    """Skip a test of what is not installed."""
    try:
        yield
    except (NotInstalledError, MissingExtraError) as error:
        if "RECORDSMITH_ALL_SERVERS" in os.environ:
            raise
        pytest.skip(f"not installed: {error}")
