"""Buckets of moto's server, which behaves like Amazon S3, on a free port of this machine."""

from __future__ import annotations

import functools
import json
import urllib.request
from typing import Any
from uuid import uuid4

import pytest

ACCESS = {"access_key_id": "AKIATESTING", "secret_access_key": "not-to-be-shown"}


@functools.cache
def _endpoint() -> str:
    """Start the server, once for each process of the tests, whose end stops it."""
    server = pytest.importorskip("moto.server")
    threaded = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    threaded.start()
    host, port = threaded.get_host_and_port()
    return f"http://{host}:{port}"


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
