"""`FaultyS3`: moto's S3 in a process of its own, which fails as networks and servers do.

Run as a program, it is that process: it prints its port, and ends when its standard input does.
"""

from __future__ import annotations

import io
import json
import logging
import os
import random
import re
import struct
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

FAULTS = {
    "reset": "the connection is reset before anything is done",
    "500": "nothing is done, and the answer is 500",
    "503": "nothing is done, and the answer is 503 SlowDown",
    "lost": "it is done, and the connection is reset",
    "done-500": "it is done, and the answer is 500",
    "truncated": "it is done, and the connection is reset in the middle of the answer",
}

SECRETS = {
    "access_key_id": "AKIAQUITESECRETKEYID",
    "secret_access_key": "a-very-secret-access-key",
    "session_token": "a-very-secret-session-token",
}

QUICK = {
    "recordsmith.stores.remote.multipart.PART_BYTES": 1 << 14,
    "recordsmith.stores.remote.object_store.PART_BYTES": 1 << 14,
    "recordsmith.stores.remote.object_store._FIRST_PAUSE_SECONDS": 0.003,
}
"""What to set in a process so that small shards have parts, and pauses are short."""

_FASTER = {"init_backoff": 0.005, "max_backoff": 0.05, "base": 2}


@dataclass(frozen=True)
class Request:
    """A request that was answered.

    fault: how it failed, empty if it did not.
    """

    method: str
    key: str
    query: str
    status: int
    fault: str

    @property
    def has_written(self) -> bool:
        """Whether it made or replaced an object."""
        is_whole = self.method == "PUT" and "partNumber" not in self.query
        is_last_part = self.method == "POST" and "uploadId=" in self.query
        return (is_whole or is_last_part) and self.status == 200

    @property
    def has_deleted(self) -> bool:
        """Whether it deleted an object, unless there was none."""
        return self.method == "POST" and self.query == "delete" and self.status == 200


class FaultyS3:
    """The server, until the `with` block ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def options(self) -> dict[str, Any]:
        """Return the options of a store whose pauses are short."""
        from datetime import timedelta

        backoff = {
            name: value if name == "base" else timedelta(seconds=value)
            for name, value in _FASTER.items()
        }
        return {
            **SECRETS,
            "endpoint": self.url,
            "region": "us-east-1",
            "retry_config": {"max_retries": 3, "backoff": backoff},
        }

    def make_bucket(self, name: str = "bucket") -> None:
        self._ask("PUT", f"/{name}")

    def fail(
        self,
        kinds: Collection[str] = tuple(FAULTS),
        *,
        rate: float = 1.0,
        method: str = "",
        path: str = "",
        most: int = 1 << 30,
        seed: int = 0,
    ) -> None:
        """Let requests fail from now on; `rate=0`: none.

        Args:
            kinds: of faults; or a status, of which nothing but the answer is known.
            rate: the share of requests that fail.
            method, path: regular expressions of those that can, of the path with its query.
            most: how many fail.
        """
        rule = {"kinds": [*kinds], "rate": rate, "method": method, "path": path, "most": most}
        self._ask("POST", "/-/rule", json.dumps({**rule, "seed": seed}).encode())

    def requests(self) -> list[Request]:
        """Return what was requested since the last call."""
        return [Request(*one) for one in json.loads(self._ask("POST", "/-/requests"))]

    def objects(self, bucket: str = "bucket", prefix: str = "") -> dict[str, bytes]:
        """Return the objects below a prefix, without it."""
        listed = self._ask("GET", f"/{bucket}?list-type=2&max-keys=100000&prefix={prefix}")
        keys = re.findall("<Key>([^<]*)</Key>", listed.decode())
        return {key.removeprefix(prefix): self._ask("GET", f"/{bucket}/{key}") for key in keys}

    def put(self, key: str, data: bytes, bucket: str = "bucket") -> None:
        self._ask("PUT", f"/{bucket}/{key}", data)

    def delete(self, prefix: str, bucket: str = "bucket") -> None:
        """Delete the objects below a prefix."""
        for name in self.objects(bucket, prefix):
            self._ask("DELETE", f"/{bucket}/{prefix}{name}")

    def uploads(self, bucket: str = "bucket") -> list[str]:
        """Return the keys of uploads that are neither complete nor aborted."""
        return re.findall("<Key>([^<]*)</Key>", self._ask("GET", f"/{bucket}?uploads").decode())

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        access = "AWS4-HMAC-SHA256 Credential=x/20200101/us-east-1/s3/aws4_request"
        headers = {"X-Test": "1", "Authorization": access, "Content-Type": "application/octet"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())


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
        if fault in ("500", "503") or (fault.isdigit() and fault not in FAULTS):
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
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    application = _Faults(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Handler)
    server.daemon_threads = True  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))
    main()
