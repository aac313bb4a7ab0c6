"""The stores keep the contract over real servers."""

from __future__ import annotations

import errno
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pytest

import recordsmith as rs
from recordsmith.stores import Location, Store

from ..raising import raises
from ..servers.s3 import S3
from ..servers.servers import Servers
from .contract import ListingContract, ReadingContract, StoreContract


class OverServer:
    """What the contracts of all servers share."""

    kind: str
    many = 1500  # more than a page of a listing
    refused = ("a\nb",)

    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store(self.kind)

    def fill(self, store: Store, keys: Collection[str]) -> None:
        with ThreadPoolExecutor(8 if self.kind != "sftp" else 1) as pool:
            list(pool.map(lambda key: store.put(key, key.encode()[:3]), keys))


class TestS3(OverServer, StoreContract):
    kind = "s3"

    def test_folders_that_a_tool_has_made_as_objects(self, s3: S3) -> None:
        """They are not listed; empty objects are."""
        for key in ("d/", "d/a", "d/e", "d/e-f", "d/s/", "d/s/x", "d/s/y/", "d/s/y/z", "d/t"):
            s3.put(key, b"" if key.endswith(("/", "e", "t")) else b"x")
        store = rs.remote("s3://bucket", store_options=s3.options()).store
        expected = ["d/a", "d/e", "d/e-f", "d/s/x", "d/s/y/z", "d/t"]
        assert [info.key for info in store.list("d/")] == expected
        assert [key for _, key in store.glob("d/*/*")] == ["d/s/x"]


class TestAzure(OverServer, StoreContract):
    kind = "azure"


class TestGcs(OverServer, StoreContract):
    kind = "gcs"


class TestWeb(OverServer, ReadingContract):
    kind = "web"

    def test_nothing_is_listed(self, store: Store) -> None:
        store.put("a/x", b"x")
        for call in (store.list, store.list_entries, store.glob):
            with raises(rs.FileAccessError, errno=errno.EOPNOTSUPP, match="cannot be listed"):
                call("a/*")
        with raises(rs.FileAccessError, errno=errno.EOPNOTSUPP, match="folder that recordsmith"):
            rs.open(Location(store, "a/*.tfrecord"))


class TestSftp(OverServer, ListingContract):
    refused = ()
    kind = "sftp"
    many = 300  # its listings have no pages


class TestMemoryFiles(OverServer, ListingContract):
    refused = ()
    kind = "memory_files"
