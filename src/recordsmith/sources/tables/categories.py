"""Columns with splits, groups or classes of rows: numbers of distinct values."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.labels import LARGEST_LABEL, ClassNames, class_names_of
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.numbered import Coding
from recordsmith.sources.splits import sort_splits
from recordsmith.words import count


class CategoryColumn:
    """Text values, one for each row, as numbers of distinct ones: four bytes a row."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {None: -1}
        self._numbers = array("i")

    def append(self, value: str | None) -> None:
        """Add the value of the next row; None where it has none."""
        self.extend((value,))

    def extend(self, values: Sequence[str | None], table: int = 0) -> None:
        """Add the values of the next rows; `table` is the number of their file."""
        for value in dict.fromkeys(values):
            self._codes.setdefault(value, len(self._codes) - 1)
        self._numbers.extend(map(self._codes.__getitem__, values))

    def clear(self) -> None:
        """Forget all rows."""
        self._codes, self._numbers = {None: -1}, array("i")

    @property
    def values(self) -> list[str]:
        """The distinct values, in the order in which they appeared."""
        return [value for value in self._codes if value is not None]

    @property
    def missing_count(self) -> int:
        return self._numbers.count(-1)

    def coding(self) -> Coding:
        """The distinct values, and which each row has."""
        return self.values, self.numbers()

    def numbers(self) -> npt.NDArray[np.int32]:
        """int32, (rows,): the place of each row's value in `values`, -1 where it has none."""
        return np.array(self._numbers, np.int32)

    def map_values(self, numbers: Mapping[str, int]) -> npt.NDArray[np.int32]:
        """int32, (rows,): the number that each row's value has in `numbers`, or -1."""
        table = np.array([*(numbers[value] for value in self.values), -1], np.int32)
        return table[self.numbers()]


def category_text(value: Any) -> str | None:
    """A value that names a split, a group or a class, as text; None for a missing or empty one."""
    if type(value) is int:  # the usual types first: this is called for every row
        return str(value)
    if type(value) is str or value is None:
        return value or None
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if not isinstance(value, (str, int, np.integer)):
        raise TypeError(f"{value!r:.40} is neither text nor an integer")
    return str(value) if value != "" else None


def category_texts(values: Sequence[Any]) -> list[str | None]:
    """The text of each value."""
    try:
        return list(map(category_text, values))
    except TypeError:
        for place, value in enumerate(values):
            try:
                category_text(value)
            except TypeError as error:
                raise TypeError(str(error), place) from None
        raise


def as_splits(values: CategoryColumn) -> Coding:
    """Names of splits in order, and which each row has: the first, if it has none.

    Rows without a split cannot be read, so that does not matter.
    """
    names = sort_splits(values.values)
    numbers = values.map_values({name: place for place, name in enumerate(names)})
    return names, np.maximum(numbers, 0)


def missing_notice(values: CategoryColumn, name: str) -> list[str]:
    """A notice on rows without a class."""
    missing = values.missing_count
    return [f"{count(missing, 'row')} without a class in {name!r}"] if missing else []


def as_labels(
    values: CategoryColumn, *, are_integers: bool
) -> tuple[npt.NDArray[np.int32], ClassNames]:
    """The label of each row, and the names of classes.

    Whole numbers from 0 on are labels as they are, and each is its own name. Others, and texts,
    are sorted and counted from 0.
    """
    names = values.values
    check_class_names(names)
    if not are_integers:
        numbers = {name: place for place, name in enumerate(sorted(names))}
    elif all(0 <= int(name) <= LARGEST_LABEL for name in names):
        numbers = {name: int(name) for name in names}
    else:
        numbers = {name: place for place, name in enumerate(sorted(names, key=int))}
    class_names = class_names_of({number: name.strip() for name, number in numbers.items()})
    return values.map_values(numbers), class_names
