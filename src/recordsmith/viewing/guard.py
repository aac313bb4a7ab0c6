"""Who may ask the viewer: requests with its token, below its path, to one of its names."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

_Scope: TypeAlias = MutableMapping[str, Any]
_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

_METHODS = ("GET", "HEAD", "DELETE")
_FRAMED = "/t/"
"""The path before a token, for frames in notebooks: browsers send no cookies from those."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
)
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
_NOTEBOOKS = "http://localhost:* http://127.0.0.1:*"
_ENTRANCE = b"""<!doctype html><meta charset="utf-8"><title>recordsmith</title>
<link rel="icon" href="data:,"><a href="./">Open the viewer</a>"""


class Guard:
    """Checks each request before the application sees it, and adds headers to each response."""

    def __init__(self, app: App, token: str, path: str, hosts: Collection[str]) -> None:
        """
        Args:
            token: what a request must have.
            path: the first part of the path of each page; the cookie is sent to no other.
            hosts: the names, with ports, that a request may be sent to.

        Attributes:
            is_framed: whether pages of this machine, such as a notebook, may show the viewer in a
                frame, with the token in its path.
        """
        self._app = app
        self._token = token.encode()
        self._root = f"/{path}/"
        self._hosts = frozenset(host.lower() for host in hosts)
        self._cookie = "recordsmith-viewer"
        self.is_framed = False

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        host = headers.get("host", b"").decode("latin-1").lower()
        origin = headers.get("origin")
        if host not in self._hosts:
            await _answer(send, 421, "This name is not served here; see --allow-host.")
        elif scope["method"] not in _METHODS:
            await _answer(send, 405, "Only GET and DELETE are served.")
        elif origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host:
            await _answer(send, 403, "Requests of other pages are refused.")
        else:
            await self._authorize(scope, receive, send, headers)

    async def _authorize(
        self, scope: _Scope, receive: _Receive, send: _Send, headers: MutableMapping[str, bytes]
    ) -> None:
        path: str = scope["path"]
        if self.is_framed and path.startswith(_FRAMED):
            token, slash, rest = path.removeprefix(_FRAMED).partition("/")
            if slash and self._is_token(token):
                await self._pass_on(scope, receive, send, rest, is_framed=True)
                return
        elif _is_equal(path[: len(self._root)], self._root):
            rest = path[len(self._root) :]
            if self._is_token(_cookie(headers, f"{self._cookie}-{_port(headers)}")):
                await self._pass_on(scope, receive, send, rest, is_framed=False)
                return
            query = parse_qs(scope["query_string"].decode("latin-1"))
            if not rest and self._is_token(query.get("token", [""])[0]):
                await self._let_in(send, headers)
                return
        await _answer(send, 401, "Open the address with the token, which the viewer printed.")

    async def _let_in(self, send: _Send, headers: MutableMapping[str, bytes]) -> None:
        """Set the cookie, and open the address without the token.

        Not a redirect: if another page or a file led here, browsers send no strict cookie with it.
        """
        cookie = (
            f"{self._cookie}-{_port(headers)}={self._token.decode()}"
            f"; HttpOnly; SameSite=Strict; Path={self._root}"
        )
        added = {"set-cookie": cookie.encode(), "refresh": b"0;url=./"}
        await _answer(send, 200, _ENTRANCE, b"text/html; charset=utf-8", **added)

    async def _pass_on(
        self, scope: _Scope, receive: _Receive, send: _Send, rest: str, *, is_framed: bool
    ) -> None:
        path = f"/{rest}"
        scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, _with_headers(send, path, is_framed=is_framed))

    def _is_token(self, text: str) -> bool:
        return _is_equal(text, self._token.decode())


def _is_equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


def _with_headers(send: _Send, path: str, *, is_framed: bool) -> _Send:
    policy = _REPORT_POLICY if path.startswith("/report/") else _POLICY
    frames = f"'self' {_NOTEBOOKS}" if is_framed else "'self'"
    added = [
        (b"content-security-policy", f"{policy}; frame-ancestors {frames}".encode()),
        *_HEADERS,
    ]
    if not is_framed:
        added.append((b"x-frame-options", b"SAMEORIGIN"))

    async def send_with_headers(message: _Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return send_with_headers


_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


def _port(headers: MutableMapping[str, bytes]) -> str:
    """The port of a request: cookies of one name would be shared by all ports."""
    port = headers.get("host", b"").decode("latin-1").rpartition(":")[2]
    return port if port.isdigit() else "80"


def _cookie(headers: MutableMapping[str, bytes], name: str) -> str:
    """A cookie; SimpleCookie reads none after one of another server that it finds invalid."""
    for cookie in headers.get("cookie", b"").decode("latin-1").split(";"):
        known, _, value = cookie.strip().partition("=")
        if known == name:
            return value
    return ""


async def _answer(
    send: _Send,
    status: int,
    content: str | bytes,
    content_type: bytes = b"text/plain; charset=utf-8",
    **headers: bytes,
) -> None:
    policy = b"default-src 'none'; img-src data:; frame-ancestors 'none'"
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [
            (b"content-type", content_type),
            (b"content-security-policy", policy),
            (b"x-frame-options", b"DENY"),
            *((name.encode(), value) for name, value in headers.items()),
            *_HEADERS,
        ],
    }
    await send(start)
    body = content.encode() if isinstance(content, str) else content
    await send({"type": "http.response.body", "body": body})
