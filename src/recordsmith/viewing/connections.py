"""Limits on the connections of the viewer: how many there are, and how long they may be idle.

All users of this machine can connect. Connections without an authorized request are closed first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from recordsmith.viewing.guard import App

IDLE_SECONDS = 20.0
"""After this time a connection is closed: one that sends no complete request, or reads nothing."""

BACKLOG = 64
"""Connections that are accepted at once, before any of them is closed."""

_MAX_CONNECTIONS = 200
_FILES_PER_CONNECTION = 4  # of the limit of open files; shards need some too


def connection_limit() -> int:
    """How many connections are open at a time: far fewer than this process may open files."""
    with suppress(ImportError):
        import resource

        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files != resource.RLIM_INFINITY:
            return max(8, min(_MAX_CONNECTIONS, files // _FILES_PER_CONNECTION))
    return _MAX_CONNECTIONS


def limited_protocol(limit: int) -> type[Connection]:
    """Return the protocol of a server whose connections share a limit."""

    class LimitedConnection(Connection):
        open_connections: ClassVar = {}
        max_connections = limit

    return LimitedConnection


class Connection(H11Protocol):
    """A connection, which is closed if it makes no progress or if there are too many."""

    open_connections: ClassVar[dict[Connection, None]]  # the oldest first
    max_connections: ClassVar[int]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.app_state = {"connection": self}  # the `state` of each scope
        self.is_trusted = False  # whether it had an authorized request
        self.served = 0  # authorized requests in progress
        self._is_lost = False
        self._timer = self.loop.call_later(IDLE_SECONDS, self._check)
        self._unsent = 0
        self._has_sent = False

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Give an authorized request the time that it takes."""
        self.is_trusted = True
        self.served += 1
        try:
            yield
        finally:
            self.served -= 1
            self._wait()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        others = [*self.open_connections]
        self.open_connections[self] = None
        if len(others) >= self.max_connections:
            first = min(others, key=lambda other: (other.is_trusted, other.served))
            closed = self if first.served else first
            del self.open_connections[closed]  # now: the next one may come before it is closed
            closed.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.open_connections.pop(self, None)
        self._is_lost = True
        self._timer.cancel()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._has_sent = True

    def _wait(self) -> None:
        if not self._is_lost:
            self._timer.cancel()
            self._unsent, self._has_sent = self.transport.get_write_buffer_size(), False
            self._timer = self.loop.call_later(IDLE_SECONDS, self._check)

    def _check(self) -> None:
        """Close the connection unless a request is being answered, or its reader makes progress."""
        unsent = self.transport.get_write_buffer_size()
        is_working = self.served > 0 and not unsent
        if is_working or self._has_sent or unsent < self._unsent:
            self._wait()
        else:
            self.transport.abort()


def trusting(app: App) -> App:
    """Return an application that marks the connections of its requests as authorized."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        with scope["state"]["connection"].serving():
            await app(scope, receive, send)

    return serve
