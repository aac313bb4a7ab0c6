"""Runs the viewer: an HTTP server of this process, in a thread."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Sequence
from functools import partial
from html import escape
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from recordsmith.dataset import Dataset, Paths
from recordsmith.support.errors import OptionError, needs_extra, option

if TYPE_CHECKING:
    from recordsmith.viewing.app import ViewerApp
    from recordsmith.viewing.guard import Guard

_LOCAL = ("127.0.0.1", "localhost", "::1")
_ALL = ("0.0.0.0", "::")  # noqa: S104 - compared with
_SEND_BUFFER = 1 << 17  # bytes
_MAX_POSITION = 2**53  # that a browser reads without loss


class Viewer:
    """A running viewer. Returned by `recordsmith.view`; notebooks show it in a frame.

    Attributes:
        url: the address for a browser, with the token.
    """

    def __init__(
        self,
        app: ViewerApp,
        guard: Guard,
        server: Any,
        listening: socket.socket,
        url: str,
        framed_url: str,
    ) -> None:
        self._app, self._guard, self._server = app, guard, server
        self._socket, self.url, self._framed_url = listening, url, framed_url
        self._thread = threading.Thread(
            target=server.run, args=([listening],), name="viewer", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.should_exit = True
        self._app.close()
        self._thread.join(5)
        self._socket.close()

    def wait(self) -> None:
        """Wait until the server ends."""
        while self._thread.is_alive():
            self._thread.join(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Viewer({self.url!r})"

    def _repr_html_(self) -> str:
        # with the token in its path: browsers send no cookies from a frame of another site
        self._guard.is_framed = True
        address = escape(self._framed_url, quote=True)
        return f'<iframe src="{address}" width="100%" height="720" style="border: 0"></iframe>'


def _positions(at: int | Sequence[int] | None) -> tuple[int | None, list[int] | None]:
    """Return the position that is shown first, or else those of the only records."""
    if at is None:
        return None, None
    try:
        numbers = [int(index(at))] if isinstance(at, SupportsIndex) else [*map(index, at)]
    except TypeError:
        numbers = [-1]
    if not all(0 <= number < _MAX_POSITION for number in numbers):
        raise OptionError(option="at", value=at, expected="positions, from 0 on")
    return (numbers[0], None) if isinstance(at, SupportsIndex) else (None, numbers)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # named as TCP, so that asyncio sends small responses at once
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # little is in the buffers of the system, so that the progress of a slow reader is seen
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError, TypeError, UnicodeError) as error:  # of names, the last two
        listening.close()
        raise OptionError(
            f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', '') or error}",
            option="port",
            remedy=f"Choose another {option('port')}, or none for a free one.",
        ) from None
    return listening


def view(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    where: str | None = None,
    at: int | Sequence[int] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    allow_host: str | Sequence[str] = (),
) -> Viewer:
    """View records in a browser: a gallery, each record, statistics. Needs the extra `view`.

    Serves a page from a thread of this process, only for this machine and only with the token in
    its address. In a notebook, the result is shown as a frame. Reads what is on the screen.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: only this split, or part of one: train, train[:80%]. None for all.
        where: show only records that match, as in `Dataset.filter`.
        at: show the record at this position; several positions are the only records.
        host: the address to listen on; one that other machines can reach needs a token.
        port: the port; 0 for a free one.
        token: the secret in the address: at least 16 letters and digits. None for that of
            `token_file`, of the variable RECORDSMITH_VIEW_TOKEN, or a random one.
        token_file: a file with the token, instead of the variable RECORDSMITH_VIEW_TOKEN; no
            other user may read it.
        allow_host: names and ports by which a proxy reaches the viewer, such as
            "hub.example.org:8000".

    Returns:
        The running viewer, with its `url`; `close` ends it.

    Raises:
        OptionError: the address cannot be used, or an argument is invalid.
        FileAccessError: a path does not exist or cannot be read, or other users may read
            `token_file`.
        CorruptDataError: no record can be read.

    Example:
        viewer = rs.view("out")
        print(viewer.url)
        viewer.close()
    """
    with needs_extra("view", "uvicorn"):
        import uvicorn
    with needs_extra("view", "starlette"):
        from recordsmith.viewing.app import InitialView, ViewerApp
    from recordsmith.dataset import parse_where
    from recordsmith.viewing.access import HOW_TO_PASS, find_token, user_path
    from recordsmith.viewing.connections import BACKLOG, Connection, trusting
    from recordsmith.viewing.guard import Guard
    from recordsmith.viewing.records import ViewedRecords

    token = find_token(token, token_file)
    if host not in _LOCAL and token is None:
        raise OptionError(
            f"{option('host')} {host} opens the viewer to other machines, which needs a token",
            option="token",
            remedy=HOW_TO_PASS,
        )
    token = token or secrets.token_hex(16)
    path = user_path()
    if where:
        parse_where(where)
    first, several = _positions(at)
    listening = _listen(host, port)
    try:
        records = ViewedRecords(paths_or_dataset, split, several)
    except BaseException:
        listening.close()
        raise
    number = listening.getsockname()[1]
    shown = _LOCAL[0] if host in _ALL else f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{number}"

    given = () if isinstance(paths_or_dataset, Dataset) else records.view.origin.places
    start = InitialView(tuple(map(str, given)), split, where or "", first)
    app = ViewerApp(records, start, (paths_or_dataset, split))
    hosts = {f"{name}:{number}" for name in ("127.0.0.1", "localhost", "[::1]", shown)}
    hosts |= {allow_host} if isinstance(allow_host, str) else {*allow_host}
    guard: Any = Guard(trusting(app.app), token, path, hosts)
    protocol: Any = partial(Connection, {})
    config = uvicorn.Config(
        guard,
        log_config=None,  # another would close the handlers of this process
        log_level="error",
        access_log=False,
        lifespan="off",
        http=protocol,
        loop="asyncio",
        ws="none",
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=1,
    )
    return Viewer(
        app,
        guard,
        uvicorn.Server(config),
        listening,
        f"{address}/{path}/?token={token}",
        f"{address}/t/{token}/",
    )
