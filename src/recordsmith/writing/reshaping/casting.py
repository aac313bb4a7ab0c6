"""Casts of feature values: numbers and text to int64 or float, only where the number stays."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from recordsmith.support.errors import CorruptDataError, Defect
from recordsmith.writing.reshaping.recoding import ValueChange

CastKind = Literal["int64", "float"]

_LONGEST = 200  # text of a number
_VALUELESS = b"\x12\x00"  # a feature without a kind, or a feature list without steps


class Caster(ValueChange):
    """Casts the values of one feature to another kind, after a change of them if there is one."""

    def __init__(self, key: str, kind: CastKind, change: ValueChange | None = None) -> None:
        self._key = key
        self._kind = kind
        self._change = change
        self._dtype: Any = np.int64 if kind == "int64" else np.float32

    def __call__(self, value: bytes, field: int) -> bytes:
        if self._change is not None:
            value = self._change(value, field)
        return value if value == _VALUELESS else super().__call__(value, field)

    def _new(self, values: Any) -> Any:
        if isinstance(values, list):
            return np.array([self._parsed(text) for text in values], self._dtype)
        if values.dtype == self._dtype:
            return values
        floats = values.astype(np.float32, copy=False)
        is_within = (floats >= -(2.0**63)) & (floats < 2.0**63)
        integers = np.where(is_within, floats, 0).astype(np.int64)
        is_same = is_within & (integers == values)
        if not is_same.all():
            raise self._misfit(values[np.argmin(is_same)].item())
        return integers if self._kind == "int64" else floats

    def _parsed(self, text: bytes) -> Any:
        """Return the number of a text. A decimal is rounded to float32, but an integer is not."""
        is_integer = self._kind == "int64" or text.strip().lstrip(b"+-").isdigit()
        with suppress(ValueError, OverflowError), np.errstate(over="ignore"):
            if len(text) > _LONGEST or b"_" in text:
                pass
            elif is_integer:
                number = int(text)
                if int(self._dtype(number)) == number:
                    return number
            else:
                rounded = np.float32(float(text))
                if np.isfinite(rounded) or not math.isfinite(float(text)):
                    return rounded
        raise self._misfit(text[:80].decode("utf-8", "surrogateescape"))

    def _misfit(self, value: object) -> CorruptDataError:
        return CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {self._key!r} has a value that {self._kind} cannot hold",
            found=repr(value),
            expected="a whole number in the range of int64"
            if self._kind == "int64"
            else "a number that float32 holds exactly, or decimal text",
            feature=self._key,
        )
