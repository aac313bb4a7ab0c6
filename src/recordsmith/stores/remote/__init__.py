"""Stores behind a network: buckets, web servers, and the file systems of fsspec.

They need the extra `remote`. Each request is retried and has a deadline; an object that is replaced
while it is read is noticed by its ETag.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from recordsmith.errors import OptionError
from recordsmith.stores.checks import check_key
from recordsmith.stores.remote.fsspec_store import FsspecStore
from recordsmith.stores.remote.object_store import ObjectStore
from recordsmith.stores.remote.store_options import PassedOptions, read_settings
from recordsmith.stores.remote.web_store import WebStore
from recordsmith.stores.store import Store

__all__ = [
    "FsspecStore",
    "ObjectStore",
    "PassedOptions",
    "WebStore",
    "locate_url",
    "read_settings",
]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BUCKETS = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")


def locate_url(url: str, passed: PassedOptions) -> tuple[Store, str]:
    """Return the store of a URL, and the key in it.

    Args:
        passed: the options of the store: as `ObjectStore` or the file system of fsspec takes them.
    """
    try:
        parts = urlsplit(url)
        is_valid = not _CONTROL.search(url) and parts.port != 0  # reads the port
    except ValueError:
        is_valid = False
    if not is_valid:  # it may contain credentials
        raise OptionError("the URL is invalid", expected="a URL such as s3://bucket/folder")
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    is_web = parts.scheme in ("http", "https")
    if parts.password or (is_web and (parts.username or parts.query)):
        raise OptionError(
            f"the URL {shown} contains credentials or a query, which would appear in messages and "
            "files",
            remedy="Pass them with recordsmith.remote(url, store_options=…), such as "
            "{'client_options': {'default_headers': {'Authorization': …}}}.",
        )
    if parts.scheme in ("file", "local"):
        raise OptionError(
            f"{shown} is a local file", value=shown, remedy=f"Pass its path: {unquote(parts.path)}"
        )
    if not is_web and parts.scheme not in _BUCKETS:
        return FsspecStore.from_url(url, passed)
    if not parts.netloc:
        raise OptionError(f"{shown} names no {'host' if is_web else 'bucket'}", value=shown)
    root = f"{parts.scheme}://{parts.netloc}"
    key = (unquote(parts.path) if is_web else url[len(root) :]).strip("/")
    kind = WebStore if is_web else ObjectStore
    return _open(kind, root, passed), check_key(key) if key else ""


def _open(kind: type[ObjectStore], root: str, passed: PassedOptions) -> ObjectStore:
    """Return the store of a bucket or server, which is opened once for equal options."""
    options = passed.complete()
    try:
        texts = json.dumps(options, sort_keys=True), json.dumps(passed, sort_keys=True)
    except TypeError:  # with objects that find credentials
        store = kind(root, **options)
    else:
        store = _opened(kind, root, *texts)
    store.passed = passed
    return store


@lru_cache(256)
def _opened(kind: type[ObjectStore], root: str, options: str, _: str) -> ObjectStore:
    """The store of a bucket, opened once: its connections stay open."""
    return kind(root, **json.loads(options))
