"""`WebStore`: the files of a web server, which can be read only."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from typing import Any
from urllib.parse import quote

from recordsmith.errors import FileAccessError, ForbiddenFileError, MissingFileError
from recordsmith.stopping import wait_for
from recordsmith.stores.parallel_reads import request_later
from recordsmith.stores.remote.index_page import read_index_page
from recordsmith.stores.remote.object_store import ObjectStore, object_info, with_defaults
from recordsmith.stores.store import EntryKind, FolderEntry, ObjectInfo

_INFOS_AHEAD = 64
_MOST_LISTED = 1_000_000
_MOST_NESTED = 64
"""A server can make up folders without end."""

_PAGE_SUFFIXES = (".html", ".htm")


class WebStore(ObjectStore):
    """The files of a web server, such as `https://host`.

    A folder is listed by its index page, as nginx, Apache and `python -m http.server` make it.
    """

    is_writable = False
    can_list = False
    _keeps_conditions = False

    def _open(self, options: Mapping[str, Any]) -> Any:
        return self._obstore.store.HTTPStore(self._url, **with_defaults(options, self._url))

    def name_of(self, key: str) -> str:
        return f"{self._url}/{quote(key, safe='/*[]')}" if key else self._url

    def info(self, key: str) -> ObjectInfo:
        try:
            found = self._read_call(
                self._checked(key),
                lambda: self._obstore.get(self._store, key, options={"head": True}),
            )
        except ForbiddenFileError:
            if "." not in key.rpartition("/")[2]:
                self._names(key)  # fails if it is a folder that is not listed
            raise
        is_page = found.attributes.get("Content-Type", "").startswith("text/html")
        if is_page and not key.endswith(_PAGE_SUFFIXES):
            raise FileAccessError(errno.EISDIR, "it is a folder", self.name_of(key))
        return object_info(key, found.meta)

    def is_folder(self, key: str) -> bool:
        try:
            return not key or bool(self._names(key))
        except ForbiddenFileError:  # without an index page
            return False

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        names = iter(self._names(key))
        ahead: deque[tuple[str, Future[ObjectInfo] | None]] = deque()
        try:
            while True:
                for name, kind in islice(names, _INFOS_AHEAD - len(ahead)):
                    is_file = kind == "object"
                    found = request_later(self.info, prefix + name) if is_file else None
                    ahead.append((name, found))
                if not ahead:
                    return
                name, found = ahead.popleft()
                if found is None:
                    yield FolderEntry(name, "folder")
                else:
                    _, size_bytes, version = wait_for(found)
                    number = self.version_number(version)
                    yield FolderEntry(name, "object", size_bytes, number, version=version)
        finally:
            for _, found in ahead:
                if found is not None:
                    found.cancel()

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folders = [prefix.rpartition("/")[0]]
        count = 0
        while folders:
            folder = folders.pop()
            for name, kind in self._names(folder):
                key = f"{folder}/{name}" if folder else name
                count += 1
                if count > _MOST_LISTED or key.count("/") > _MOST_NESTED:
                    raise FileAccessError(
                        errno.EFBIG, "it has too many files or folders", self.name_of(prefix)
                    )
                if kind == "folder" and f"{key}/".startswith(prefix):
                    folders.append(key)
                elif kind == "object" and key.startswith(prefix):
                    with suppress(MissingFileError):  # deleted meanwhile
                        yield self.info(key)

    def _names(self, key: str) -> Sequence[tuple[str, EntryKind]]:
        """The names in a folder and their kinds, from its index page; none if it is missing."""
        self._client(retries=True)  # checks the options
        client = self._options.get("client_options", {})
        headers, timeout = client.get("default_headers", {}), client.get("timeout", "30s")
        url = f"{self.name_of(key)}/"
        try:
            return sorted(self._read_call(key, lambda: read_index_page(url, headers, timeout)))
        except MissingFileError:
            return []
        except ForbiddenFileError as error:
            if headers or "403" not in error.reason:
                raise
            raise ForbiddenFileError(
                errno.EACCES, "the server does not list its files (status 403)",
                self.name_of(key),
            ) from None  # fmt: skip

    def _failure(self, error: BaseException, key: str, operation: str) -> BaseException:
        failed = super()._failure(error, key, operation)
        headers = self._options.get("client_options", {}).get("default_headers")
        if isinstance(failed, ForbiddenFileError) and not headers:
            failed.remedy = ""  # that of credentials, which this server does not get
        return failed
