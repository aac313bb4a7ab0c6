"""Text: byte strings that are UTF-8, as Python's str."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import BytesArray, Column, RaggedArray
from recordsmith.loading.features.contract import Request, ValueFeature
from recordsmith.loading.features.numbers import row_of


@dataclass(frozen=True)
class Text(ValueFeature):
    """Texts: an ndarray of str objects, (batch, *shape); of lists of str, (batch,), if ragged.

    key: the feature's name in the records.
    shape, default: as of `Bytes`.
    errors: what becomes of bytes that are no UTF-8, as in `bytes.decode`: "strict" for an error,
        "replace", "ignore", "surrogateescape", "backslashreplace".
    """

    key: str
    shape: tuple[int, ...] | Literal["ragged"] = ()
    _: KW_ONLY
    default: Any = None
    errors: str = "strict"

    def __post_init__(self) -> None:
        try:
            codecs.lookup_error(self.errors)
        except (LookupError, TypeError):
            raise OptionError(
                f"errors is {self.errors!r}; expected 'strict', 'replace', 'ignore' or another "
                "word that bytes.decode knows"
            ) from None

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(("bytes",), self.shape, self.default)}

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        column = columns[self.key]
        texts = self._decoded(column)
        if isinstance(column, RaggedArray):
            rows = np.empty(len(column), object)
            for row, (start, stop) in enumerate(pairwise(column.row_splits.tolist())):
                rows[row] = texts[start:stop]
            return {name: rows}
        array = np.empty(len(texts), object)
        array[:] = texts
        return {name: array.reshape(column.shape)}

    def _decoded(self, column: Column) -> list[str]:
        """All texts of a column, end to end."""
        values = column.values if isinstance(column, RaggedArray) else column.reshape(-1)
        assert isinstance(values, BytesArray)
        texts = []
        for value in values.tolist():
            try:
                texts.append(value.decode("utf-8", self.errors))
            except UnicodeDecodeError as error:
                raise CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {self.key!r} is {value!r:.80}, expected UTF-8: byte {error.start} is "
                    f"0x{value[error.start]:02x} ({error.reason}); take it as Bytes, or say "
                    "errors='replace'",
                    position=row_of(column, len(texts)),
                ) from None
        return texts
