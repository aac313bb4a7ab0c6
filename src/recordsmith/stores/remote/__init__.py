"""Stores behind a network: buckets, web servers, and the file systems of fsspec.

They need the extra `remote`. Each request is retried and has a deadline; an object that is replaced
while it is read is noticed by its ETag.
"""

from recordsmith.stores.remote.fsspec_store import FsspecStore
from recordsmith.stores.remote.object_store import ObjectStore
from recordsmith.stores.remote.store_options import PassedOptions, read_settings
from recordsmith.stores.remote.urls import locate_url
from recordsmith.stores.remote.web_store import WebStore

__all__ = [
    "FsspecStore",
    "ObjectStore",
    "PassedOptions",
    "WebStore",
    "locate_url",
    "read_settings",
]
