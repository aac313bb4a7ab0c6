"""recordsmith: blocks of neighbouring records, as its page about buckets advises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import recordsmith_shards


class Images(recordsmith_shards.Images):
    """Blocks of 32 records in a random order, 16 of which are mixed."""

    @property
    def order(self) -> Any:
        import recordsmith as rs

        return rs.BlockShuffle(32, 16)


RIVAL = replace(
    recordsmith_shards.RIVAL,
    title="recordsmith, `BlockShuffle(32, 16)`",
    pages=("docs/how-to/cloud.md",),
    loader=Images,
)
