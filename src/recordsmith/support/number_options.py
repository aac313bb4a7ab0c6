"""Checks options that are numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from recordsmith.support.errors import OptionError

_LARGEST_COUNT = 2**31 - 1  # the product of two such is an int64
_MAX_RECORDS = 2**53


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer of Python or NumPy; True and False are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_same(value: Any, own: Any) -> bool:
    """Whether entries of a state are equal, and True is not a 1."""
    if value != own:
        return False
    if isinstance(own, Mapping):
        return all(is_same(value[name], own[name]) for name in own)
    if isinstance(own, (list, tuple)):
        return all(map(is_same, value, own))
    return isinstance(value, (bool, np.bool_)) == isinstance(own, bool)


def whole_number(name: str, value: object, lowest: int, highest: int | None = None) -> int:
    """Check an integer option and return it as a Python int, which JSON can hold."""
    if is_whole(value):
        number = int(value)
        if lowest <= number and (highest is None or number <= highest):
            return number
    if highest is None:
        expected = "a positive integer" if lowest == 1 else f"an integer of at least {lowest}"
    else:
        expected = f"an integer from {lowest} to {highest}"
    raise OptionError(option=name, value=value, expected=expected)


def count_number(name: str, value: object, most: int = _LARGEST_COUNT) -> int:
    """Check a count that is multiplied with others; errors as in `whole_number`."""
    count = whole_number(name, value, 1)
    if count > most:
        raise OptionError(option=name, value=count, expected=f"at most {most}")
    return count


def record_count_number(name: str, value: object) -> int:
    """Check a count of neighbouring records; it may exceed the size of the dataset."""
    return count_number(name, value, _MAX_RECORDS)


def seed_number(value: object) -> int:
    """Check a seed; errors as in `whole_number`."""
    return whole_number("seed", value, -(2**63), 2**64 - 1)
