"""Columns with splits, groups or classes of rows: numbers of distinct values."""

from __future__ import annotations

import ast
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import LARGEST_LABEL, ClassNames, class_names_of
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.images import LIST_KINDS, list_reference, rarest_labels
from recordsmith.sources.numbered import Coding, References, RowNames, SampleTable
from recordsmith.sources.problems import join_names, join_problems
from recordsmith.sources.splits import sort_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.stores import Location
from recordsmith.support.buffers import Int64Array
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


class LabelColumn(CategoryColumn):
    """The class of each row: a text, or (class, confidence) of each of several."""

    def __init__(
        self, name: str | None, flags: Sequence[str] = (), separator: str | None = None
    ) -> None:
        """
        Args:
            name: of the column; None without classes.
            flags: instead of it, columns of 0 and 1, one for each class.
            separator: between the classes in a text; None for one class.
        """
        super().__init__()
        self.name, self.flags = flags[0] if flags else name, tuple(flags)
        self._separator = separator
        self._cells = {"": "", "1": ""}  # where 0 and -1 occur first
        self._pairs: dict[tuple[str, float], tuple[str, float]] = {}  # one object for all rows

    def lists(self) -> list[tuple[tuple[str, float], ...]] | None:
        """The distinct values as lists; None if no row may have several."""
        values = self.values
        if set(map(type, values)) <= {str}:
            return None
        return [value if isinstance(value, tuple) else ((value, 1.0),) for value in values]

    def read(self, batch: Any, name: str) -> list[Any]:
        if not self.flags:
            return batch.category(name, self._cell)  # type: ignore[no-any-return]
        cells = [batch.category(column, _flag) for column in self.flags]
        return [self._row(batch, *row) for row in enumerate(zip(*cells, strict=True))]

    def _cell(self, value: Any) -> Any:
        if isinstance(value, str) and self._separator is not None:
            value = [part.strip() for part in value.split(self._separator)]
        elif isinstance(value, str) and value[:1] == "[" and value[-1:] == "]":
            value = _bracketed(value)
        if not isinstance(value, (list, tuple, np.ndarray)):
            return category_text(value)
        names = dict.fromkeys(filter(None, map(category_text, value)))
        return self._list((name, 1.0) for name in names)

    def _list(self, pairs: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
        return tuple(self._pairs.setdefault(pair, pair) for pair in pairs)

    def _row(self, batch: Any, row: int, cells: Sequence[str]) -> Any:
        """The classes of a row in columns of 0 and 1; None if all its cells are empty."""
        for column, cell in zip(self.flags, cells, strict=True):
            if cell not in self._cells:
                place = f"{batch.place(row)}, column {column!r}"
                if cell not in ("0", "-1"):
                    raise SourceError(
                        f"{place}: {cell!r:.40}; expected 0 or 1, or an empty cell if unknown",
                        remedy=f"Leave it out of {option('label_columns')}, or convert it.",
                    )
                self._cells[cell] = place
        if len(self._cells) > 3:
            places = join_names(f"{cell} in {self._cells[cell]}" for cell in ("0", "-1"))
            raise SourceError(
                f"columns of classes have 0 and -1: {places}",
                remedy="If -1 stands for unknown, empty these cells; else replace it by 0 or 1.",
            )
        known = zip(self.flags, cells, strict=True)
        return self._list((column, float(cell == "1")) for column, cell in known if cell) or None


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


def _lists_in(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that seem to be lists, with the text between their classes."""
    known = {*names}
    for name in names:
        parts = [part.strip() for part in name.split(",")]
        if between := next((sign for sign in "|;" if sign in name), ""):
            yield name, between
        elif len(parts) > 1 and not known.isdisjoint(parts):  # unlike Paris, France
            yield name, ","


class RowMarks:
    """The columns with the split, the group and the class of each row; None for no column."""

    def __init__(self, split: str | None, group: str | None, label: LabelColumn) -> None:
        self.names = (split, group, label.name)
        self._label, self._columns = label, (CategoryColumn(), CategoryColumn(), label)
        self._list_of: Callable[[int], dict[str, Any]] | None = None  # of a row, by its number
        self.list_keys: tuple[str, ...] = ()

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
        groups, list_of = self._columns[1], self._list_of
        return SampleTable(
            names,
            rows.sizes,
            labels=labels,
            splits=self._splits(),
            groups=None if self.names[1] is None else (groups.values, groups.numbers()),
            version=rows.crc32c,
            references=names.reference,
            rarest=None if list_of is None else rarest_labels(map(list_of, range(len(names)))),
        )

    def references(self, references: References) -> References:
        """The same with the labels of each row, where rows may have several."""
        list_of = self._list_of
        if list_of is None:
            return references
        return lambda row: {**(references(row) or {}), **list_of(row)}

    def labels(
        self,
        kind: str | None,
        known_names: Sequence[str] | None,
        notices: list[str],
        path: Location | None = None,
        kept: Int64Array | slice = slice(None),
    ) -> tuple[npt.NDArray[np.int32] | None, ClassNames | None]:
        """The label of each row, and the names of classes; `known_names` are those of a file.

        `kept` has the numbers of the rows that are not left out.

        Whole numbers from 0 on are labels as they are, and each is its own name. Others, and texts,
        are sorted and counted from 0.
        """
        column, values = self.names[2], self._label
        if column is None:
            return None, None
        lists = values.lists()
        names: list[str] = values.values
        if lists is not None:
            used = (name for pairs in lists for name, _ in pairs)
            names = [*(values.flags or dict.fromkeys(used))]
        lowest = -1 if lists is None else 0
        if known_names is not None:
            wrong = [name for name in names if not lowest <= int(name) < len(known_names)]
            if wrong:  # -1 means none, as in `datasets`
                raise SourceError(
                    f"label column {column!r} has {join_names(wrong)}; expected labels below "
                    f"{len(known_names)}, the number of class names",
                    path=path,
                )
            check_class_names(known_names)
            numbers = {name: int(name) for name in names}
            return self._labels(numbers, lists), tuple(known_names)
        if kind == "float":
            raise SourceError(
                f"label column {column!r} has floats; expected class names or integers",
                path=path,
                remedy="A regression target is a feature, not a class: pass "
                f"{option('label_column', '')} for no column of classes.",
            )
        if lists is None and (joined := next(_lists_in(names), None)) is not None:
            way = f"if they are lists, pass {option('label_separator', joined[1])} or another text"
            notices.append(f"classes such as {joined[0]!r:.60}: {way}")
        if missing := int(np.count_nonzero(values.numbers()[kept] < 0)):
            where = f"columns {join_names(values.flags)}" if values.flags else repr(column)
            notices.append(f"{count(missing, 'row')} without a class in {where}")
        check_class_names(names)
        if values.flags:
            numbers = {name: place for place, name in enumerate(names)}
        elif kind != "int64":
            numbers = {name: place for place, name in enumerate(sorted(names))}
        elif all(0 <= int(name) <= LARGEST_LABEL for name in names):
            numbers = {name: int(name) for name in names}
        else:
            numbers = {name: place for place, name in enumerate(sorted(names, key=int))}
        class_names = class_names_of({number: name.strip() for name, number in numbers.items()})
        return self._labels(numbers, lists), class_names

    def _labels(
        self, numbers: Mapping[str, int], lists: Sequence[Sequence[tuple[str, float]]] | None
    ) -> npt.NDArray[np.int32] | None:
        """The label of each row; None if rows may have several, which are in its reference.

        Classes that rows have not are kept only where some are unknown.
        """
        if lists is None:
            return self._label.map_values(numbers)
        has_confidence = any(len(pairs) < len(self._label.flags) for pairs in lists)
        places = self._label.numbers()

        def list_of(row: int) -> dict[str, Any]:
            if (place := int(places[row])) < 0:
                return {}
            pairs = (pair for pair in lists[place] if pair[1] or has_confidence)
            labels = {numbers[name]: share for name, share in pairs}
            return list_reference(labels, has_confidence=has_confidence)

        self._list_of = list_of
        self.list_keys = tuple(LIST_KINDS)[: 2 + has_confidence]
        return None
