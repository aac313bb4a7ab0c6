"""`WebStore`: the files of a web server, which can be read only."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from recordsmith.errors import FileAccessError, MissingFileError
from recordsmith.stores.parallel_reads import read_later
from recordsmith.stores.remote.object_store import ObjectStore, object_info, with_defaults
from recordsmith.stores.store import EntryKind, FolderEntry, ObjectInfo, check_key

_PAGE_BYTES = 1 << 24
_PAGE_SUFFIXES = (".html", ".htm")


class WebStore(ObjectStore):
    """The files of a web server, such as `https://host`.

    A folder is listed by its index page, as nginx, Apache and `python -m http.server` make it.
    """

    is_writable = False

    def _open(self) -> Any:
        return self._obstore.store.HTTPStore(self._url, **with_defaults(self._options, self._url))

    def name_of(self, key: str) -> str:
        return f"{self._url}/{quote(key)}" if key else self._url

    def info(self, key: str) -> ObjectInfo:
        found = self._request(check_key(key), {"head": True})
        if _is_page(key, found):
            raise FileAccessError(errno.EISDIR, "it is a folder", self.name_of(key))
        return object_info(key, found.meta)

    def is_folder(self, key: str) -> bool:
        try:
            return not key or _is_page(key, self._request(key, {"head": True}))
        except MissingFileError:
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
                yield FolderEntry(name, "object", size_bytes, self.version_number(version))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0]
        for name, kind in self._names(folder):
            key = f"{folder}/{name}" if folder else name
            if key.startswith(prefix):
                if kind == "folder":
                    yield from self.list(f"{key}/")
                else:
                    yield self.info(key)

    def _names(self, key: str) -> Sequence[tuple[str, EntryKind]]:
        """The names in a folder and their kinds, from its index page; none if it is missing."""
        try:
            found = self._request(key, {})
        except MissingFileError:
            return []
        if not _is_page(key, found):
            return []
        if found.meta["size"] > _PAGE_BYTES:
            raise FileAccessError(errno.EFBIG, "its index page is too large", self.name_of(key))
        page = _Links(f"{self.name_of(key)}/")
        page.feed(bytes(found.bytes()).decode(errors="replace"))
        return sorted(page.names)

    def _request(self, key: str, options: dict[str, Any]) -> Any:
        return self._read_call(
            key, lambda: self._obstore.get(self._store, key, options=options or None)
        )


def _is_page(key: str, found: Any) -> bool:
    """Whether a server has answered with an index page, not with a file."""
    kind = found.attributes.get("Content-Type", "")
    return kind.startswith("text/html") and not key.endswith(_PAGE_SUFFIXES)


class _Links(HTMLParser):
    """The names that an index page links to and that lie directly below it."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.names: set[tuple[str, EntryKind]] = set()
        self._url = url

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href")
        if tag != "a" or not link:
            return
        base, found = urlsplit(self._url), urlsplit(urljoin(self._url, link))
        if found[:2] != base[:2] or not found.path.startswith(base.path) or found.query:
            return
        name = unquote(found.path[len(base.path) :])
        kind: EntryKind = "folder" if name.endswith("/") else "object"
        name = name.rstrip("/")
        if name not in ("", ".", "..") and not {"/", "\0"} & {*name}:
            self.names.add((name, kind))
