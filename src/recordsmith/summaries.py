"""Short descriptions of objects: a few lines in a console, a small table in a notebook.

Names of features, classes and files come from data, so control characters and HTML are escaped.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from recordsmith.words import first_of, printable

_LONGEST_NAME = 60
_NAMED = 6


class Summary(NamedTuple):
    """What an object is, and more about it in rows of name and text."""

    title: str
    rows: tuple[tuple[str, str], ...] = ()


class Summarized(ABC):
    """An object with a short `repr`, which notebooks show as a table."""

    @abstractmethod
    def _summary(self) -> Summary:
        """Return what `repr` shows."""

    def __repr__(self) -> str:
        title, rows = self._summary()
        lines = [f"{type(self).__name__}({printable(title)})"]
        return "\n".join(lines + [f"  {name}: {printable(text)}" for name, text in rows])

    def _repr_html_(self) -> str:
        title, rows = self._summary()
        body = "".join(
            f"<tr><th style='text-align: left'>{_escaped(name)}</th>"
            f"<td style='text-align: left'>{_escaped(text)}</td></tr>"
            for name, text in rows
        )
        heading = f"<b>{type(self).__name__}</b> {_escaped(title)}"
        return f"<div>{heading}</div><table>{body}</table>" if body else f"<div>{heading}</div>"


def named(names: Iterable[str], most: int = _NAMED) -> str:
    """List the first few names, each shortened if it is long."""
    return first_of([_short(name) for name in names], most)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _escaped(text: str) -> str:
    return html.escape(printable(text))
