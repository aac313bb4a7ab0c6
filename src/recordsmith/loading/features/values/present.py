"""Whether records have a feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recordsmith.buffers import Int64Array
from recordsmith.example import Column
from recordsmith.loading.features.feature import ColumnRequest, ValueFeature


@dataclass(frozen=True)
class Present(ValueFeature):
    """Whether each record has a feature: bool, (batch,).

    True also for an empty list and for a feature without a kind. Next to a feature with a default,
    it shows where the default is: `{"age": Scalar("age", default=0), "has_age": Present("age")}`.

    Attributes:
        key: the key of the feature in the records.
    """

    key: str

    def requests(self) -> dict[str, ColumnRequest]:
        return {}

    def presence_of(self) -> tuple[str, ...]:
        return (self.key,)

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        return {name: columns[self.key]}
