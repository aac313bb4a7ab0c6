"""Infers whether columns of cells are integers, numbers or text.

All cells of a column decide. Codes such as 007, phone numbers with a + and integers beyond int64
are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.example import Kind
from recordsmith.sources.tables.table_rows import LostDigits

_LIMIT = 2**63
_MAX_DIGITS = 19  # of int64
_OF_NUMBERS = b"0123456789-+.eEnNaAiIfFtTyY"
_IS_OF_FLOAT = np.isin(np.arange(256), list(b".eEnN"))

_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+[eE][+-]?[0-9]+"
    r"|[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")


class CellColumn:
    """A column, over all files.

    is_left_out: whether it has neither a name nor values, as where every line ends with a comma.
    oddity: the first cell that made a column of numbers text, with its place.
    """

    def __init__(self, name: str, declared: Kind | None, *, is_named: bool) -> None:
        self.name = name
        self.is_named = is_named
        self.empty_count = 0
        self.oddity = ""
        self._is_declared = declared is not None
        self._found = declared
        self._is_filled = False
        self._row_count = 0
        self._surveyed: tuple[Any, Any] = (None, None)  # cells, as numbers

    @property
    def kind(self) -> Kind:
        return self._found or "bytes"

    @property
    def is_left_out(self) -> bool:
        return not self.is_named and not self._is_filled

    def update(self, array: Any, place: Callable[[int], str]) -> bool:
        """Consider more cells; return whether they change how earlier ones are stored."""
        has_earlier = self._row_count > 0
        self._row_count += len(array)
        _, offsets = cell_memory(array)
        empty_count = int((offsets[1:] == offsets[:-1]).sum())
        self.empty_count += empty_count
        if empty_count == len(array):
            return False
        before, was_left_out = self._found, self.is_left_out
        self._is_filled = True
        if self._found != "bytes" and not self._is_declared:
            self._found = self._with(array, place)
        return has_earlier and (self._found != before or was_left_out)

    def _with(self, array: Any, place: Callable[[int], str]) -> Kind | None:
        """The kind of the column with more cells."""
        numbers = _as_numbers(_trimmed(array))
        if numbers is not None:
            self._surveyed = (array, numbers)
            kinds = (self._found, "int64" if numbers.dtype == np.int64 else "float")
            return "float" if "float" in kinds else "int64"
        for number, cell in enumerate(array.to_pylist()):
            kind = cell_kind(cell)
            if kind == "bytes":
                if self._found is not None:
                    self.oddity = f"{place(number)}: {cell:.40}"
                return "bytes"
            if kind == "float" or self._found is None:
                self._found = kind or self._found
        return self._found

    def numbers(
        self, array: Any, lost: LostDigits, place: Callable[[int], str]
    ) -> tuple[Any, npt.NDArray[np.bool_], dict[int, str]]:
        """Convert cells to numbers.

        Returns:
            int64 or float64, (rows,); which rows have one: bool, (rows,); and why some cells cannot
            be stored, by row.
        """
        cells, values = self._surveyed
        self._surveyed = (None, None)
        is_surveyed = array is cells and (values.dtype == np.int64) == (self.kind == "int64")
        array = _trimmed(array)
        _, offsets = cell_memory(array)
        valid = offsets[1:] > offsets[:-1]
        faults: dict[int, str] = {}
        if not is_surveyed:
            values = None if self._is_declared else _cast(array, valid, self.kind)
        if values is None:
            values, valid = self._checked(array, faults)
        if self.kind == "float":
            wrong = lost.check(self.name, values, lambda at: _number(array[at].as_py()), place)
            too_large = [] if wrong is None else np.flatnonzero(wrong).tolist()
            for at in np.flatnonzero(np.isinf(values)).tolist():
                if not array[at].as_py().strip().strip("+-").isalpha():  # digits, not "inf"
                    too_large.append(at)
            for at in too_large:
                faults[at] = f"{array[at].as_py():.40} does not fit a 32-bit float"
            if too_large:
                values = values.copy()
                values[too_large] = 0
        return values, valid, faults

    def _checked(
        self, array: Any, faults: dict[int, str]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Convert cells one by one."""
        cells = array.to_pylist()
        valid = np.zeros(len(cells), bool)
        values = np.zeros(len(cells), np.int64 if self.kind == "int64" else np.float64)
        for row, cell in enumerate(cells):
            if not cell or cell.isspace():
                continue
            try:
                if self._is_declared:
                    _check_number(cell, self.kind)
                values[row] = int(cell) if self.kind == "int64" else float(cell)
                valid[row] = True
            except (ValueError, OverflowError) as error:
                faults[row] = str(error)
        return values, valid


