"""`Server`: a real server of the tests, on a free port of the loopback interface."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeAlias

from recordsmith.stores import Store

Address: TypeAlias = tuple[str, int]

HOST = "127.0.0.1"
_START_SECONDS = 60


class NotInstalledError(Exception):
    """A server, or a package for it, is not installed."""


class Server(AbstractContextManager["Server"], ABC):
    """A running server, until the `with` block ends."""

    address: Address

    @abstractmethod
    def new_store(self, address: Address | None = None, **options: Any) -> Store:
        """Return an empty store.

        Args:
            address: where requests go, if not straight to the server, such as a fault proxy.
            options: as of the store.
        """

    def url(self, address: Address | None = None) -> str:
        host, port = address or self.address
        return f"http://{host}:{port}"

    @abstractmethod
    def close(self) -> None:
        """Stop the server."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Program:
    """A server that is a program of its own."""

    def __init__(self, command: Sequence[str], folder: str, address: Address) -> None:
        """`folder`: where the program runs, removed when it stops."""
        self._folder = folder
        with open(os.path.join(folder, "output"), "wb") as output:
            self._process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        end = time.monotonic() + _START_SECONDS
        while not _listens(address):
            if self._process.poll() is not None or time.monotonic() > end:
                self.close()
                raise RuntimeError(f"{command[0]} does not start")
            time.sleep(0.02)

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def free_address() -> Address:
    """Return an address on which no one listens now."""
    with socket.create_server((HOST, 0)) as listener:
        return listener.getsockname()[:2]


def program(name: str, *folders: str | None) -> str:
    """Return the path of a program.

    Raises:
        NotInstalledError: it is neither in one of the folders nor on the PATH.
    """
    path = os.pathsep.join([*filter(None, folders), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        raise NotInstalledError(name)
    return found


def _listens(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=1).close()
    except OSError:
        return False
    return True
