"""Columns with splits, groups or classes of rows: numbers of distinct values."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import LARGEST_LABEL, ClassNames, class_names_of
from recordsmith.format.example.class_lists import rarest_labels
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.images import LABEL_KINDS
from recordsmith.sources.numbered import Coding, References, RowNames, SampleTable
from recordsmith.sources.problems import join_names, join_problems
from recordsmith.sources.splits import sort_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError, option
from recordsmith.support.words import count


class CategoryColumn:
    """Text values, one for each row, as numbers of distinct ones: four bytes a row."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {None: -1}
        self._numbers = array("i")

    def read(self, batch: Any, name: str) -> list[Any]:
        """The values of the rows of a `RowBatch`."""
        return batch.category(name)  # type: ignore[no-any-return]

    def extend(self, values: Sequence[Any], table: int = 0) -> None:
        """Add the values of the next rows; `table` is the number of their file."""
        for value in dict.fromkeys(values):
            self._codes.setdefault(value, len(self._codes) - 1)
        self._numbers.extend(map(self._codes.__getitem__, values))

    def clear(self) -> None:
        self._codes, self._numbers = {None: -1}, array("i")

    @property
    def values(self) -> list[Any]:
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


class LabelList(NamedTuple):
    """The classes of a row that may have several: those that it has, and those that it has not."""

    names: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class LabelColumn(CategoryColumn):
    """The class of each row, or a list of classes: in a cell, or as columns of 0 and 1."""

    def __init__(self, columns: Sequence[str] = (), separator: str | None = None) -> None:
        """
        Args:
            columns: those of 0 and 1; none if classes are in one cell.
            separator: between the classes in a text; None for one class.
        """
        super().__init__()
        self.columns = tuple(columns)
        self._separator = separator
        self._lists: dict[tuple[str, ...], LabelList | None] = {}
        self._lowest: dict[str, str] = {}  # where 0 and -1 occur first

    @property
    def are_lists(self) -> bool:
        return any(isinstance(value, LabelList) for value in self.values)

    @property
    def lists(self) -> list[LabelList]:
        """The distinct values, each as a list."""
        return [v if isinstance(v, LabelList) else LabelList((v,)) for v in self.values]

    def read(self, batch: Any, name: str) -> list[Any]:
        if not self.columns:
            return batch.category(name, self._cell)  # type: ignore[no-any-return]
        cells = [batch.category(column, _flag) for column in self.columns]
        rows = enumerate(zip(*cells, strict=True))
        return [self._row(batch, number, tuple(c or "" for c in row)) for number, row in rows]

    def _cell(self, value: Any) -> Any:
        if isinstance(value, str) and self._separator is not None:
            value = [part.strip() for part in value.split(self._separator)]
        elif isinstance(value, str) and value[:1] == "[" and value[-1:] == "]":
            value = _bracketed(value)
        if not isinstance(value, (list, tuple, np.ndarray)):
            return category_text(value)
        return LabelList(tuple(dict.fromkeys(filter(None, map(category_text, value)))))

    def _row(self, batch: Any, number: int, cells: tuple[str, ...]) -> Any:
        """The classes of a row in columns of 0 and 1; None if all its cells are empty."""
        if cells not in self._lists:
            found: dict[bool, list[str]] = {True: [], False: []}
            for column, cell in zip(self.columns, cells, strict=True):
                if cell not in ("", "0", "1", "-1"):
                    raise SourceError(
                        f"{batch.place(number)}: column {column!r} has {cell!r:.40}; expected 0 or "
                        "1, or an empty cell if it is not known",
                        remedy=f"Leave it out of {option('label_columns')}, or convert it.",
                    )
                if cell:
                    found[cell == "1"].append(column)
                if cell in ("0", "-1"):
                    self._lowest.setdefault(cell, f"{batch.place(number)}, {column!r}")
            names = LabelList(tuple(found[True]), tuple(found[False]))
            self._lists[cells] = names if any(names) else None
        return self._lists[cells]

    def numbers_of(
        self, numbers: Mapping[str, int]
    ) -> tuple[list[list[int]], list[list[float] | None]]:
        """The labels of each distinct list, and their confidences if some cells are unknown."""
        if len(self._lowest) > 1:
            raise SourceError(
                "columns of classes have 0 and -1: "
                + join_names(f"{text} in {place}" for text, place in self._lowest.items()),
                remedy="If -1 stands for unknown, empty these cells; else replace it by 0 or 1.",
            )
        lists = self.lists
        has_unknown = any(len(of.names) + len(of.absent) < len(self.columns) for of in lists)
        if not has_unknown:
            return [[numbers[name] for name in of.names] for of in lists], [None] * len(lists)
        labels = [[numbers[name] for name in (*of.names, *of.absent)] for of in lists]
        return labels, [[1.0] * len(of.names) + [0.0] * len(of.absent) for of in lists]


