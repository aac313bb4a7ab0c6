"""Google Cloud Storage: the emulator `gcp-storage-emulator`, with the XML API that obstore uses.

The emulator has the objects and their resources: generations, hashes, times. Its own server has
only the JSON API, without preconditions and ETags. The XML API here follows
https://cloud.google.com/storage/docs/xml-api: get and head with ranges and conditions, put, copy
and delete with `x-goog-if-generation-match`, listing with `list-type=2`, multipart uploads.
Not here: signatures, access control, and the limits of rates.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from recordsmith.stores.network.object_store import ObjectStore

from .server import HOST, Address, NotInstalledError, Server

_MAX_KEYS = 1000
_MIN_PART_BYTES = 5 << 20


class Gcs(Server):
    """The XML API in a thread."""

    def __init__(self) -> None:
        try:
            from gcp_storage_emulator.exceptions import NotFound
            from gcp_storage_emulator.handlers import objects
            from gcp_storage_emulator.storage import Storage
        except ImportError as error:
            raise NotInstalledError(error.name) from None

        class FastStorage(Storage):  # type: ignore[misc]
            def _write_config_to_file(self) -> None:
                """Not after each change: this writes the resources of all objects."""

            def _object_path(self, bucket_name: str, file_name: str) -> str:
                """Any key is a name: objects are no files here."""
                return f"{bucket_name}/{file_name.encode().hex()}"

        storage = FastStorage(use_memory_fs=True)
        self._server = ThreadingHTTPServer((HOST, 0), _Handler)
        self._server.daemon_threads = True
        self._server.bucket_of = lambda name: _Bucket(storage, name, objects, NotFound)  # type: ignore[attr-defined]
        self._server.lock = threading.Lock()  # type: ignore[attr-defined]
        self._server.uploads = {}  # type: ignore[attr-defined]
        self._storage = storage
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.address = HOST, self._server.server_port

    def new_store(self, address: Address | None = None, **options: Any) -> ObjectStore:
        name = f"bucket-{uuid4().hex}"
        kept = {"softDeletePolicy": {"retentionDurationSeconds": "0"}}
        self._storage.create_bucket(name, {"name": name, **kept})
        access = {"base_url": self.url(address), "bearer_token": "x"}
        client = {"allow_http": True, **options.pop("client_options", {})}
        return ObjectStore(f"gs://{name}", client_options=client, **access, **options)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Error(Exception):
    """A response without success: its status and code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class _Bucket:
    """The objects of the emulator."""

    def __init__(self, storage: Any, name: str, objects: Any, missing: type[Exception]) -> None:
        self.name = name
        self._storage, self._objects, self._missing = storage, objects, missing

    def resource(self, key: str) -> dict[str, Any]:
        with self._errors("NoSuchKey"):
            return self._storage.get_file_obj(self.name, key)  # type: ignore[no-any-return]

    def content(self, key: str) -> bytes:
        with self._errors("NoSuchKey"):
            return bytes(self._storage.get_file(self.name, key, show_error=False))

    def put(self, key: str, data: bytes, *, is_multipart: bool = False) -> dict[str, Any]:
        kind, size = "application/octet-stream", str(len(data))
        made = self._objects._make_object_resource("", self.name, key, kind, size)
        made = self._objects._checksums(data, made)
        digest = data_digest(made)
        # only the ETag of an object that was uploaded in one piece is its MD5
        made["etag"] = f'"-{made["generation"]}"' if is_multipart else f'"{digest}"'
        with self._errors("NoSuchBucket"):
            self._storage.create_file(self.name, key, data, made)
        return made  # type: ignore[no-any-return]

    def delete(self, key: str) -> None:
        with self._errors("NoSuchKey"):
            self._storage.delete_file(self.name, key)

    def list(self, prefix: str, delimiter: str | None) -> tuple[list[dict[str, Any]], list[str]]:
        with self._errors("NoSuchBucket"):
            return self._storage.get_file_list(self.name, prefix, delimiter)  # type: ignore[no-any-return]

    @contextmanager
    def _errors(self, code: str) -> Iterator[None]:
        try:
            yield
        except self._missing:
            raise _Error(404, code) from None


