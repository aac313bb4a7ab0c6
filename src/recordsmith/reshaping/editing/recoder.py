"""Recoding of the values of one serialized feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.reshaping.editing.feature_values import change_values
from recordsmith.reshaping.editing.recode_table import OTHERS, RecodeTable, Recoding


class Recoder:
    """Replaces the values of one feature. Thread-safe."""

    def __init__(self, key: str, table: RecodeTable) -> None:
        self._key = key
        self._table = table
        self._of_kind: dict[str, Recoding] = {}

    def __call__(self, value: bytes, field: int) -> bytes:
        """Recode the value field of a map entry; `field` is 2 for feature lists.

        Raises:
            CorruptDataError: a value is missing in the table (feature-value-mismatch).
        """
        return change_values(value, field, self._new)

    def _new(self, values: Any) -> Any:
        """Return the new values of a feature."""
        if not len(values):
            return values
        kind = "bytes" if isinstance(values, list) else str(values.dtype).removesuffix("32")
        recoding = self._of_kind.get(kind)
        if recoding is None:
            recoding = self._of_kind[kind] = self._table.for_kind(kind, self._key)
        olds = values if kind == "bytes" else values.tolist()
        news = [recoding.new(old) for old in olds]
        if None in news:
            old = olds[news.index(None)]
            raise CorruptDataError(
                Defect.FEATURE_VALUE,
                f"feature {self._key!r} has a value without a row in {self._table.where}",
                found=_readable(old),
                remedy=f"Add a row for it, or one with the old value {OTHERS} for all others "
                f"({OTHERS},{OTHERS} leaves them unchanged).",
                feature=self._key,
            )
        return news if kind == "bytes" else np.array(news, np.int64)


def _readable(value: int | bytes) -> str:
    if isinstance(value, int):
        return str(value)
    return repr(value.decode("utf-8", "surrogateescape"))[:80]