_FLAGS = {"true": "1", "false": "0", "nan": "", "none": ""}
_LONGEST_LIST = 1 << 16


def _flag(value: Any) -> str:
    """A cell in a column of 0 and 1 as text; empty if it is not known."""
    text = value.strip() if isinstance(value, str) else str(value)
    text = text.removesuffix(".0").lower()
    return _FLAGS.get(text, text)


def _bracketed(text: str) -> Any:
    """The list in a cell such as ['a', 'b'], as Python and JSON write it; else the text."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text) if len(text) <= _LONGEST_LIST else None
        if isinstance(value, list) and {str, int}.issuperset(map(type, value)):
            return value
    return text


class RowMarks:
    """The columns with the split, the group and the class of each row; None for no column."""

    def __init__(
        self,
        split: str | None,
        group: str | None,
        label: str | None,
        label_column: LabelColumn | None = None,
    ) -> None:
        self._label = label_column or LabelColumn()
        self.names = (split, group, self._label.columns[0] if self._label.columns else label)
        self._columns = (CategoryColumn(), CategoryColumn(), self._label)
        self._lists: tuple[list[list[int]], list[list[float] | None]] | None = None

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
        rarest = None
        if self._lists is not None:
            places = self._label.numbers().tolist()
            of_values = [
                [label for label, share in zip(row, known or repeat(1), strict=False) if share]
                for row, known in zip(*self._lists, strict=True)
            ]
            of_rows = [of_values[place] if place >= 0 else [] for place in places]
            flat = np.fromiter(chain.from_iterable(of_rows), np.int64)
            lengths = np.fromiter(map(len, of_rows), np.int64, len(of_rows))
            rarest = rarest_labels(flat, lengths).astype(np.int32)
        return SampleTable(
            names,
            rows.sizes,
            labels=labels,
            splits=self._splits(),
            groups=None if self.names[1] is None else (groups.values, groups.numbers()),
            version=rows.crc32c,
            references=names.reference,
            rarest=rarest,
        )

    def list_keys(self) -> tuple[str, ...]:
        """The features with the classes of images that may have several."""
        if self._lists is None:
            return ()
        return tuple(LABEL_KINDS)[: 2 + (None not in self._lists[1])]

    def references(self, references: References) -> References:
        """The same with the labels of each row, where rows may have several."""
        if self._lists is None:
            return references
        places, (labels, confidences) = self._label.numbers(), self._lists

        def reference(row: int) -> Mapping[str, Any]:
            place, known = int(places[row]), {**(references(row) or {})}
            if place >= 0:
                known["labels"] = labels[place]
                if (confidence := confidences[place]) is not None:
                    known["confidence"] = confidence
            return known

        return reference

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
        column, values = self.names[2], self._label
        if column is None:
            return None, None
        names: list[str] = values.values
        lowest = -1
        if values.are_lists:
            used = (name for of in values.lists for name in (*of.names, *of.absent))
            names, lowest = [*(values.columns or dict.fromkeys(used))], 0
        if known_names is not None:
            wrong = [name for name in names if not lowest <= int(name) < len(known_names)]
            if wrong:  # -1 means none, as in `datasets`
                raise SourceError(
                    f"label column {column!r} has {join_names(wrong)}; expected labels below "
                    f"{len(known_names)}, the number of class names",
                    path=path,
                )
            check_class_names(known_names)
            return self._labels({name: int(name) for name in names}), tuple(known_names)
        if kind == "float":
            raise SourceError(
                f"label column {column!r} has floats; expected class names or integers",
                path=path,
                remedy="A regression target is a feature, not a class: pass "
                f"{option('label_column', '')} for no column of classes.",
            )
        if missing := int(np.count_nonzero(values.numbers() < 0)):
            where = f"columns {join_names(values.columns)}" if values.columns else repr(column)
            notices.append(f"{count(missing, 'row')} without a class in {where}")
        check_class_names(names)
        if values.columns:
            numbers = {name: place for place, name in enumerate(names)}
        elif kind != "int64":
            numbers = {name: place for place, name in enumerate(sorted(names))}
        elif all(0 <= int(name) <= LARGEST_LABEL for name in names):
            numbers = {name: int(name) for name in names}
        else:
            numbers = {name: place for place, name in enumerate(sorted(names, key=int))}
        class_names = class_names_of({number: name.strip() for name, number in numbers.items()})
        return self._labels(numbers), class_names

    def _labels(self, numbers: Mapping[str, int]) -> npt.NDArray[np.int32] | None:
        """The label of each row; None if rows may have several, which `samples` divides."""
        if not self._label.are_lists:
            return self._label.map_values(numbers)
        self._lists = self._label.numbers_of(numbers)
        return None
