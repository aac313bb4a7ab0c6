"""Short descriptions of objects: a few lines in a console, a small table in a notebook.

Names of features, classes and files come from data, so control characters and HTML are escaped.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import fields
from os import PathLike
from typing import Any, ClassVar, NamedTuple

from recordsmith.support.serialization import fields_to_json
from recordsmith.support.words import count as counted
from recordsmith.support.words import first_of, printable

_LONGEST_NAME = 60
_LONGEST_VALUE = 120
_NAMED = 6
_WRAPPER = textwrap.TextWrapper(
    100,
    initial_indent="  ",
    subsequent_indent="    ",
    break_long_words=False,
    break_on_hyphens=False,
)


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
        for name, text in rows:
            lines += _WRAPPER.wrap(f"{name}: {printable(text)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title, rows = self._summary()
        body = "".join(
            f"<tr><th style='text-align: left'>{_escaped(name)}</th>"
            f"<td style='text-align: left'>{_escaped(text)}</td></tr>"
            for name, text in rows
        )
        heading = f"<b>{type(self).__name__}</b> {_escaped(title)}"
        return f"<div>{heading}</div><table>{body}</table>" if body else f"<div>{heading}</div>"


class Report(Summarized):
    """A dataclass whose `repr` has its fields in one line, without defaults and long values."""

    _shown: ClassVar[tuple[str, ...]] = ()
    """Properties that `repr` shows as well, first."""

    def _summary(self) -> Summary:
        rows = [(name, _value(getattr(self, name))) for name in self._shown]
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            is_empty = value is None or (isinstance(value, (list, tuple, Mapping)) and not value)
            if not is_empty and value != field.default and field.name not in self._shown:
                rows.append((field.name, _value(value)))
        return Summary("", tuple(rows))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return fields_to_json(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text}" for name, text in self._summary().rows)
        return f"{type(self).__name__}({printable(shown)})"


def _value(value: Any) -> str:
    """Write a value as Python does if it is short, otherwise as the number of items."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, PathLike):
        return repr(str(value))
    if isinstance(value, (list, tuple, Mapping)):
        items = value.values() if isinstance(value, Mapping) else value
        if all(isinstance(item, (str, int, float)) for item in items) and len(items) <= _NAMED:
            text = repr(value)
            if len(text) <= _LONGEST_VALUE:
                return text
        return f"<{counted(len(value), 'item')}>"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"<{type(value).__name__}>"


def named(names: Iterable[str], most: int = _NAMED) -> str:
    """List the first few names, each shortened if it is long."""
    return first_of([_short(name) for name in names], most)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _escaped(text: str) -> str:
    import html  # has a table of 2,000 names

    return html.escape(printable(text))
