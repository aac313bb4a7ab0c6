"""Connections that never end, and too many of them, keep no one out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from recordsmith.viewing import connections

from ..images import encode, noise
from .conftest import Client, write


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(client: Client, sockets: ExitStack) -> socket.socket:
    host, _, port = client.host.rpartition(":")
    return sockets.enter_context(closing(socket.create_connection((host, int(port)), 30)))


def is_closed(connection: socket.socket) -> bool:
    """Wait until the viewer closes a connection, without reading what it sent before."""
    for _ in range(600):
        with suppress(ConnectionError):
            connection.send(b"x")
            time.sleep(0.05)
            continue
        return True
    return False


@pytest.fixture
def client(open_viewer: Any, tmp_path: Path) -> Client:
    large = encode(noise(1200, 1200), "PNG")  # more than the system buffers
    opened: Client = open_viewer(write(tmp_path / "a.tfrecord", [{"image/encoded": large}]))
    return opened


def head(client: Client, path: str) -> bytes:
    cookie = f"recordsmith-viewer-{client.host.rpartition(':')[2]}={client.token}"
    lines = (f"GET /{client.path}/{path} HTTP/1.1", f"Host: {client.host}", f"Cookie: {cookie}")
    return "".join(f"{line}\r\n" for line in lines).encode()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nA: ", b"\r\n"])
def test_many_connections_that_send_no_request(
    open_viewer: Any,
    tmp_path: Path,
    sockets: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    sent: bytes,
) -> None:
    monkeypatch.setattr(connections, "_MAX_CONNECTIONS", 20)
    monkeypatch.setattr(connections, "IDLE_SECONDS", 600)  # so that only the limit closes them
    client = open_viewer(write(tmp_path / "a.tfrecord", [{"id": 1}]))
    opened = [connect(client, sockets) for _ in range(150)]
    for connection in opened:
        with suppress(ConnectionError):
            connection.sendall(sent)
    for _ in range(3):
        assert client.json("/api/dataset")["record_count"] == 1
    assert is_closed(opened[0])
    others = [connect(client, sockets) for _ in range(30)]
    assert client.json("/api/dataset")["record_count"] == 1  # its connection was not closed
    assert is_closed(others[0])


def test_the_limit_is_far_below_that_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, limit in [(1024, 200), (256, 64), (40, 10), (8, 8), (resource.RLIM_INFINITY, 200)]:
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert connections.connection_limit() == limit


@pytest.mark.parametrize("kind", ["nothing", "headers", "unknown", "body", "idle"])
def test_requests_that_never_end_are_given_up(
    client: Client, sockets: ExitStack, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    begun = {
        "nothing": b"",
        "headers": head(client, "") + b"A: ",
        "unknown": b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n",
        "body": head(client, "api/dataset") + b"Content-Length: 999999999\r\n\r\n",
        "idle": head(client, "api/dataset") + b"\r\n",
    }[kind]
    connection = connect(client, sockets)
    connection.sendall(begun)
    if kind != "idle":
        assert is_closed(connection)  # although it goes on
        return
    while connection.recv(65_536):
        pass


def test_an_answer_that_is_not_read_is_given_up(
    client: Client, sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    connection = connect(client, sockets)
    connection.sendall(head(client, "api/image/0?key=image/encoded") + b"\r\n")
    assert is_closed(connection)


def test_what_takes_long_is_not_given_up(
    client: Client, sockets: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that the viewer works on, and one whose reader is slow."""
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.1)
    details = client.viewer._app._details
    describe = details.describe
    monkeypatch.setattr(details, "describe", lambda at: time.sleep(0.5) or describe(at))
    assert client.json("/api/record/0")["position"] == 0
    monkeypatch.setattr(connections, "IDLE_SECONDS", 1.0)
    connection = connect(client, sockets)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.sendall(head(client, "api/image/0?key=image/encoded") + b"\r\n")
    size, expected = 0, len(client.get("/api/image/0", key="image/encoded").content)
    assert expected > 3 << 20
    while size < expected:
        time.sleep(0.1)
        received = connection.recv(1 << 18)
        assert received
        size += len(received)
