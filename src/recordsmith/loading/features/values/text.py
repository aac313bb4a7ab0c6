"""UTF-8 text as Python's str."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError, option
from recordsmith.example import BytesArray, Column, RaggedArray
from recordsmith.loading.features.feature import ColumnRequest, ValueFeature
from recordsmith.loading.features.values.numbers import row_of


@dataclass(frozen=True)
class Text(ValueFeature):
    """Text: an ndarray of str objects, (batch, *shape); of lists of str, (batch,), if ragged.

    Attributes:
        key: the key of the feature in the records.
        shape, default: as of `Bytes`.
        errors: how invalid UTF-8 is handled, as in `bytes.decode`: "strict" for an error,
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
                option="errors",
                value=self.errors,
                expected="'strict', 'replace', 'ignore' or another error handler of bytes.decode",
            ) from None

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(("bytes",), self.shape, self.default)}

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
        """Return all texts of a column, end to end."""
        values = column.values if isinstance(column, RaggedArray) else column.reshape(-1)
        assert isinstance(values, BytesArray)
        texts = []
        for value in values.tolist():
            try:
                texts.append(value.decode("utf-8", self.errors))
            except UnicodeDecodeError as error:
                raise CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {self.key!r} is not UTF-8: byte {error.start} is "
                    f"0x{value[error.start]:02x} ({error.reason})",
                    found=f"{value!r:.80}",
                    remedy=f"Load it as Bytes, or pass {option('errors', 'replace')}.",
                    feature=self.key,
                    record=row_of(column, len(texts)),
                ) from None
        return texts
