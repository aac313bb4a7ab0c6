"""Recoding of the values of one serialized feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import (
    decode_example,
    decode_sequence_example,
    delimited,
    encode_example,
    encode_sequence_example,
)
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
        payload = delimited(field, delimited(1, value))  # of one feature with an empty key
        if field == 1:
            steps = [decode_example(payload)[""]]
        else:
            steps = decode_sequence_example(payload).feature_lists[""]
        if not any(map(len, steps)):
            return value
        news = [self._new(step) for step in steps]
        if field == 1:
            payload = encode_example({"": news[0]})
        else:
            payload = encode_sequence_example({}, {"": news})
        return payload[payload.index(0) + 1 :]  # the first zero is the length of the key

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
