"""Azure Blob Storage, by Azurite.

It is found on the PATH, or in the folder `RECORDSMITH_AZURITE`, into which it was installed with
`npm install --prefix FOLDER azurite`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import tempfile
import urllib.request
from email.utils import formatdate
from typing import Any
from uuid import uuid4

from recordsmith.stores.network.object_store import ObjectStore

from .server import Address, Program, Server, free_address, program

_ACCOUNT = "devstoreaccount1"
_KEY = (  # the same in every Azurite
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


class Azure(Server):
    """Azurite in a process of its own, which keeps everything in memory."""

    def __init__(self) -> None:
        installed = os.environ.get("RECORDSMITH_AZURITE")
        command = program(
            "azurite-blob", installed and os.path.join(installed, "node_modules", ".bin")
        )
        self.address = free_address()
        host, port = self.address
        options = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck"]
        self._program = Program(
            [command, "--blobHost", host, "--blobPort", str(port), *options, "--disableTelemetry"],
            tempfile.mkdtemp(),
            self.address,
        )

    def new_store(self, address: Address | None = None, **options: Any) -> ObjectStore:
        name = f"container-{uuid4().hex}"
        self._make_container(name)
        return ObjectStore(
            f"az://{name}",
            endpoint=f"{self.url(address)}/{_ACCOUNT}",
            account_name=_ACCOUNT,
            account_key=_KEY,
            **options,
        )

    def _make_container(self, name: str) -> None:
        """Obstore cannot; signed as in "Authorize with Shared Key" of the REST API."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        signed = "".join(
            [
                "PUT",
                "\n" * 12,  # no body, no other headers
                *(f"{key}:{value}\n" for key, value in sorted(headers.items())),
                f"/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container",
            ]
        )
        digest = hmac.digest(base64.b64decode(_KEY), signed.encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
        headers["Content-Length"] = "0"
        url = f"{self.url(None)}/{_ACCOUNT}/{name}?restype=container"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()

    def close(self) -> None:
        self._program.close()
