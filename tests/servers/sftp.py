"""SFTP, by asyncssh."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import tempfile
import threading
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from recordsmith.stores.network.fsspec_store import FsspecStore

from .memory_files import FilledFsspecStore
from .server import HOST, Address, NotInstalledError, Server

_TIMEOUT_SECONDS = 10


class Sftp(Server):
    """A server of asyncssh in a thread, with a folder; fsspec reads it by paramiko.

    Its times are whole seconds, so each file that is written gets a second of its own.
    """

    def __init__(self) -> None:
        try:
            import asyncssh

            self._client = self._import_client()
        except ImportError as error:
            raise NotInstalledError(error.name) from None

        connections: list[Any] = []

        class Login(asyncssh.SSHServer):  # type: ignore[misc]
            def connection_made(self, conn: Any) -> None:
                connections.append(conn)

            def begin_auth(self, username: str) -> bool:  # noqa: ARG002
                return True

            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, password: str) -> bool:
                return (username, password) == ("user", "password")

        seconds = itertools.count(1_600_000_000)

        class Files(asyncssh.SFTPServer):  # type: ignore[misc]
            def close(self, file_obj: Any) -> None:
                if file_obj.writable():
                    second = next(seconds)
                    os.utime(file_obj.fileno(), (second, second))
                super().close(file_obj)

        async def listen() -> Any:
            return await asyncssh.listen(
                HOST,
                0,
                server_factory=Login,
                server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
                sftp_factory=lambda channel: Files(channel, chroot=self.folder),
            )

        self._at_end = ExitStack()
        self._connections = connections
        self.folder = os.fsencode(tempfile.mkdtemp())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listener = asyncio.run_coroutine_threadsafe(listen(), self._loop).result()
        self.address = HOST, self._listener.get_port()

    def _import_client(self) -> Any:
        from fsspec.implementations.sftp import SFTPFileSystem

        def connect(host: str, **options: Any) -> Any:
            files = SFTPFileSystem(host, look_for_keys=False, allow_agent=False, **options)
            files.ftp.get_channel().settimeout(_TIMEOUT_SECONDS)  # paramiko has none by default
            self._at_end.callback(files.client.close)
            return files

        return connect

    def new_store(self, address: Address | None = None, **options: Any) -> FsspecStore:
        host, port = address or self.address
        login = {"username": "user", "password": "password", "skip_instance_cache": True}
        files = self._client(host, port=port, **login, **options)
        folder = f"/{uuid4().hex}"
        os.mkdir(os.path.join(self.folder, os.fsencode(folder[1:])))
        return FilledFsspecStore(files, folder)

    def close(self) -> None:
        self._at_end.close()

        async def stop() -> None:
            self._listener.close()
            await self._listener.wait_closed()
            for connection in self._connections:
                connection.abort()
                await connection.wait_closed()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)
