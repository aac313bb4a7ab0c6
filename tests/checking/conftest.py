"""Shards to examine, written record by record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..reading import write_records


@pytest.fixture(scope="session")
def write() -> Callable[..., Path]:
    """Writes a shard of payloads, or of features: write(path, [b"...", {...}])."""
    return write_records
