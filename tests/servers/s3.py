"""Amazon S3, by moto, whose requests fail if a test wants it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .server import HOST, Address, NotInstalledError, Server

if TYPE_CHECKING:
    from recordsmith.stores.network.object_store import ObjectStore

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
    "recordsmith.stores.network.multipart.PART_BYTES": 1 << 14,
    "recordsmith.stores.network.object_store.PART_BYTES": 1 << 14,
    "recordsmith.stores.network.object_store._FIRST_PAUSE_SECONDS": 0.003,
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


class S3(Server):
    """The server in a process of its own, which ends with this one."""

    def __init__(self) -> None:
        if find_spec("moto") is None:
            raise NotInstalledError("moto")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("s3_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = HOST, int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()

    def options(self) -> dict[str, Any]:
        """Return the options of a store whose pauses are short."""
        from datetime import timedelta

        backoff = {
            name: value if name == "base" else timedelta(seconds=value)
            for name, value in _FASTER.items()
        }
        return {**self._access(), "retry_config": {"max_retries": 3, "backoff": backoff}}

    def make_bucket(self, name: str = "bucket") -> None:
        self._ask("PUT", f"/{name}")

    def new_bucket(self) -> tuple[str, dict[str, Any]]:
        """Return the URL of an empty bucket, and the options of its store, which are JSON."""
        name = f"bucket-{uuid4().hex}"
        self.make_bucket(name)
        return f"s3://{name}", self._access()

    def new_store(self, address: Address | None = None, **options: Any) -> ObjectStore:
        from recordsmith.stores.network.object_store import ObjectStore

        url, access = self.new_bucket()
        return ObjectStore(url, **{**access, "endpoint": self.url(address), **options})

    def variables(self, bucket: str) -> dict[str, str]:
        """Make a bucket; return the variables with which its URLs work."""
        self.make_bucket(bucket)
        secrets = {f"AWS_{name.upper()}": value for name, value in SECRETS.items()}
        return {"AWS_ENDPOINT_URL": self.url(), "AWS_REGION": "us-east-1", **secrets}

    def _access(self) -> dict[str, Any]:
        return {**SECRETS, "endpoint": self.url(), "region": "us-east-1"}

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
        """Return the objects below a prefix, without it.

        The server may still delete some, as a process that was killed has requested.
        """
        listed = self._ask("GET", f"/{bucket}?list-type=2&max-keys=100000&prefix={prefix}")
        keys = re.findall("<Key>([^<]*)</Key>", listed.decode())
        found = {}
        for key in keys:
            try:
                found[key.removeprefix(prefix)] = self._ask("GET", f"/{bucket}/{key}")
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
        return found

    def put(self, key: str, data: bytes, bucket: str = "bucket") -> None:
        self._ask("PUT", f"/{bucket}/{key}", data)

    def delete(self, prefix: str, bucket: str = "bucket") -> None:
        """Delete the objects below a prefix, and abort its uploads."""
        for name in self.objects(bucket, prefix):
            self._ask("DELETE", f"/{bucket}/{prefix}{name}")
        uploads = self._ask("GET", f"/{bucket}?uploads").decode()
        ids = re.findall("<UploadId>([^<]*)</UploadId>", uploads)
        for key, upload in zip(self.uploads(bucket), ids, strict=True):
            if key.startswith(prefix):
                self._ask("DELETE", f"/{bucket}/{key}?uploadId={upload}")

    def uploads(self, bucket: str = "bucket") -> list[str]:
        """Return the keys of uploads that are neither complete nor aborted."""
        return re.findall("<Key>([^<]*)</Key>", self._ask("GET", f"/{bucket}?uploads").decode())

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        access = "AWS4-HMAC-SHA256 Credential=x/20200101/us-east-1/s3/aws4_request"
        headers = {"X-Test": "1", "Authorization": access, "Content-Type": "application/octet"}
        request = urllib.request.Request(self.url() + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
