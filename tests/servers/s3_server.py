"""moto's S3, which fails as networks and servers do: a program that `s3.S3` starts.

It prints its port, and ends when its standard input does.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any


class _Faults:
    """A WSGI application that lets some requests to another one fail."""

    def __init__(self, serve: Callable[..., Any]) -> None:
        self._serve = serve
        self._lock = threading.Lock()
        self._changes = threading.Lock()  # moto checks conditions and writes in two steps
        self._requests: list[tuple[str, str, str, int, str]] = []
        self._rule: dict[str, Any] = {"rate": 0}
        self._random = random.Random(0)

    def __call__(self, environ: Mapping[str, Any], start: Callable[..., Any]) -> list[bytes]:
        method, path, query = (
            environ[name] for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING")
        )
        if path.startswith("/-/"):
            return self._control(path, environ, start)
        if "HTTP_X_TEST" in environ:
            return self._served(environ, start)[2]
        with self._lock:
            fault = self._chosen(method, f"{path}?{query}")
        key = path.partition("/")[2].partition("/")[2]
        if (method, query) == ("POST", "delete"):
            data = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            environ = {**environ, "wsgi.input": io.BytesIO(data)}
            key = re.findall("<Key>([^<]*)</Key>", data.decode())[0]
        status, headers, body = "", [], [b""]
        if fault.isdigit():
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status, body = f"{fault} Failed", [_error_page(environ, fault)]
        elif fault != "reset":
            answer: list[Any] = []
            status, headers, body = self._served(environ, lambda *given: answer.extend(given))
            status, headers = answer[0], answer[1]
        with self._lock:
            self._requests.append((method, key, query, int(status[:3] or 0), fault))
        if fault == "done-500":
            status, headers, body = "500 Failed", [], [_error_page(environ, "500")]
        if fault in ("reset", "lost") or (fault == "truncated" and method != "GET"):
            return _reset(environ)
        if not headers:
            headers = [("Content-Length", str(len(body[0])))]
        start(status, headers)
        if fault == "truncated":
            whole = b"".join(body)
            return _cut(environ, whole[: len(whole) // 2])  # type: ignore[return-value]
        return body

    def _served(self, environ: Any, start: Any) -> tuple[str, list[Any], list[bytes]]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return "", [], [*self._serve(environ, start)]
        with self._changes:
            return "", [], [*self._serve(environ, start)]

    def _chosen(self, method: str, path: str) -> str:
        rule = self._rule
        if (
            not rule["rate"]
            or rule["most"] <= 0
            or not re.search(rule["method"], method)
            or not re.search(rule["path"], path)
            or self._random.random() >= rule["rate"]
        ):
            return ""
        rule["most"] -= 1
        return str(self._random.choice(rule["kinds"]))

    def _control(self, path: str, environ: Any, start: Any) -> list[bytes]:
        data = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self._lock:
            if path == "/-/rule":
                self._rule = json.loads(data)
                self._random = random.Random(self._rule["seed"])
                found = b""
            else:
                found, self._requests = json.dumps(self._requests).encode(), []
        start("200 OK", [("Content-Length", str(len(found)))])
        return [found]


def _error_page(environ: Mapping[str, Any], status: str) -> bytes:
    """What S3 answers, which repeats the credentials and what was signed."""
    sent = environ.get("HTTP_AUTHORIZATION", ""), environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
    codes = {"500": "InternalError", "503": "SlowDown", "403": "SignatureDoesNotMatch"}
    return (
        f"<?xml version='1.0'?><Error><Code>{codes.get(status, 'InvalidRequest')}</Code><Message>"
        f"{sent}</Message><StringToSign>{sent}</StringToSign></Error>"
    ).encode()


def _reset(environ: Mapping[str, Any]) -> Any:
    """Reset the connection."""
    import socket

    connection = environ["werkzeug.socket"]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


def _cut(environ: Mapping[str, Any], half: bytes) -> Any:
    yield half
    _reset(environ)


def main() -> None:
    os.environ["S3_UPLOAD_PART_MIN_SIZE"] = "1"
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "20"  # in a page of a listing
    os.environ["MOTO_S3_DEFAULT_KEY_BUFFER_SIZE"] = str(1 << 24)
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            """Log nothing."""

    application = _Faults(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    server.daemon_threads = True  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
