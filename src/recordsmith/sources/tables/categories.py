"""Columns with splits, groups or classes of rows: numbers of distinct values."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import LARGEST_LABEL, ClassNames, class_names_of
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.numbered import Coding, RowNames, SampleTable
from recordsmith.sources.problems import join_names, join_problems
from recordsmith.sources.splits import sort_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError, option
from recordsmith.support.words import count


class CategoryColumn:
    """Text values, one for each row, as numbers of distinct ones: four bytes a row."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {None: -1}
        self._numbers = array("i")

    def extend(self, values: Sequence[str | None], table: int = 0) -> None:
        """Add the values of the next rows; `table` is the number of their file."""
        for value in dict.fromkeys(values):
            self._codes.setdefault(value, len(self._codes) - 1)
        self._numbers.extend(map(self._codes.__getitem__, values))

    def clear(self) -> None:
        self._codes, self._numbers = {None: -1}, array("i")

    @property
    def values(self) -> list[str]:
        """The distinct values, in the order in which they appeared."""
        return [value for value in self._codes if value is not None]

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


class RowMarks:
    """The columns with the split, the group and the class of each row; None for no column."""

    def __init__(self, split: str | None, group: str | None, label: str | None) -> None:
        self.names = (split, group, label)
        self._columns = (CategoryColumn(), CategoryColumn(), CategoryColumn())

    def columns(self) -> list[tuple[str | None, CategoryColumn]]:
        return list(zip(self.names, self._columns, strict=True))

    def check(self, path: Location | None, problems: Sequence[str] = ()) -> None:
        """Check that each column has values; `problems` may say why not."""
        for name, column in self.columns():
            if name is not None and not column.values:
                message = join_problems([f"no row has a value for {name!r}", *problems])
                raise SourceError(message, problems, path=path)

    def _splits(self) -> Coding | None:
        """Names of splits in order, and which each row has: the first, if it has none.

        Rows without a split cannot be read, so that does not matter.
        """
        values = self._columns[0]
        if self.names[0] is None:
            return None
        names = sort_splits(values.values)
        numbers = values.map_values({name: place for place, name in enumerate(names)})
        return names, np.maximum(numbers, 0)

    def samples(
        self, names: RowNames, rows: EncodedRows, labels: npt.NDArray[np.int32] | None
    ) -> SampleTable:
        groups = self._columns[1]
        return SampleTable(
            names,
            rows.sizes,
            labels=labels,
            splits=self._splits(),
            groups=None if self.names[1] is None else (groups.values, groups.numbers()),
            version=rows.crc32c,
            references=names.reference,
        )

    def labels(
        self,
        kind: str | None,
        known_names: Sequence[str] | None,
        notices: list[str],
        path: Location | None = None,
    ) -> tuple[npt.NDArray[np.int32] | None, ClassNames | None]:
        """The label of each row, and the names of classes; `known_names` are those of a file.

        Whole numbers from 0 on are labels as they are, and each is its own name. Others, and texts,
        are sorted and counted from 0.
        """
        column, values = self.names[2], self._columns[2]
        if column is None:
            return None, None
        names = values.values
        if known_names is not None:
            wrong = [name for name in names if not -1 <= int(name) < len(known_names)]
            if wrong:  # -1 means none, as in `datasets`
                raise SourceError(
                    f"label column {column!r} has {join_names(wrong)}; expected labels below "
                    f"{len(known_names)}, the number of class names",
                    path=path,
                )
            check_class_names(known_names)
            return values.map_values({name: int(name) for name in names}), tuple(known_names)
        if kind == "float":
            raise SourceError(
                f"label column {column!r} has floats; expected class names or integers",
                path=path,
                remedy="A regression target is a feature, not a class: pass "
                f"{option('label_column', '')} for no column of classes.",
            )
        if missing := int(np.count_nonzero(values.numbers() < 0)):
            notices.append(f"{count(missing, 'row')} without a class in {column!r}")
        check_class_names(names)
        if kind != "int64":
            numbers = {name: place for place, name in enumerate(sorted(names))}
        elif all(0 <= int(name) <= LARGEST_LABEL for name in names):
            numbers = {name: int(name) for name in names}
        else:
            numbers = {name: place for place, name in enumerate(sorted(names, key=int))}
        class_names = class_names_of({number: name.strip() for name, number in numbers.items()})
        return values.map_values(numbers), class_names
