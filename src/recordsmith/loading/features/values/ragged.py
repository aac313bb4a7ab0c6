"""Lists of numbers of different lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from recordsmith.buffers import Int64Array
from recordsmith.example import Column
from recordsmith.loading.features.feature import NUMBERS, ColumnRequest, ValueFeature
from recordsmith.loading.features.values.numbers import as_dtype, check_dtype


@dataclass(frozen=True)
class Ragged(ValueFeature):
    """Any number of values from each record: a RaggedArray of int64 or float32.

    A record without the feature has an empty row.

    Attributes:
        key: the key of the feature in the records.
        dtype: as of `Tensor`.
    """

    key: str
    _: KW_ONLY
    dtype: str | None = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(NUMBERS, "ragged")}

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        return {name: as_dtype(self.key, columns[self.key], self.dtype)}