def cell_kind(cell: str) -> Kind | None:
    """The kind of a single cell; None if it is empty."""
    bare = cell.strip(" \t")
    if not bare:
        return None
    if _INTEGER.fullmatch(bare) and -_LIMIT <= int(bare) < _LIMIT:
        return "int64"
    return "float" if _FLOAT.fullmatch(bare) else "bytes"


def _check_number(cell: str, kind: Kind) -> None:
    """Check a cell of a column with a declared kind."""
    bare = cell.strip()
    digits = bare.lstrip("+-")
    is_integer = digits.isascii() and digits.isdigit()
    if kind == "int64" and not is_integer:
        raise ValueError(f"{cell!r:.40} is not an integer")
    if kind == "int64" and not -_LIMIT <= int(bare[:30]) < _LIMIT:
        raise ValueError(f"{cell} does not fit int64; expected the kind bytes")
    if not is_integer and not _FLOAT.fullmatch(bare):
        raise ValueError(f"{cell!r:.40} is not a number")


def _number(cell: str) -> int | float:
    """A cell as an exact integer if it is one."""
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _as_numbers(array: Any) -> npt.NDArray[Any] | None:
    """Cells without blanks around them that are all numbers or empty, as int64 or float64.

    May be None for unusual numbers; `cell_kind` decides.
    """
    data, offsets = cell_memory(array)
    if data.tobytes().translate(None, _OF_NUMBERS):
        return None
    filled = offsets[1:] > offsets[:-1]
    starts, stops = offsets[:-1][filled], offsets[1:][filled]
    if not len(starts):
        return None
    marks = _counts(_IS_OF_FLOAT[data])
    is_float = marks[stops] > marks[starts]
    kind: Kind = "float" if marks[-1] else "int64"
    # next to floats, `_cast` does not find integers beyond int64
    most_digits = _MAX_DIGITS - (kind == "float")
    if not _are_integers(data, starts[~is_float], stops[~is_float], most_digits):
        return None
    return _cast(array, filled, kind)  # pyarrow takes no floats that `cell_kind` does not take


def _counts(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """How many are True before each place, and in all."""
    found = np.zeros(len(mask) + 1, np.int32)
    np.cumsum(mask, out=found[1:])
    return found


def _are_integers(
    data: npt.NDArray[np.uint8], starts: Int64Array, stops: Int64Array, most_digits: int
) -> bool:
    """Whether cells of `_OF_NUMBERS` are integers of so many digits without leading zeros."""
    is_negative = data[starts] == ord("-")
    firsts = starts + is_negative
    lengths = stops - firsts
    if len(lengths) and (lengths.min() < 1 or lengths.max() > most_digits):
        return False
    others = _counts(data - ord("0") > 9)
    if (others[stops] > others[firsts]).any():
        return False
    return not ((data[firsts] == ord("0")) & (lengths > 1)).any()


def _trimmed(array: Any) -> Any:
    """The cells without spaces and tabs around them."""
    from pyarrow import compute

    data = cell_memory(array)[0].tobytes()
    return compute.ascii_trim(array, " \t") if b" " in data or b"\t" in data else array


def _cast(array: Any, filled: npt.NDArray[np.bool_], kind: Kind) -> npt.NDArray[Any] | None:
    """Cells as int64 or float64, 0 for those that are not filled; None if one is not a number."""
    import pyarrow as pa

    dtype = pa.int64() if kind == "int64" else pa.float64()
    if not filled.any():
        return np.zeros(len(array), np.int64)
    _, ends, text = array.buffers()
    bits = pa.py_buffer(np.packbits(filled, bitorder="little"))
    cells = pa.StringArray.from_buffers(len(array), ends, text, bits, -1, 0)
    try:
        return cells.cast(dtype).fill_null(0).to_numpy()  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        return None


def cell_memory(array: Any) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """The bytes of a pyarrow.StringArray without nulls, and where each cell begins."""
    if not len(array):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return content[ends[0] : ends[-1]], ends.astype(np.int64) - int(ends[0])
