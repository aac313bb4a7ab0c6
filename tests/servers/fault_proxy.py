"""`FaultProxy`: a proxy before a real server that injects the faults of a network.

It passes requests on byte for byte, so signatures stay valid, and changes the responses. Without a
fault, nothing changes.
"""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self, TypeAlias

from .server import HOST, Address

Kind: TypeAlias = Literal[
    "latency",  # each response waits
    "slow",  # responses have a limited bandwidth
    "drip",  # a byte a second, after the header
    "refused",  # the connection is reset before the request is passed on
    "lost",  # the request is done, and the connection is reset before the response
    "reset",  # the connection is reset in the middle of the response
    "truncated",  # the connection is closed in the middle of the response
    "status",  # a response with a status, and the request is not passed on
    "silent",  # no response, and the connection stays open
    "stale",  # an older version
    "stale-lie",  # an older version with the ETag of the newest
    "other-range",  # another range, which the response states
    "other-range-lie",  # another range, and the response states the requested one
    "whole",  # the whole object instead of a range
]


@dataclass(frozen=True)
class Fault:
    """A fault, and the requests that it happens to.

    share: of the requests, chosen by the seed of the proxy.
    most: at most so many requests.
    methods: only requests with these methods.
    seconds: of `latency`; of `status`, the value of Retry-After, if not 0.
    status: of `status`.
    bytes_per_second: of `slow`.
    """

    kind: Kind
    share: float = 1.0
    most: int = 1 << 30
    methods: tuple[str, ...] = ("GET", "HEAD", "PUT", "POST", "DELETE")
    seconds: float = 0.0
    status: int = 503
    bytes_per_second: int = 1 << 20


class Counters(NamedTuple):
    """What has happened so far. byte_count: of the bodies of responses that were sent."""

    request_count: int = 0
    connection_count: int = 0
    byte_count: int = 0
    fault_count: int = 0


