"""Change the values of one serialized feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recordsmith.example import (
    decode_example,
    decode_sequence_example,
    delimited,
    encode_example,
    encode_sequence_example,
)


def change_values(value: bytes, field: int, change: Callable[[Any], Any]) -> bytes:
    """Change the values of a feature, or of each step of a feature list.

    Args:
        value: the value field of a map entry.
        field: that of its map: 1 for features, 2 for feature lists.
        change: called with the values of the feature or of one step, as `decode_example` returns
            them; returns the new values, or the same object to keep them.

    Returns:
        The new value field; `value` itself if nothing changes.
    """
    payload = delimited(field, delimited(1, value))  # of one feature with an empty key
    if field == 1:
        steps = [decode_example(payload)[""]]
    else:
        steps = decode_sequence_example(payload).feature_lists[""]
    news = [change(step) for step in steps]
    if all(new is step for new, step in zip(news, steps, strict=True)):
        return value
    if field == 1:
        payload = encode_example({"": news[0]})
    else:
        payload = encode_sequence_example({}, {"": news})
    return payload[payload.index(0) + 1 :]  # the first zero is the length of the key
