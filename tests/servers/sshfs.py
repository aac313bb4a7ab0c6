"""SFTP, read by the package sshfs instead of paramiko."""

from __future__ import annotations

from typing import Any

from .sftp import Sftp


class Sshfs(Sftp):
    """The same server, for another client."""

    def _import_client(self) -> Any:
        from sshfs import SSHFileSystem

        def connect(host: str, **options: Any) -> Any:
            return SSHFileSystem(host, known_hosts=None, client_keys=[], **options)

        return connect
