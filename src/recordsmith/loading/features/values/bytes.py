"""Byte strings as stored: text, encoded images, or anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from recordsmith.buffers import Int64Array
from recordsmith.example import Column
from recordsmith.loading.features.feature import ColumnRequest, ValueFeature


@dataclass(frozen=True)
class Bytes(ValueFeature):
    """Byte strings: a BytesArray, (batch, *shape), or a RaggedArray of byte strings.

    Attributes:
        key: the key of the feature in the records.
        shape: of the values of a record: () for one, (n,) for n, "ragged" for any number.
        default: the value for records without the feature; without it, a ragged row is empty.
    """

    key: str
    shape: tuple[int, ...] | Literal["ragged"] = ()
    _: KW_ONLY
    default: Any = None

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(("bytes",), self.shape, self.default)}

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        return {name: columns[self.key]}
