"""`WebStore`: the files of a web server, which can be read only."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from recordsmith.errors import FileAccessError, ForbiddenFileError, MissingFileError
from recordsmith.stores.parallel_reads import read_later
from recordsmith.stores.remote.index_page import read_index_page
from recordsmith.stores.remote.object_store import ObjectStore, object_info, with_defaults
from recordsmith.stores.store import EntryKind, FolderEntry, ObjectInfo

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
        return f"{self._url}/{quote(key)}" if key else self._url

    def info(self, key: str) -> ObjectInfo:
        found = self._read_call(
            self._checked(key),
            lambda: self._obstore.get(self._store, key, options={"head": True}),
        )
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
        names = self._names(key)
        prefix = f"{key}/" if key else ""
        sizes = {
            name: read_later(self.info, prefix + name) for name, kind in names if kind == "object"
        }
        for name, kind in sorted(names):
            if kind == "folder":
                yield FolderEntry(name, "folder")
            else:
                _, size_bytes, version = sizes[name].result()
                yield FolderEntry(
                    name, "object", size_bytes, self.version_number(version), version=version
                )

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0]
        for name, kind in self._names(folder):
            key = f"{folder}/{name}" if folder else name
            if key.startswith(prefix):
                if kind == "folder":
                    yield from self.list(f"{key}/")
                else:
                    with suppress(MissingFileError):  # deleted meanwhile
                        yield self.info(key)

    def _names(self, key: str) -> Sequence[tuple[str, EntryKind]]:
        """The names in a folder and their kinds, from its index page; none if it is missing."""
        client = self._options.get("client_options", {})
        headers, timeout = client.get("default_headers", {}), client.get("timeout", "30s")
        url = f"{self.name_of(key)}/"
        try:
            return sorted(self._read_call(key, lambda: read_index_page(url, headers, timeout)))
        except MissingFileError:
            return []
