"""Who may ask the viewer: requests with its token, to one of its names, from its own page."""

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
"""The path before a token, for frames in notebooks: browsers keep cookies from those."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
)
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
_NOTEBOOKS = "http://localhost:* http://127.0.0.1:*"


class Guard:
    """Checks each request before the application sees it, and adds headers to each response."""

    def __init__(
        self, app: App, token: str, hosts: Collection[str], *, in_notebook: bool = False
    ) -> None:
        """
        Args:
            token: what a request must have.
            hosts: the names, with ports, that a request may be sent to.
            in_notebook: whether pages of this machine may show the viewer in a frame.
        """
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._cookie = "recordsmith-viewer"
        self._frames = f"'self' {_NOTEBOOKS}" if in_notebook else "'self'"

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
        if path.startswith(_FRAMED):
            token, slash, rest = path.removeprefix(_FRAMED).partition("/")
            if slash and self._is_token(token):
                scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
                await self._app(scope, receive, self._with_headers(send, f"/{rest}"))
                return
        elif self._is_token(_cookie(headers, f"{self._cookie}-{_port(headers)}")):
            await self._app(scope, receive, self._with_headers(send, path))
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if path == "/" and self._is_token(query.get("token", [""])[0]):
            cookie = f"{self._cookie}-{_port(headers)}={self._token.decode()}"
            attributes = "; HttpOnly; SameSite=Strict; Path=/"
            await _answer(
                send, 303, "", location=b"./", **{"set-cookie": (cookie + attributes).encode()}
            )
            return
        await _answer(send, 401, "Open the address with the token, which the viewer printed.")

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)

    def _with_headers(self, send: _Send, path: str) -> _Send:
        policy = _REPORT_POLICY if path.startswith("/report/") else _POLICY
        added = [
            (b"content-security-policy", f"{policy}; frame-ancestors {self._frames}".encode()),
            *_HEADERS,
        ]

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


async def _answer(send: _Send, status: int, text: str, **headers: bytes) -> None:
    named = [(name.encode(), value) for name, value in headers.items()]
    kind = (b"content-type", b"text/plain; charset=utf-8")
    policy = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [kind, policy, *named, *_HEADERS],
    }
    await send(start)
    await send({"type": "http.response.body", "body": text.encode()})
