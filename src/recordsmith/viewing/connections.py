"""Limits on the connections of the viewer: how many there are, and how long they may be idle.

All users of this machine can connect. Connections without an authorized request are closed first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

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


class Connection(H11Protocol):
    """A connection, which is closed if it makes no progress or if there are too many."""

    def __init__(
        self, open_connections: dict[Connection, None], *arguments: Any, **options: Any
    ) -> None:
        """`open_connections`: those of the server, the oldest first."""
        super().__init__(*arguments, **options)
        self._open, self._most = open_connections, connection_limit()
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
        others = [*self._open]
        self._open[self] = None
        if len(others) >= self._most:
            first = min(others, key=lambda other: (other.is_trusted, other.served))
            closed = self if first.served else first
            del self._open[closed]  # now: the next one may come before it is closed
            closed.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._open.pop(self, None)
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
