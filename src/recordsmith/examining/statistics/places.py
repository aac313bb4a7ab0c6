"""Where is a record? As one number while there are many, in words for those that are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array

_POSITION_BITS = 40


@dataclass(frozen=True)
class Place:
    """Where a record is: its file, and its position there, counted from 0."""

    path: str
    position: int

    def __str__(self) -> str:
        return f"{self.path}, record {self.position}"

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return {"path": self.path, "position": self.position}


def place_numbers(shard: int, position: int, count: int) -> Int64Array:
    """int64, (count,): of records of a shard from `position` on. They go up with both."""
    first = (shard << _POSITION_BITS) + position
    return np.arange(first, first + count)


class Places:
    """Turns the numbers of records back into places."""

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths`: of the shards, by number."""
        self._paths = paths

    def __call__(self, number: int) -> Place:
        """The place that a number stands for."""
        return Place(self._paths[number >> _POSITION_BITS], number & ((1 << _POSITION_BITS) - 1))
