"""Files that are verified in ranges."""

from __future__ import annotations

import pytest

from recordsmith.examining.verification import frame_ranges, shard_check


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few bytes are divided like large ones."""
    monkeypatch.setattr(frame_ranges, "RANGE_BYTES", 64)
    monkeypatch.setattr(frame_ranges, "BLOCK_BYTES", 100)
    monkeypatch.setattr(frame_ranges, "_SEARCH_BYTES", 70)
    monkeypatch.setattr(shard_check, "_SHARED_FROM_BYTES", 1)
