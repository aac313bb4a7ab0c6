"""Which steps of an episode each of its windows has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array

Pad = Literal["drop", "repeat", "zero"]
"""What a window has where its episode has no step: such windows are dropped, or the first or last
step is repeated, or numbers are 0 and bytes empty."""


@dataclass(frozen=True)
class WindowShape:
    """Windows of `window` steps that begin every `stride` steps.

    ranges: the steps of some features, by key, counted from the first step of the window.
    """

    window: int
    stride: int = 1
    pad: Pad = "drop"
    ranges: Mapping[str, range] = field(default_factory=dict)

    def steps(self, key: str) -> range:
        """Return the steps of a feature, counted from the first step of the window."""
        return self.ranges.get(key, range(self.window))

    @property
    def reach(self) -> tuple[int, int]:
        """The first step that a window has, and the one after its last, from its first step."""
        ranges = [range(self.window), *self.ranges.values()]
        return min(steps[0] for steps in ranges), max(steps[-1] for steps in ranges) + 1

    def counts(self, step_counts: npt.NDArray[Any]) -> Int64Array:
        """Return how many windows episodes have, from their numbers of steps."""
        firsts = np.asarray(step_counts, np.int64)
        if self.pad == "drop":
            begin, end = self.reach
            firsts = np.maximum(firsts - (end - begin) + 1, 0)
        return -(-firsts // self.stride)

    def first_steps(self, numbers: Int64Array) -> Int64Array:
        """Return the first step of windows, from their numbers in their episodes."""
        return numbers * self.stride - (self.reach[0] if self.pad == "drop" else 0)

    def describe(self) -> dict[str, Any]:
        """Return a JSON-able description; equal ones mean equal windows."""
        ranges = {key: [at.start, at.stop, at.step] for key, at in sorted(self.ranges.items())}
        return {"window": self.window, "stride": self.stride, "pad": self.pad, "ranges": ranges}
