"""Stores behind a network: buckets, web servers, and the file systems of fsspec.

They need the extra `remote`. Each request is retried and has a deadline; an object that is replaced
while it is read is noticed by its ETag. Each module registers its stores.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from recordsmith.stores.remote.fsspec_store import FsspecStore
from recordsmith.stores.remote.object_store import ObjectStore
from recordsmith.stores.remote.store_options import PassedOptions, read_settings
from recordsmith.stores.remote.web_store import WebStore
from recordsmith.stores.store import STORES, Store

__all__ = [
    "FsspecStore",
    "ObjectStore",
    "PassedOptions",
    "WebStore",
    "locate_url",
    "read_settings",
]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def locate_url(url: str, passed: PassedOptions) -> tuple[Store, str]:
    """Return the store of a URL, and the key in it; other schemes are those of fsspec."""
    return STORES.get(url.partition("://")[0].lower(), FsspecStore).from_url(url, passed)
