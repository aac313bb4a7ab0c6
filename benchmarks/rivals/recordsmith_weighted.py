"""recordsmith: a `Weighted` order, which draws each class equally often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import recordsmith_shards


class Images(recordsmith_shards.Images):
    """`rs.Loader` of a `Weighted` dataset."""

    def _records(self, place: Any) -> Any:
        import recordsmith as rs

        return rs.Weighted(rs.open(place), by="image/class/label")


RIVAL = replace(
    recordsmith_shards.RIVAL,
    title="recordsmith, Weighted",
    chosen="as above, each class equally often",
    loader=Images,
)