class FaultProxy(AbstractContextManager["FaultProxy"]):
    """An HTTP proxy in threads, until the `with` block ends.

    Args:
        target: the address of the server.
        fault: may be replaced at any time; None passes everything on.
        seed: of the choice of requests.
    """

    def __init__(self, target: Address, fault: Fault | None = None, seed: int = 0) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._versions: defaultdict[str, list[_Response]] = defaultdict(list)
        self._sockets: set[socket.socket] = set()
        self._fault, self._left = fault, 0
        self.fault = fault
        self.counters = Counters()
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.address: Address = self._listener.getsockname()[:2]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def fault(self) -> Fault | None:
        """The fault of the requests from now on."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault | None) -> None:
        with self._lock:
            self._fault, self._left = fault, fault.most if fault else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        with suppress(OSError):  # wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            for connection in self._sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    # -- connections -------------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets.add(client)
            self._count(connection_count=1)
            threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Serve the requests of a connection, one after the other."""
        try:
            with client, client.makefile("rb") as reader, suppress(OSError):
                while (request := _read_request(reader)) is not None:
                    self._count(request_count=1)
                    if not self._respond(client, request):
                        break
        finally:
            with self._lock:
                self._sockets.discard(client)

    def _respond(self, client: socket.socket, request: _Request) -> bool:
        """Respond to a request; return whether the connection stays open."""
        fault = self._choose(request)
        kind = fault.kind if fault is not None else None
        if fault is None:
            response = self._passed_on(request)
        elif kind == "silent":
            self._closed.wait()
            return False
        elif kind == "refused":
            return _reset(client)
        elif kind == "status":
            response = _status_response(fault)
        elif kind in ("stale", "stale-lie", "other-range", "other-range-lie", "whole"):
            response = self._false_response(kind, request) or self._passed_on(request)
        else:
            response = self._passed_on(request)
        if kind == "lost":
            return _reset(client)
        if fault is not None and kind == "latency":
            self._closed.wait(fault.seconds)
        head, body = response.head(), b"" if request.method == "HEAD" else response.body
        if kind in ("reset", "truncated"):
            client.sendall((head + body)[: len(head) + len(body) // 2 if body else len(head) // 2])
            return kind == "reset" and _reset(client)
        self._count(byte_count=len(body))
        client.sendall(head)
        if fault is not None and kind in ("slow", "drip"):
            self._send_slowly(client, body, 1 if kind == "drip" else fault.bytes_per_second)
        else:
            client.sendall(body)
        return True

    def _send_slowly(self, client: socket.socket, body: bytes, bytes_per_second: int) -> None:
        size = max(1, bytes_per_second // 100)
        for start in range(0, len(body), size):
            client.sendall(body[start : start + size])
            if self._closed.wait(size / bytes_per_second):
                return

    def _count(self, **added: int) -> None:
        with self._lock:
            counted = {name: getattr(self.counters, name) + more for name, more in added.items()}
            self.counters = self.counters._replace(**counted)

    # -- faults ------------------------------------------------------------------------------------

    def _choose(self, request: _Request) -> Fault | None:
        """The fault of a request, if it has one."""
        with self._lock:
            fault, versions = self._fault, self._versions[request.path]
            if fault is None or request.method not in fault.methods or not self._left:
                return None
            if fault.kind in ("stale", "stale-lie") and (
                len(versions) < 2 or request.method not in ("GET", "HEAD")
            ):
                return None
            if fault.kind in ("other-range", "other-range-lie", "whole") and not (
                versions and request.range and request.method == "GET"
            ):
                return None
            if self._random.random() >= fault.share:
                return None
            self._left -= 1
        self._count(fault_count=1)
        return fault

    def _false_response(self, kind: Kind, request: _Request) -> _Response | None:
        """A response from what earlier requests for whole objects have shown."""
        versions = self._versions[request.path]
        newest = versions[-1]
        if kind == "whole":
            return newest
        if kind in ("stale", "stale-lie"):
            older = versions[0]
            if kind == "stale-lie":
                older = older.with_headers({"etag": newest.headers.get("etag", "")})
            return older if request.range is None else older.part(*request.range)
        first, last = request.range or (0, 0)
        last = min(last, len(newest.body) - 1)
        moved = max(0, first - 7) if first else 7
        if moved > last or first > last:
            return None
        other = newest.part(moved, moved + last - first)
        if kind == "other-range-lie":
            requested = newest.part(first, last)
            body = other.body[: len(requested.body)].ljust(len(requested.body), b"\0")
            return replace(requested, body=body)
        return other

    def _passed_on(self, request: _Request) -> _Response:
        """The response of the server; whole objects are remembered for other faults."""
        with (
            socket.create_connection(self._target) as server,
            server.makefile("rb") as reader,
        ):
            with self._lock:
                self._sockets.add(server)
            try:
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server.sendall(request.raw)
                response = _read_response(reader, request.method)
            finally:
                with self._lock:
                    self._sockets.discard(server)
        if request.method == "GET" and response.status == 200 and "etag" in response.headers:
            with self._lock:
                versions = self._versions[request.path]
                if not versions or versions[-1].headers["etag"] != response.headers["etag"]:
                    versions.append(response)
        return response


# -- messages --------------------------------------------------------------------------------------


class _Request(NamedTuple):
    """range: its first and last byte."""

    method: str
    path: str
    range: tuple[int, int] | None
    raw: bytes


@dataclass(frozen=True)
class _Response:
    """headers: by their names in small letters."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {self.reason}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")

    def with_headers(self, headers: Mapping[str, str]) -> _Response:
        return replace(self, headers={**self.headers, **headers})

    def part(self, first: int, last: int) -> _Response:
        """The response to a request for a range of this object."""
        body = self.body[first : last + 1]
        if not body:
            return replace(
                self,
                status=416,
                reason="Range Not Satisfiable",
                headers={"content-length": "0", "content-range": f"bytes */{len(self.body)}"},
                body=b"",
            )
        span = f"bytes {first}-{first + len(body) - 1}/{len(self.body)}"
        headers = {**self.headers, "content-range": span, "content-length": str(len(body))}
        return replace(self, status=206, reason="Partial Content", headers=headers, body=body)


def _read_request(reader: socket.SocketIO) -> _Request | None:
    raw, headers = _read_head(reader)
    if not headers:
        return None
    method, path, _ = headers[""].split(" ", 2)
    found = re.fullmatch(
        r"bytes=(\d+)-(\d*)", headers.get("range") or headers.get("x-ms-range", "")
    )
    wanted = (int(found[1]), int(found[2] or 1 << 62)) if found else None
    if headers.get("transfer-encoding", "").lower() == "chunked":
        raw += _read_chunks(reader)[0]
    else:
        raw += _read_exactly(reader, int(headers.get("content-length", 0)))
    return _Request(method, path, wanted, raw)


def _read_response(reader: socket.SocketIO, method: str) -> _Response:
    status = 100
    while status == 100:
        _, headers = _read_head(reader)
        if not headers:
            raise ConnectionResetError
        _, code, *reason = headers.pop("").split(" ", 2)
        status = int(code)
    if method == "HEAD" or status in (204, 304):
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        _, body = _read_chunks(reader)
    elif "content-length" in headers:
        body = _read_exactly(reader, int(headers["content-length"]))
    else:
        body = reader.read()
    headers.pop("connection", None)  # about the connection to the server
    if headers.pop("transfer-encoding", None) or (body and "content-length" not in headers):
        headers["content-length"] = str(len(body))
    return _Response(status, *(reason or [""]), headers, body)


def _read_head(reader: socket.SocketIO) -> tuple[bytes, dict[str, str]]:
    """Read the lines up to an empty one; the first one is the header without a name."""
    lines = []
    while (line := reader.readline(1 << 16)) not in (b"\r\n", b""):
        lines.append(line)
    if not line:
        return b"", {}
    texts = [one.decode("latin-1").rstrip("\r\n") for one in lines]
    headers = {"": texts[0]}
    for text in texts[1:]:
        name, _, value = text.partition(":")
        headers[name.strip().lower()] = value.strip()
    return b"".join([*lines, line]), headers


def _read_chunks(reader: socket.SocketIO) -> tuple[bytes, bytes]:
    """Read a body in chunks; return it as it is, and its content."""
    raw, content, size = b"", b"", 1
    while size:
        line = reader.readline(1 << 16)
        size = int(line.split(b";")[0], 16)
        chunk = _read_exactly(reader, size)
        raw += line + chunk + _read_exactly(reader, 2)
        content += chunk
    return raw, content


def _read_exactly(reader: socket.SocketIO, size: int) -> bytes:
    data = reader.read(size) if size else b""
    if data is None or len(data) < size:
        raise ConnectionResetError
    return data


def _status_response(fault: Fault) -> _Response:
    body = b"<Error><Code>SlowDown</Code></Error>"
    headers = {"content-type": "application/xml", "content-length": str(len(body))}
    if fault.seconds:
        headers["retry-after"] = str(int(fault.seconds))
    return _Response(fault.status, "Injected", headers, body)


def _reset(client: socket.socket) -> bool:
    """Reset a connection instead of closing it; return that it does not stay open."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False
