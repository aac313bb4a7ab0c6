"""A server of files behind a network: nginx with a delay and a limited bandwidth.

    python benchmarks/slow_server.py FOLDER [--delay 0.03] [--port 8123]

Needs nginx with lua: `apt-get install nginx-light libnginx-mod-http-lua`. FOLDER is a bucket of S3
(path style, signatures are ignored: HEAD, GET with ranges and If-Match, LIST) of the folder's name,
and the same URLs are files of a web server. A response of n bytes takes the delay and n / rate, and
all together take at most the rate of the link; of a longer response than 16 MiB, the link counts
only so much. Files that change are listed after `refresh`.

nginx runs in a process of its own, so its CPU time is not that of the client.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

HERE = Path(__file__).resolve().parent
MODULES = Path("/usr/lib/nginx/modules")

DELAY_SECONDS = 0.03
CONNECTION_RATE = 50_000_000
LINK_RATE = 8 * CONNECTION_RATE
"""Bytes a second: of one connection, and of all."""

_CHUNK_BYTES = 500_000  # nginx waits after each, in whole milliseconds
_TIMER_ALLOWANCE = 1.04  # its timers fire late by half a millisecond
_MAX_RESERVED = 16 << 20
_FLUSH_SECONDS = 0.1

_CONFIGURATION = """
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
master_process off;
daemon off;
pid {own}/pid;
error_log {own}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    log_format seen '$msec\t$request_time\t$connection\t$request_method\t'
        '$request_uri\t$http_range\t$status\t$body_bytes_sent';
    access_log {own}/access.log seen buffer=256k flush=100ms;
    client_body_temp_path {own}/body;
    proxy_temp_path {own}/proxy;
    fastcgi_temp_path {own}/fastcgi;
    scgi_temp_path {own}/scgi;
    uwsgi_temp_path {own}/uwsgi;
    sendfile on;
    tcp_nodelay on;
    sendfile_max_chunk {chunk};
    keepalive_requests 100000000;
    keepalive_timeout 120s;
    default_type application/octet-stream;
    open_file_cache max=4096;
    lua_package_path '{here}/?.lua;;';
    lua_shared_dict link 1m;
    init_by_lua_block {{
        require("slow_server").load("{own}/listing", {{
            delay = {delay}, rate = {rate}, link_rate = {link_rate}, chunk = {chunk},
            most_reserved = {most_reserved}, parent = {parent},
        }})
    }}
    init_worker_by_lua_block {{ require("slow_server").watch() }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        root {root};
        limit_rate {limit_rate};
        error_page 403 404 /.missing;
        location = /.missing {{
            internal;
            return 404 '<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>';
        }}
        location ~ "^/([^/]+)/?$" {{
            access_by_lua_block {{ require("slow_server").wait() }}
            content_by_lua_block {{ require("slow_server").list(ngx.var[1]) }}
        }}
        location / {{
            access_by_lua_block {{ require("slow_server").wait() }}
        }}
    }}
}}
"""


class Request(NamedTuple):
    """A line of the log; times in seconds, `size_bytes` of the body that was sent."""

    start: float
    stop: float
    connection: int
    method: str
    path: str
    range: str
    status: int
    size_bytes: int


class SlowServer:
    """Serves a folder until the end of a `with` block."""

    def __init__(
        self,
        folder: Path,
        *,
        delay: float = DELAY_SECONDS,
        rate: int = CONNECTION_RATE,
        link_rate: int = LINK_RATE,
        port: int = 0,
        processors: frozenset[int] | None = None,
    ) -> None:
        """`link_rate`: of all connections together; 0 for no limit. `processors`: it runs on."""
        self.folder = folder.resolve()
        self.delay, self.rate, self.link_rate = delay, rate, link_rate
        self.port = port or _free_port()
        self.processors = processors
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.endpoint}/{self.folder.name}"
        self.bucket = f"s3://{self.folder.name}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._own = Path(tempfile.mkdtemp(prefix="slow-server-"))
        self._log = self._own / "access.log"
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self._own, ignore_errors=True)

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the server since it was started."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    @property
    def store_options(self) -> dict[str, Any]:
        """What obstore needs to read the buckets as `s3://`."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "skip_signature": True,
            "virtual_hosted_style_request": False,
            "client_options": {"allow_http": True},
        }

    @property
    def aws_environment(self) -> dict[str, str]:
        """What boto3, obstore and Lance need, and MosaicML streaming."""
        return {
            "AWS_ALLOW_HTTP": "true",
            "S3_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def mark(self) -> int:
        """Return the place in the log of the requests that come next."""
        time.sleep(3 * _FLUSH_SECONDS)
        return self._log.stat().st_size if self._log.exists() else 0

    def requests(self, since: int = 0) -> list[Request]:
        """Return the finished requests since a `mark`, by their start."""
        time.sleep(3 * _FLUSH_SECONDS)
        with open(self._log, "rb") as log:
            log.seek(since)
            lines = log.read().decode().splitlines()
        return sorted(map(_parse_line, lines))

    def _start(self) -> None:
        (self._own / "listing").write_text("".join(_listing(self.folder)))
        (self._own / "conf").write_text(
            _CONFIGURATION.format(
                modules=MODULES,
                own=self._own,
                here=HERE,
                root=self.folder.parent,
                port=self.port,
                chunk=int(_CHUNK_BYTES * _TIMER_ALLOWANCE),
                limit_rate=int(self.rate * _TIMER_ALLOWANCE),
                delay=self.delay,
                rate=self.rate,
                link_rate=self.link_rate,
                most_reserved=_MAX_RESERVED,
                parent=os.getpid(),
            )
        )
        nginx = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if nginx is None or not (MODULES / "ngx_http_lua_module.so").exists():
            raise FileNotFoundError("nginx with lua: apt-get install libnginx-mod-http-lua")
        self._process = subprocess.Popen(
            [nginx, "-p", str(self._own), "-c", str(self._own / "conf")],
            stderr=subprocess.PIPE,
        )
        if self.processors is not None:
            os.sched_setaffinity(self._process.pid, self.processors)
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        for _ in range(200):
            if self._process.poll() is not None:
                assert self._process.stderr is not None
                raise RuntimeError(self._process.stderr.read().decode())
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("nginx does not start")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()
            self._process = None


def longest_chain(requests: Iterable[Request]) -> int:
    """Return how many requests followed each other, each after the end of the one before."""
    # requests that started later can only follow those that ended by then
    ends: list[tuple[float, int]] = []
    longest = 0
    for request in sorted(requests):
        depth = 1 + max((depth for stop, depth in ends if stop <= request.start), default=0)
        ends.append((request.stop, depth))
        longest = max(longest, depth)
    return longest


def most_at_once(requests: Iterable[Request]) -> int:
    """Return how many requests were answered at the same time, at most."""
    events = [(request.start, 1) for request in requests]
    events += [(request.stop, -1) for request in requests]
    now = most = 0
    for _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def _parse_line(line: str) -> Request:
    stop, taken, connection, method, path, wanted, status, size = line.split("\t")
    return Request(
        round(float(stop) - float(taken), 3),
        float(stop),
        int(connection),
        method,
        path,
        "" if wanted == "-" else wanted,
        int(status),
        int(size),
    )


def _listing(folder: Path) -> list[str]:
    lines = []
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            modified = datetime.fromtimestamp(int(stat.st_mtime), UTC)
            tag = f'"{int(stat.st_mtime):x}-{stat.st_size:x}"'  # as nginx makes it
            key = path.relative_to(folder.parent).as_posix()
            lines.append(f"{key}\t{stat.st_size}\t{modified:%Y-%m-%dT%H:%M:%S.000Z}\t{tag}\n")
    return sorted(lines, key=lambda line: line.split("\t")[0].encode())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a folder behind a slow network.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--delay", type=float, default=DELAY_SECONDS, help="seconds")
    parser.add_argument("--rate", type=int, default=CONNECTION_RATE, help="of a connection, B/s")
    parser.add_argument("--link-rate", type=int, default=LINK_RATE, help="of all, B/s; 0: no limit")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long")
    given = parser.parse_args()
    with SlowServer(
        given.folder,
        delay=given.delay,
        rate=given.rate,
        link_rate=given.link_rate,
        port=given.port,
    ) as server:
        print(server.url, flush=True)
        time.sleep(60 * given.minutes)


if __name__ == "__main__":
    main()
