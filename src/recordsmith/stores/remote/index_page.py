"""The pages by which web servers list a folder.

Servers make them while they send them, without stating a length, which obstore needs. So they are
read with the standard library.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from recordsmith.errors import FileAccessError
from recordsmith.stores.remote.request_errors import request_error
from recordsmith.stores.store import EntryKind

_MOST_PAGE_BYTES = 1 << 24
_INVALID = re.compile(r"[/\x00-\x1f\x7f]")
_DEFAULT_SECONDS = 30.0
_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "seconds": 1, "m": 60, "min": 60, "minutes": 60}


def read_index_page(
    url: str, headers: Mapping[str, str], timeout: str | timedelta
) -> set[tuple[str, EntryKind]]:
    """Return the names that a folder's page links to and that lie directly in the folder.

    Args:
        url: of the folder, with a slash at its end.
        headers: sent to this server only, not to one that it redirects to.
        timeout: as of obstore, such as `30s`.

    Raises:
        FileAccessError: there is no such page, or the server fails.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "recordsmith"})  # noqa: S310
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    seconds = _seconds(timeout)
    deadline = time.monotonic() + seconds
    data = bytearray()
    failure = ""
    try:
        with _opened(request, seconds) as response:
            links = _Links(response.url)
            if response.headers.get_content_type() != "text/html":
                return links.names
            while (piece := response.read1(1 << 16)) and len(data) <= _MOST_PAGE_BYTES:
                data += piece
                if time.monotonic() > deadline:
                    raise TimeoutError("timed out")
    except urllib.error.HTTPError as error:
        error.close()
        failure = f"status code: {error.code}"
    except (OSError, HTTPException, ValueError) as error:  # ValueError: of a redirection
        failure = f"error sending request: {error}"
    if failure:  # raised here, without the response and the address that it may be redirected to
        raise request_error(failure, url, operation="read")
    if len(data) > _MOST_PAGE_BYTES:
        raise FileAccessError(None, "its index page is too large", url)
    links.feed(data.decode(errors="replace"))
    if not links.is_complete:
        raise request_error("error decoding response body", url, operation="read")
    return links.names


def _seconds(timeout: str | timedelta) -> float:
    if not isinstance(timeout, str):
        return timeout.total_seconds() if isinstance(timeout, timedelta) else _DEFAULT_SECONDS
    found = re.fullmatch(r"([0-9.]{1,9}) ?([a-z]{1,9})", timeout)
    return float(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else _DEFAULT_SECONDS


def _opened(request: urllib.request.Request, seconds: float) -> Any:
    """Send a request and return the response when its head is complete.

    The usual function follows a redirection to FTP, and waits without end for a head that arrives
    byte by byte.
    """
    connections: list[HTTPConnection] = []
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Handler(connections),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    deadline = threading.Timer(seconds, _break_off, [connections])
    deadline.daemon = True
    deadline.start()
    try:
        return opener.open(request, timeout=seconds)
    finally:
        deadline.cancel()


def _break_off(connections: list[HTTPConnection]) -> None:
    for connection in connections:
        with suppress(OSError, AttributeError):  # it has no socket any more
            connection.sock.shutdown(socket.SHUT_RDWR)


class _Handler(urllib.request.AbstractHTTPHandler):
    """Opens connections, and notes them."""

    def __init__(self, connections: list[HTTPConnection]) -> None:
        super().__init__()
        self._connections = connections

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connect(HTTPConnection), request)

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connect(HTTPSConnection), request)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def _connect(self, kind: Any) -> Any:
        def connect(host: str, **options: Any) -> HTTPConnection:
            self._connections.append(kind(host, **options))
            return self._connections[-1]

        return connect


class _Links(HTMLParser):
    """The names that a page links to and that lie directly below it."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.names: set[tuple[str, EntryKind]] = set()
        self.is_complete = False
        self._url = url

    def handle_endtag(self, tag: str) -> None:
        self.is_complete |= tag == "html"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href")
        if tag != "a" or not link:
            return
        try:
            base, found = urlsplit(self._url), urlsplit(urljoin(self._url, link))
        except ValueError:
            return
        if found[:2] != base[:2] or not found.path.startswith(base.path) or found.query:
            return
        name = unquote(found.path[len(base.path) :])
        kind: EntryKind = "folder" if name.endswith("/") else "object"
        name = name.removesuffix("/")
        if name not in ("", ".", "..") and not _INVALID.search(name):
            self.names.add((name, kind))
