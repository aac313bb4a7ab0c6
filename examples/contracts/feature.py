"""A feature of one's own: labels as one-hot rows.

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
class OneHot(ValueFeature):
    """Float32, (batch, class_count), with a 1 at the label."""

    key: str
    class_count: int

    def requests(self) -> Mapping[str, ColumnRequest]:
        return {self.key: ColumnRequest(("int64",))}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        labels = np.asarray(rows.columns[self.key])
        return (np.eye(self.class_count, dtype=np.float32)[labels],)


def main(folder: Path) -> None:
    """Pack labels, verify them, load them as one-hot rows."""
    rows = rs.Rows({"label": [n % 3]} for n in range(100))
    rs.pack(rows, folder / "packed", shards=2, shuffle=False)
    assert rs.verify(folder / "packed", deep=True).is_good
    dataset = rs.open(folder / "packed")
    loader = rs.Loader(dataset, {"target": OneHot("label", 3)}, batch_size=10, shuffle=True)
    batches = [batch["target"] for batch in loader]
    assert {batch.shape for batch in batches} == {(10, 3)}
    assert np.concatenate(batches).sum(axis=0).tolist() == [34, 33, 33]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
