"""Byte strings, as they are stored: texts, encoded pictures, or anything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from recordsmith.buffers import Int64Array
from recordsmith.example import Column
from recordsmith.loading.features.contract import Request, ValueFeature


@dataclass(frozen=True)
class Bytes(ValueFeature):
    """Byte strings: a BytesArray, (batch, *shape), or a RaggedArray of byte strings.

    key: the feature's name in the records.
    shape: of one record's values: () for one, (n,) for as many, "ragged" for any number.
    default: stands in where a record lacks the feature; without it, a row of any number is empty.
    """

    key: str
    shape: tuple[int, ...] | Literal["ragged"] = ()
    _: KW_ONLY
    default: Any = None

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(("bytes",), self.shape, self.default)}

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        return {name: columns[self.key]}
