"""`WebStore`: the files of a web server, which are read by their names."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from recordsmith.stores.network.object_store import (
    ObjectStore,
    get_obstore,
    object_info,
    with_defaults,
)
from recordsmith.stores.store import FolderEntry, ObjectInfo
from recordsmith.support.errors import FileAccessError, ForbiddenFileError

_PAGE_SUFFIXES = (".html", ".htm")


class WebStore(ObjectStore):
    """The files of a web server, such as `https://host`. It lists nothing: a manifest names shards.

    The index pages of servers differ, and many servers have none.
    """

    is_writable = False
    can_list = False
    _keeps_conditions = False

    def _open(self, options: Mapping[str, Any]) -> Any:
        return get_obstore().store.HTTPStore(self._url, **with_defaults(options, self._url))

    def name_of(self, key: str) -> str:
        return f"{self._url}/{quote(key, safe='/*[]')}" if key else self._url

    def info(self, key: str) -> ObjectInfo:
        self._check_key(key)
        response = self._call(
            key, lambda: get_obstore().get(self._store, key, options={"head": True})
        )
        is_page = response.attributes.get("Content-Type", "").startswith("text/html")
        if is_page and not key.endswith(_PAGE_SUFFIXES):
            raise FileAccessError(errno.EISDIR, "it is a folder", self.name_of(key))
        return object_info(key, response.meta)

    def is_folder(self, key: str) -> bool:
        return not key

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        raise self._listing_error(prefix)

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        raise self._listing_error(key)

    def _listing_error(self, key: str) -> FileAccessError:
        return FileAccessError(
            errno.EOPNOTSUPP,
            "files on a web server cannot be listed",
            self.name_of(key),
            remedy="Pass the names of the files, or a folder that recordsmith packed.",
        )

    def _failure(self, error: BaseException, key: str, operation: str) -> BaseException:
        failed = super()._failure(error, key, operation)
        headers = self._options.get("client_options", {}).get("default_headers")
        if isinstance(failed, ForbiddenFileError) and not headers:
            failed.remedy = ""  # that of credentials, which this server does not get
        return failed
