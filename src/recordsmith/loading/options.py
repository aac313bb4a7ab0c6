"""Options that are numbers: are they what they can be?"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from recordsmith.errors import OptionError

_LARGEST_COUNT = 2**31 - 1  # the product of two such is an int64
_MOST_RECORDS = 2**53


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, of Python or of NumPy; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_number(name: str, value: object, lowest: int, highest: int | None = None) -> int:
    """The value of an option as an int, so that it can stand in a state that becomes JSON.

    Raises:
        OptionError: it is no whole number, or none from `lowest` to `highest`.
    """
    if is_whole(value):
        number = int(value)
        if lowest <= number and (highest is None or number <= highest):
            return number
    expected = f"at least {lowest}" if highest is None else f"{lowest} to {highest}"
    if not is_whole(value):
        expected = f"a whole number, {expected}"
    raise OptionError(f"{name} is {value!r:.60}; expected {expected}")


def count_number(name: str, value: object, most: int = _LARGEST_COUNT) -> int:
    """A count that others are multiplied with; errors as of `whole_number`."""
    count = whole_number(name, value, 1)
    if count > most:
        raise OptionError(f"{name} is {count}; expected at most {most}")
    return count


def record_count_number(name: str, value: object) -> int:
    """A count of neighbouring records, which may be more than there are."""
    return count_number(name, value, _MOST_RECORDS)


def seed_number(value: object) -> int:
    """A seed as an int; errors as of `whole_number`."""
    return whole_number("seed", value, -(2**63), 2**64 - 1)
