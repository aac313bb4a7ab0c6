"""Checks values against a rule: their content, their bounds and the allowed values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from recordsmith.errors import CorruptDataError, DataError, Defect
from recordsmith.examining.rules import FeatureRule
from recordsmith.example import BytesArray


def wrong_content(key: str, rule: FeatureRule, contents: Any) -> Iterator[DataError]:
    raw, text, image = contents
    if rule.content == "image" and raw + text:
        yield CorruptDataError(
            Defect.UNREADABLE_IMAGE,
            f"feature {key!r} does not hold an image",
            expected="the first bytes of a known image format",
            feature=key,
        )
    if rule.content == "text" and raw + image:
        yield CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {key!r} holds bytes that are not text",
            expected="UTF-8 without control characters",
            feature=key,
        )


def describe_range(low: int, high: int) -> str:
    if low == high:
        return "1 value" if low == 1 else f"{low} values"
    return f"{low} to {high} values"


def bad_values(values: Any, rule: FeatureRule) -> Iterator[tuple[int, Any]]:
    if isinstance(values, BytesArray):
        allowed = {
            value.encode() if isinstance(value, str) else value for value in rule.allowed or ()
        }
        if rule.allowed is not None:
            for place, value in enumerate(values):
                if value not in allowed:
                    yield place, value
        return
    bad = np.zeros(len(values), bool)
    if rule.min_value is not None:
        bad |= ~(values >= rule.min_value)
    if rule.max_value is not None:
        bad |= ~(values <= rule.max_value)
    if rule.allowed is not None:
        bad |= ~np.isin(values, np.asarray(rule.allowed, values.dtype))
    for place in np.flatnonzero(bad).tolist():
        yield place, values[place].item()


def expected_values(rule: FeatureRule) -> str:
    if rule.allowed is not None:
        shown = ", ".join(map(repr, rule.allowed[:8]))
        return f"one of {shown}" + (" …" if len(rule.allowed) > 8 else "")
    low = "" if rule.min_value is None else f"{rule.min_value:g} or more"
    high = "" if rule.max_value is None else f"{rule.max_value:g} or less"
    return " and ".join(filter(None, (low, high)))
