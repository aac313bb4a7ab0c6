"""The position of a record in the dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recordsmith.buffers import Int64Array
from recordsmith.example import Column
from recordsmith.loading.features.feature import ColumnRequest, ValueFeature


@dataclass(frozen=True)
class Position(ValueFeature):
    """The position of each record in the loader's dataset: int64, (batch,).

    `dataset[position]` is the record, in whatever order it was loaded.
    """

    def requests(self) -> dict[str, ColumnRequest]:
        return {}

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        return {name: positions.copy()}
