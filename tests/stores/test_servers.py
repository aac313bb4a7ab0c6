"""The stores keep the contract over real servers."""

from __future__ import annotations

import pytest

from recordsmith.stores import Store

from ..servers.servers import Servers
from .contract import ReadingContract, StoreContract


class TestS3(StoreContract):
    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store("s3")


class TestAzure(StoreContract):
    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store("azure")


class TestGcs(StoreContract):
    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store("gcs")


class TestWeb(ReadingContract):
    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store("web")


class TestSftp(StoreContract):
    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store("sftp")


class TestMemoryFiles(StoreContract):
    @pytest.fixture
    def store(self, servers: Servers) -> Store:
        return servers.new_store("memory_files")
