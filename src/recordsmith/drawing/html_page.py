"""A report as one HTML file: where it may be written, its frame, and text of anybody's in it.

A page loads nothing and runs nothing: its style is in it, a policy in its head forbids the rest.
What comes from files (names, values, details) reaches it by `text` only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from recordsmith.drawing.page_style import STYLE
from recordsmith.errors import OptionError
from recordsmith.files import check_target, write_atomically
from recordsmith.words import printable

_HEAD = (
    '<meta charset="utf-8">\n'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)


def check_html_path(path: Path, *, overwrite: bool) -> None:
    """Raise what `check_target` raises, or OptionError if the name is not that of a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"{path} does not say its format; expected a name in .html")
    check_target(path, overwrite=overwrite)


def write_html(
    path: Path, title: str, style: str, parts: Iterable[str], *, overwrite: bool
) -> None:
    """Write a page, whole or not at all; `parts` are HTML, `title` is text.

    style: what this page has beside the style of all.
    """
    page = "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head>{_HEAD}',
            f"<title>{text(title)}</title><style>{STYLE}{style}</style></head><body><main>",
            *filter(None, parts),
            "</main></body></html>\n",
        ]
    )
    write_atomically(path, page.encode("utf-8", "backslashreplace"), overwrite=overwrite)


def cards(figures: Sequence[tuple[str, str]]) -> str:
    """What counts most, large: values and what they are."""
    each = (
        f'<div class="card"><b>{text(v)}</b><span>{text(name)}</span></div>' for v, name in figures
    )
    return f'<section class="cards">{"".join(each)}</section>'


def prose(words: str, most: int = 1500) -> str:
    """Sentences of ours, as `text`; what stands in backticks is shown as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(words, most))


def text(words: str, most: int = 1500) -> str:
    """Text of anybody's as HTML: escaped, of bearable length, control characters made visible."""
    cut = words if len(words) <= most else f"{words[: most - 1]}…"
    return escape(printable(cut), quote=True)