def data_digest(resource: Mapping[str, Any]) -> str:
    """Return the MD5 of an object in the form of the XML API."""
    return base64.b64decode(resource["md5Hash"]).hex()


class _Handler(BaseHTTPRequestHandler):
    """The requests of the XML API."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Any

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        found = urlsplit(self.path)
        name, _, key = found.path[1:].partition("/")
        self.key = unquote(key)
        self.query = {part: values[0] for part, values in parse_qs(found.query, True).items()}
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.bucket: _Bucket = self.server.bucket_of(unquote(name))
        try:
            with self.server.lock:
                status, headers, body = getattr(self, f"_{self.command.lower()}")()
        except _Error as error:
            status, headers = error.status, {"Content-Type": "application/xml"}
            body = f"<Error><Code>{error.code}</Code></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for header, value in headers.items():
            self.send_header(header, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    # -- objects -----------------------------------------------------------------------------------

    def _get(self) -> tuple[int, dict[str, str], bytes]:
        if not self.key:
            return 200, {"Content-Type": "application/xml"}, self._listing().encode()
        found = self.bucket.resource(self.key)
        self._check_generation(found)
        etag, data = found["etag"], self.bucket.content(self.key)
        if self.headers.get("If-Match") not in (None, "*", etag):
            raise _Error(412, "PreconditionFailed")
        if self.headers.get("If-None-Match") in ("*", etag):
            return 304, _headers(found), b""
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
        if wanted is None:
            return 200, _headers(found), data
        first, last = wanted.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= stop:
            raise _Error(416, "InvalidRange")
        span = {"Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"}
        return 206, _headers(found) | span, data[start:stop]

    _head = _get

    def _put(self) -> tuple[int, dict[str, str], bytes]:
        if "uploadId" in self.query:
            parts = self._upload()
            part = self.bucket.name, self.query["uploadId"], self.query["partNumber"]
            etag = f'"{hash((part, self.body)) & (1 << 64) - 1:016x}"'
            parts[int(self.query["partNumber"])] = etag, self.body
            return 200, {"ETag": etag}, b""
        self._check_generation(self._current())
        if (source := self.headers.get("x-goog-copy-source")) is not None:
            name, _, key = unquote(source).lstrip("/").partition("/")
            found = self.bucket.put(self.key, self.server.bucket_of(name).content(key))
            body = f"<CopyObjectResult><ETag>{escape(found['etag'])}</ETag></CopyObjectResult>"
            return 200, _headers(found), body.encode()
        return 200, _headers(self.bucket.put(self.key, self.body)), b""

    def _delete(self) -> tuple[int, dict[str, str], bytes]:
        if "uploadId" in self.query:
            self._upload()
            del self.server.uploads[self.query["uploadId"]]
        else:
            self._check_generation(self._current())
            self.bucket.delete(self.key)
        return 204, {}, b""

    def _current(self) -> dict[str, Any] | None:
        """The object that is there now."""
        try:
            return self.bucket.resource(self.key)
        except _Error:
            return None

    def _check_generation(self, found: Mapping[str, Any] | None) -> None:
        """Check the condition of a request: a generation, 0 for no object."""
        wanted = self.headers.get("x-goog-if-generation-match")
        if wanted is not None and wanted != (found["generation"] if found else "0"):
            raise _Error(412, "PreconditionFailed")

    # -- multipart uploads -------------------------------------------------------------------------

    def _post(self) -> tuple[int, dict[str, str], bytes]:
        if "uploads" in self.query:
            name = uuid4().hex
            self.server.uploads[name] = self.bucket.name, self.key, {}
            body = f"<UploadId>{name}</UploadId>"
            body = f"<InitiateMultipartUploadResult>{body}</InitiateMultipartUploadResult>"
            return 200, {"Content-Type": "application/xml"}, body.encode()
        parts = self._upload()
        self._check_generation(self._current())
        chosen = []
        for part in _elements(ET.fromstring(self.body), "Part"):
            number, etag = (next(_elements(part, name)).text for name in ("PartNumber", "ETag"))
            if number is None or parts.get(int(number), (None,))[0] != etag:
                raise _Error(400, "InvalidPart")
            chosen.append(int(number))
        if chosen != sorted(set(chosen)) or not chosen:
            raise _Error(400, "InvalidPartOrder")
        pieces = [parts[number][1] for number in chosen]
        if min(map(len, pieces[:-1]), default=_MIN_PART_BYTES) < _MIN_PART_BYTES:
            raise _Error(400, "EntityTooSmall")
        made = self.bucket.put(self.key, b"".join(pieces), is_multipart=True)
        del self.server.uploads[self.query["uploadId"]]
        body = f"<ETag>{escape(made['etag'])}</ETag>"
        body = f"<CompleteMultipartUploadResult>{body}</CompleteMultipartUploadResult>"
        return 200, _headers(made) | {"Content-Type": "application/xml"}, body.encode()

    def _upload(self) -> dict[int, tuple[str, bytes]]:
        """The parts of an upload: number -> ETag and bytes."""
        *place, parts = self.server.uploads.get(self.query.get("uploadId"), (None, None, {}))
        if place != [self.bucket.name, self.key]:
            raise _Error(404, "NoSuchUpload")
        return parts

    # -- listing -----------------------------------------------------------------------------------

    def _listing(self) -> str:
        """A page of the objects and folders with a prefix, in the order of their names."""
        found, folders = self.bucket.list(
            self.query.get("prefix", ""), self.query.get("delimiter") or None
        )
        after = self.query.get("continuation-token") or self.query.get("start-after", "")
        most = min(int(self.query.get("max-keys", _MAX_KEYS)), _MAX_KEYS)
        entries: list[tuple[str, dict[str, Any] | None]]
        entries = [(one["name"], one) for one in found] + [(name, None) for name in folders]
        entries = sorted((entry for entry in entries if entry[0] > after), key=lambda one: one[0])
        page = [_entry(*entry) for entry in entries[:most]]
        is_cut = len(entries) > most
        page.append(f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>")
        if is_cut:
            token = _text(entries[most - 1][0])
            page.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
        return f"<ListBucketResult>{''.join(page)}</ListBucketResult>"


def _entry(name: str, resource: Mapping[str, Any] | None) -> str:
    if resource is None:
        return f"<CommonPrefixes><Prefix>{_text(name)}</Prefix></CommonPrefixes>"
    values = {
        "Key": name,
        "Generation": resource["generation"],
        "LastModified": resource["updated"],
        "ETag": resource["etag"],
        "Size": resource["size"],
    }
    inner = "".join(f"<{tag}>{_text(value)}</{tag}>" for tag, value in values.items())
    return f"<Contents>{inner}</Contents>"


def _text(value: str) -> str:
    return escape(value, {"\n": "&#10;", "\r": "&#13;"})


def _elements(element: ET.Element, name: str) -> Iterator[ET.Element]:
    """The elements below one, in any namespace."""
    return (one for one in element.iter() if one.tag.rpartition("}")[2] == name)


def _headers(resource: Mapping[str, Any]) -> dict[str, str]:
    updated = datetime.fromisoformat(resource["updated"])
    return {
        "Content-Type": resource["contentType"],
        "ETag": resource["etag"],
        "Last-Modified": formatdate(updated.timestamp(), usegmt=True),
        "x-goog-generation": resource["generation"],
        "x-goog-metageneration": resource["metageneration"],
        "x-goog-hash": f"crc32c={resource['crc32c']}",
        "x-goog-stored-content-length": resource["size"],
    }
