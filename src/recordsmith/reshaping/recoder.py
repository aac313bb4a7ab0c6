"""The values of one feature -> others, as a table says: from wire to wire."""

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
from recordsmith.reshaping.recode_table import OTHERS, RecodeTable, Recoding


class Recoder:
    """Replaces the values of one feature. Threads may share it."""

    def __init__(self, key: str, table: RecodeTable) -> None:
        self._key = key
        self._table = table
        self._of_kind: dict[str, Recoding] = {}

    def __call__(self, value: bytes, field: int) -> bytes:
        """The value's field of a map entry -> another; `field` tells features from lists.

        Raises:
            CorruptDataError: a value is not in the table (feature-value-mismatch).
        """
        return self._lists(value) if field == 2 else self._feature(value)

    def _feature(self, value: bytes) -> bytes:
        values = decode_example(delimited(1, delimited(1, value)))[""]
        if not len(values):
            return value
        return _value_of(encode_example({"": self._new(values)}))

    def _lists(self, value: bytes) -> bytes:
        steps = decode_sequence_example(delimited(2, delimited(1, value))).feature_lists[""]
        if not any(map(len, steps)):
            return value
        return _value_of(encode_sequence_example({}, {"": [self._new(step) for step in steps]}))

    def _new(self, values: Any) -> Any:
        """The new values of a feature."""
        if not len(values):
            return values
        kind = "bytes" if isinstance(values, list) else str(values.dtype).removesuffix("32")
        recoding = self._of_kind.get(kind)
        if recoding is None:
            recoding = self._of_kind[kind] = self._table.of_kind(kind, self._key)
        olds = values if kind == "bytes" else values.tolist()
        news = [recoding.new(old) for old in olds]
        if None in news:
            old = olds[news.index(None)]
            raise CorruptDataError(
                Defect.FEATURE_VALUE,
                f"feature {self._key!r} is {_readable(old)}, for which {self._table.where} has no "
                f"new value. Add a row for it, or one whose old value is {OTHERS} for all others "
                f"({OTHERS},{OTHERS} leaves them as they are).",
            )
        return news if kind == "bytes" else np.array(news, np.int64)


def _value_of(payload: bytes) -> bytes:
    """The value's field of the only map entry of a payload, whose key is empty."""
    return payload[payload.index(0) + 1 :]  # the first zero is the length of the key


def _readable(value: int | bytes) -> str:
    if isinstance(value, int):
        return str(value)
    return repr(value.decode("utf-8", "surrogateescape"))[:80]
