"""A web server that answers each request by a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_TIME = "Mon, 01 Jan 2024 00:00:00 GMT"


class Request(BaseHTTPRequestHandler):
    """A request; the server answers it by a function."""

    protocol_version = "HTTP/1.1"
    answer_with: Callable[[Request], None]

    def do_GET(self) -> None:
        try:
            type(self).answer_with(self)
        except OSError:  # the client has gone
            self.close_connection = True

    do_HEAD = do_PUT = do_GET

    def log_message(self, *_: object) -> None:
        pass

    def answer(
        self, body: bytes = b"", status: int = 200, reason: str | None = None, **headers: object
    ) -> None:
        """Answer with headers, in which `_` is `-`."""
        self.send_response_only(status, reason)
        for name, value in (
            {"Content_Length": len(body), "Last_Modified": _TIME} | headers
        ).items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving(answer_with: Callable[[Request], None]) -> Iterator[str]:
    """Run a server; yields its URL."""
    handler = type("Handler", (Request,), {"answer_with": staticmethod(answer_with)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
