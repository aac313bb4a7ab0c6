"""Cells of text: is a column of them whole numbers, numbers, or text?

All of its cells decide. What only looks like a number stays text: a code such as 007, a number that
no int64 holds, a telephone number with its +. Cells are looked at thousands at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from recordsmith.example import Kind

_LIMIT = 2**63

_INTEGER = r"-?(?:0|[1-9][0-9]{0,17})"  # surely within int64
_FLOAT = (
    r"(?:[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+[eE][+-]?[0-9]+"
    r"|[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?))"
)
_INTEGERS = re.compile(rf"(?:[ \t]*{_INTEGER}[ \t]*\n)*")
_NUMBERS = re.compile(rf"(?:[ \t]*(?:{_INTEGER}|{_FLOAT})[ \t]*\n)*")
_ONE_FLOAT = re.compile(_FLOAT)
_ONE_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")


class Column:
    """What is known of a column, over all files."""

    def __init__(self, name: str, declared: Kind | None) -> None:
        self.name = name
        self.declared = declared
        self.empty_count = 0
        self.filled_count = 0
        self.oddity = ""  # where it turned out to be text
        self._found: Kind | None = declared

    @property
    def kind(self) -> Kind:
        return self._found or "bytes"

    def update(self, cells: Sequence[str], places: Sequence[int], path: Path) -> None:
        """Consider more cells of it; `places` are the lines that they are on."""
        filled = cells
        if "" in cells:
            filled = [cell for cell in cells if cell]
            self.empty_count += len(cells) - len(filled)
        self.filled_count += len(filled)
        if self._found == "bytes" or self.declared or not filled:
            return
        joined = "\n".join(filled) + "\n"
        is_one_line_each = joined.count("\n") == len(filled)
        if is_one_line_each and _INTEGERS.fullmatch(joined):
            self._found = self._found or "int64"
        elif is_one_line_each and _NUMBERS.fullmatch(joined):
            self._found = "float"
        else:
            self._update_each(cells, places, path)

    def _update_each(self, cells: Sequence[str], places: Sequence[int], path: Path) -> None:
        for cell, line in zip(cells, places, strict=True):
            kind = cell_kind(cell)
            if kind == "bytes":
                if self._found is not None:
                    self.oddity = f"{path}, line {line}: {cell:.40}"
                self._found = "bytes"
                return
            if kind == "float" or self._found is None:
                self._found = kind or self._found


def cell_kind(cell: str) -> Kind | None:
    """What a cell is by itself; None if it is empty."""
    bare = cell.strip(" \t")
    if not bare:
        return None if not cell.strip() else "bytes"
    if _ONE_INTEGER.fullmatch(bare) and -_LIMIT <= int(bare) < _LIMIT:
        return "int64"
    return "float" if _ONE_FLOAT.fullmatch(bare) else "bytes"


def check_number(cell: str, kind: Kind) -> None:
    """Whether a cell is what its column was declared to be.

    Raises:
        ValueError: it does not fit.
    """
    bare = cell.strip()
    is_whole = bare.lstrip("+-").isascii() and bare.lstrip("+-").isdigit()
    if kind == "int64" and not is_whole:
        raise ValueError(f"{cell!r:.40} is not an integer")
    if kind == "int64" and not -_LIMIT <= int(bare[:30]) < _LIMIT:
        raise ValueError(f"{cell} does not fit int64; expected the kind bytes")
    if not is_whole and not _ONE_FLOAT.fullmatch(bare):
        raise ValueError(f"{cell!r:.40} is not a number")
