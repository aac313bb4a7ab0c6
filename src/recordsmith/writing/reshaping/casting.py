"""Casts of feature values: numbers and text to int64 or float, only where the number stays."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

import numpy as np

from recordsmith.support.errors import CorruptDataError, Defect, OptionError
from recordsmith.writing.reshaping.recoding import ValueChange

CastKind = Literal["int64", "float"]

_INTEGER = re.compile(rb"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(
    rb"[+-]?(([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})(e[+-]?[0-9]{1,4})?|nan|inf)",
    re.IGNORECASE,
)
_VALUELESS = b"\x12\x00"  # a feature without a kind, or a feature list without steps


def check_kind(key: str, kind: object) -> CastKind:
    """Return what a feature is cast to; OptionError if it is not one of the kinds."""
    if kind in get_args(CastKind):
        return kind  # type: ignore[return-value]
    raise OptionError(
        f"{key!r} cannot be cast to {kind!r:.60}",
        option="cast",
        value=kind,
        expected="int64 or float",
    )


class Caster(ValueChange):
    """Casts the values of one feature to another kind."""

    def __init__(self, key: str, kind: CastKind) -> None:
        self._key = key
        self._kind = kind
        self._type: Any = np.int64 if kind == "int64" else np.float32

    def __call__(self, value: bytes, field: int) -> bytes:
        return value if value == _VALUELESS else super().__call__(value, field)

    def _new(self, values: Any) -> Any:
        if isinstance(values, list):
            return np.array([self._parsed(text) for text in values], self._type)
        if values.dtype == self._type:
            return values
        floats = values.astype(np.float32, copy=False)
        is_within = (floats >= -(2.0**63)) & (floats < 2.0**63)
        integers = np.where(is_within, floats, 0).astype(np.int64)
        is_same = is_within & (integers == values)
        if not is_same.all():
            self._refuse(values[np.argmin(is_same)].item())
        return integers if self._kind == "int64" else floats

    def _parsed(self, text: bytes) -> Any:
        """Return the number of a text. A decimal is rounded to float32, but an integer is not."""
        stripped = text.strip()
        if self._kind == "int64" and _INTEGER.fullmatch(stripped):
            number = int(stripped)
            if -(2**63) <= number < 2**63:
                return number
        elif self._kind == "float" and _DECIMAL.fullmatch(stripped):
            with np.errstate(over="ignore"):
                rounded = np.float32(stripped.decode())
            is_whole = stripped.lstrip(b"+-").isdigit()
            if is_whole and np.isfinite(rounded) and int(rounded) == int(stripped):
                return rounded
            if not is_whole and (np.isfinite(rounded) or stripped[-1:] in b"nNfF"):
                return rounded
        return self._refuse(text)

    def _refuse(self, value: Any) -> None:
        if isinstance(value, bytes):
            value = value[:80].decode("utf-8", "surrogateescape")
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {self._key!r} has a value that {self._kind} cannot hold",
            found=repr(value),
            expected="a whole number in the range of int64"
            if self._kind == "int64"
            else "a number that float32 holds exactly, or decimal text",
            feature=self._key,
        )
