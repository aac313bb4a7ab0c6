"""Amazon S3, by moto."""

from __future__ import annotations

import threading
import urllib.request
from typing import Any
from uuid import uuid4

from recordsmith.stores.remote import ObjectStore

from .server import HOST, Address, NotInstalledError, Server


class S3(Server):
    """moto's server in a thread; requests that change something run one at a time.

    moto checks a condition and writes in two steps, which S3 does in one.
    """

    def __init__(self) -> None:
        try:
            from moto.moto_server.werkzeug_app import (
                DomainDispatcherApplication,
                MotoRequestHandler,
                create_backend_app,
            )
            from werkzeug.serving import make_server
        except ImportError as error:
            raise NotInstalledError(error.name) from None

        class QuietHandler(MotoRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *_: Any) -> None:
                pass

        serve, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

        def serve_in_order(environ: Any, start: Any) -> Any:
            if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
                return serve(environ, start)
            with lock:
                return serve(environ, start)

        self._server = make_server(HOST, 0, serve_in_order, True, request_handler=QuietHandler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.address = HOST, self._server.server_port

    def new_store(self, address: Address | None = None, **options: Any) -> ObjectStore:
        name = f"bucket-{uuid4().hex}"
        self._make_bucket(name)
        access = {"access_key_id": "x", "secret_access_key": "y", "region": "us-east-1"}
        return ObjectStore(f"s3://{name}", endpoint=self.url(address), **access, **options)

    def variables(self, bucket: str) -> dict[str, str]:
        """Make a bucket; return the variables with which its URLs work."""
        self._make_bucket(bucket)
        return {
            "AWS_ENDPOINT_URL": self.url(None),
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "y",
            "AWS_REGION": "us-east-1",
        }

    def _make_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.url(None)}/{name}", method="PUT")
        urllib.request.urlopen(request).close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
