"""Shards to examine, written record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    """Writes a shard of payloads, or of features: write(path, [b"...", {...}])."""

    def write_shard(path: Path, records: Iterable[bytes | Mapping[str, Any]]) -> Path:
        with rs.ShardWriter(path) as writer:
            for record in records:
                if isinstance(record, bytes):
                    writer.write(record)
                else:
                    writer.write_example(record)
        return path

    return write_shard
