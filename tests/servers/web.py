"""A web server with a folder of files: nginx."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from recordsmith.stores import ObjectWriter
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.network.web_store import WebStore
from recordsmith.stores.object_writer import Data

from .server import Address, Program, Server, free_address, program

_CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address};
        root {folder}/served;
        autoindex on;
    }}
}}
"""


class Web(Server):
    """nginx in a process of its own."""

    def __init__(self) -> None:
        command = program("nginx")
        self.address = free_address()
        folder = tempfile.mkdtemp()
        self.folder = os.path.join(folder, "served")
        os.mkdir(self.folder)
        path = os.path.join(folder, "configuration")
        with open(path, "w", encoding="utf-8") as file:
            address = ":".join(map(str, self.address))
            file.write(_CONFIGURATION.format(folder=folder, address=address))
        self._program = Program([command, "-p", folder, "-c", path], folder, self.address)

    def new_store(self, address: Address | None = None, **options: Any) -> ServedStore:
        name = uuid4().hex
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return ServedStore(f"{self.url(address)}/{name}", path, **options)

    def close(self) -> None:
        self._program.close()


class ServedStore(WebStore):
    """A folder that is read from a web server, and written as local files.

    The ETag of nginx is made from the size and the second of the last change. Every object here
    gets a second of its own.
    """

    def __init__(self, url: str, path: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._path = path
        self._local = LocalStore(path)
        self._seconds = itertools.count(1_600_000_000)

    def __reduce__(self) -> tuple[Any, ...]:
        return WebStore, (self._url,)

    def put(self, key: str, data: Data) -> None:
        self._stamped(key, lambda: self._local.put(key, data))

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self._stamped(key, lambda: self._local.put_if_absent(key, data))

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        matches = self.exists(key) and self.info(key).version == version
        if matches:
            self.put(key, data)
        return matches

    def open_write(
        self, key: str, *, overwrite: bool = True, is_durable: bool = True
    ) -> ObjectWriter:
        return self._local.open_write(key, overwrite=overwrite, is_durable=is_durable)

    def delete(self, key: str) -> None:
        self._local.delete(key)

    def _stamped(self, key: str, write: Callable[[], Any]) -> Any:
        result = write()
        second = next(self._seconds)
        os.utime(os.path.join(self._path, key), (second, second))
        return result
