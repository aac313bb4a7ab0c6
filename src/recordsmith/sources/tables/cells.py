"""Columns of CSV cells: whether they are integers, numbers or text, and their values.

All cells of a column decide. Codes such as 007, phone numbers with a + and integers beyond int64
are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.arrow.columns import as_numpy
from recordsmith.arrow.library import import_pyarrow
from recordsmith.buffers import Int64Array
from recordsmith.example import BytesArray, Kind

_LIMIT = 2**63
_OF_FLOATS = b"+.eEnNaAiIfFtTyY"  # in addition to digits and -
_INTEGER = r"-?(?:0|[1-9][0-9]{0,18})"
_FLOAT = (
    r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+[eE][+-]?[0-9]+"
    r"|[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)


class CellColumn:
    """A column, over all files.

    is_left_out: whether it has neither a name nor values, as where every line ends with a comma.
    first_text: the first cell that made a column of numbers text, with its place.
    """

    def __init__(self, name: str, declared: Kind | None, *, is_named: bool) -> None:
        self.name = name
        self.is_named = is_named
        self.empty_count = 0
        self.first_text = ""
        self._is_declared = declared is not None
        self._kind = declared
        self._is_filled = False
        self._row_count = 0
        self._surveyed: tuple[Any, Any] = (None, None)  # cells, as numbers

    @property
    def kind(self) -> Kind:
        return self._kind or "bytes"

    @property
    def is_left_out(self) -> bool:
        return not self.is_named and not self._is_filled

    def update(self, cells: Any, place: Callable[[int], str]) -> bool:
        """Consider more cells; return whether they change how earlier ones are stored."""
        has_earlier = self._row_count > 0
        self._row_count += len(cells)
        empty_count = len(cells) - int(np.count_nonzero(_lengths(cells)))
        self.empty_count += empty_count
        if empty_count == len(cells):
            return False
        before, was_left_out = self._kind, self.is_left_out
        self._is_filled = True
        if self._kind != "bytes" and not self._is_declared:
            self._kind = self._kind_with(cells, place)
        return has_earlier and (self._kind != before or was_left_out)

    def _kind_with(self, cells: Any, place: Callable[[int], str]) -> Kind | None:
        """The kind of the column with more cells."""
        numbers = _as_numbers(cells)
        if numbers is not None:
            self._surveyed = (cells, numbers)
            if numbers.null_count == len(numbers):
                return self._kind
            return "float" if _is_float(numbers) or self._kind == "float" else "int64"
        kinds = {self._kind}
        for number, cell in enumerate(cells.to_pylist()):
            kind = cell_kind(cell)
            if kind == "bytes":
                if kinds != {None}:
                    self.first_text = f"{place(number)}: {cell:.40}"
                return "bytes"
            kinds.add(kind)
        return "float" if "float" in kinds else "int64"

    def numbers(self, cells: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_], dict[int, str]]:
        """Convert cells to int64 or float64.

        Also returns which rows have a number, and why some cells cannot be stored.
        """
        from pyarrow import compute

        as_float = self.kind == "float"
        surveyed, numbers = self._surveyed
        self._surveyed = (None, None)
        if surveyed is not cells or (as_float and not _is_float(numbers)):
            numbers = _as_numbers(cells, as_float=as_float)
        if numbers is None or (_is_float(numbers) and not as_float):
            return self._convert_one_by_one(cells)
        if _is_float(numbers):
            infinite = cells.filter(compute.is_inf(numbers))
            if len(infinite) and not _all_match(infinite, "[^0-9]*"):
                return self._convert_one_by_one(cells)
        valid = as_numpy(numbers.is_valid())
        values = as_numpy(numbers)
        values = values if valid.all() else np.where(valid, values, 0)
        return values, valid, {}

    def _convert_one_by_one(
        self, cells: Any
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_], dict[int, str]]:
        """Convert cells of which some cannot be stored."""
        valid = np.zeros(len(cells), bool)
        values = np.zeros(len(cells), np.int64 if self.kind == "int64" else np.float64)
        problems: dict[int, str] = {}
        for row, cell in enumerate(cells.to_pylist()):
            if not cell or cell.isspace():
                continue
            try:
                values[row] = _to_number(cell, self.kind)
                valid[row] = True
            except ValueError as error:
                problems[row] = str(error)
        return values, valid, problems


def cell_kind(cell: str) -> Kind | None:
    """The kind of a single cell; None if it is blank."""
    bare = cell.strip(" \t")
    if not bare:
        return None
    if re.fullmatch(_INTEGER, bare) and -_LIMIT <= int(bare) < _LIMIT:
        return "int64"
    return "float" if re.fullmatch(_FLOAT, bare) else "bytes"


def cell_memory(cells: Any) -> BytesArray:
    """The text of the cells, in the memory of their pyarrow.StringArray."""
    return BytesArray(_content(cells), _offsets(cells).astype(np.int64))


def _to_number(cell: str, kind: Kind) -> int | float:
    """The number in a cell; ValueError if it is none of this kind."""
    bare = cell.strip()
    is_integer = re.fullmatch("[+-]?[0-9]+", bare) is not None
    if kind == "int64":
        if not is_integer:
            raise ValueError(f"{cell!r:.40} is not an integer")
        if not -_LIMIT <= int(bare[:30]) < _LIMIT:
            raise ValueError(f"{cell} does not fit int64; expected the kind bytes")
        return int(bare)
    if not is_integer and not re.fullmatch(_FLOAT, bare):
        raise ValueError(f"{cell!r:.40} is not a number")
    number = float(bare)
    if math.isinf(number) and re.search("[0-9]", cell):
        raise ValueError(f"{cell:.40} does not fit a 32-bit float")
    return number


def _as_numbers(cells: Any, *, as_float: bool = False) -> Any:
    """Cells as an array of int64 or float64, null for blank ones; None if one is neither.

    pyarrow also takes 007 as a number, which is text here.
    """
    from pyarrow import compute

    pa = import_pyarrow()
    others = (
        _content(cells)[slice(*_offsets(cells)[[0, -1]])].tobytes().translate(None, b"0123456789-")
    )
    if b" " in others or b"\t" in others:
        cells = compute.ascii_trim(cells, " \t")
        others = others.translate(None, b" \t")
    if others.translate(None, _OF_FLOATS):
        return None  # not left to `cast`, which describes each cell that it refuses
    is_filled = _lengths(cells) > 0
    if not is_filled.all():
        # neither pa.scalar nor pa.array, which import pandas where it is installed
        valid = pa.py_buffer(np.packbits(is_filled, bitorder="little"))
        buffers = pa.py_buffer(_offsets(cells)), cells.buffers()[2], valid
        cells = pa.StringArray.from_buffers(len(cells), *buffers)
    with suppress(pa.ArrowInvalid):
        if not others and not as_float:
            integers = cells.cast(pa.int64())
            starts = compute.starts_with(cells, "0"), compute.starts_with(cells, "-0")
            if _all_match(cells.filter(compute.or_(*starts)), _INTEGER):
                return integers
        floats = cells.cast(pa.float64())
        integral = cells.filter(compute.invert(compute.match_substring(cells, ".")))
        is_integer = compute.match_substring_regex(integral, f"^(?:{_INTEGER})$")
        integral.filter(is_integer).cast(pa.int64())
        if _all_match(integral, f"{_INTEGER}|{_FLOAT}"):
            return floats
    return None


def _all_match(cells: Any, pattern: str) -> bool:
    """Whether a pattern matches the whole of each cell."""
    from pyarrow import compute

    matches = compute.match_substring_regex(cells, f"^(?:{pattern})$")
    return bool(compute.all(matches, min_count=0).as_py())


def _content(cells: Any) -> npt.NDArray[np.uint8]:
    data = cells.buffers()[2] if len(cells) else None
    return np.frombuffer(data or b"", np.uint8)


def _offsets(cells: Any) -> npt.NDArray[np.int32]:
    """Where each cell begins in the memory of a pyarrow.StringArray."""
    if not len(cells):
        return np.zeros(1, np.int32)
    return np.frombuffer(cells.buffers()[1], np.int32)[cells.offset :][: len(cells) + 1]


def _lengths(cells: Any) -> Int64Array:
    return np.diff(_offsets(cells)).astype(np.int64)


def _is_float(numbers: Any) -> bool:
    return bool(import_pyarrow().types.is_floating(numbers.type))
