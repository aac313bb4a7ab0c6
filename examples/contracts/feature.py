"""A feature of one's own: angles as points on the circle.

A feature requests columns of the records, and makes entries of the batch of them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import recordsmith as rs
from recordsmith.format.example import Column
from recordsmith.loading import BatchRows, ColumnRequest, ValueFeature


@dataclass(frozen=True)
class Cyclic(ValueFeature):
    """Float32, (batch, 2): sine and cosine of a number that repeats, such as the hour of a day."""

    key: str
    period: float

    def requests(self) -> Mapping[str, ColumnRequest]:
        return {self.key: ColumnRequest(("int64", "float"))}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        angles = np.asarray(rows.columns[self.key]) * (2 * np.pi / self.period)
        return (np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32),)


def main(folder: Path) -> None:
    """Pack hours, verify them, load them as points on the circle."""
    rows = rs.Rows({"hour": [n % 24]} for n in range(96))
    rs.pack(rows, folder / "packed", shards=2, shuffle=False)
    assert rs.verify(folder / "packed", deep=True).is_good
    dataset = rs.open(folder / "packed")
    loader = rs.Loader(dataset, {"time": Cyclic("hour", 24)}, batch_size=12, shuffle=True)
    batches = [batch["time"] for batch in loader]
    assert {batch.shape for batch in batches} == {(12, 2)}
    points = np.concatenate(batches)
    assert np.allclose(np.hypot(*points.T), 1)
    assert np.allclose(points.sum(axis=0), 0, atol=1e-4)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
