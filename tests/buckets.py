"""Buckets of moto's server, which behaves like Amazon S3, on a free port of this machine."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import urllib.request
from typing import Any
from uuid import uuid4

import pytest

ACCESS = {"access_key_id": "AKIATESTING", "secret_access_key": "not-to-be-shown"}

_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()  # until the tests end
"""
_running: list[subprocess.Popen[str]] = []  # with open pipes


@functools.cache
def _endpoint() -> str:
    """Start the server, once for each process of the tests, whose end stops it."""
    pytest.importorskip("moto.server")
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    _running.append(server)
    assert server.stdout is not None
    return f"http://127.0.0.1:{int(server.stdout.readline())}"


def new_bucket() -> tuple[str, dict[str, Any]]:
    """Return the URL of an empty bucket, and the options of its store."""
    pytest.importorskip("obstore")
    name = f"bucket-{uuid4().hex}"
    request = urllib.request.Request(f"{_endpoint()}/{name}", method="PUT")
    urllib.request.urlopen(request).close()
    return f"s3://{name}", {"endpoint": _endpoint(), "region": "us-east-1", **ACCESS}


def options_text(options: dict[str, Any]) -> str:
    """Return options as `--store-options` takes them."""
    return json.dumps(options)
