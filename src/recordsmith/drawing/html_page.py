"""Write a report as one HTML file, and escape untrusted text.

A page loads and runs nothing: its style is inline, and a policy in its head forbids the rest. All
text from files (names, values, details) must pass through `text`.
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
    """Raise OptionError if the suffix is not .html or .htm, or as `check_target` does."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(option="out", value=str(path), expected="a file name ending in .html")
    check_target(path, overwrite=overwrite)


def write_html(
    path: Path, title: str, style: str, parts: Iterable[str], *, overwrite: bool
) -> None:
    """Write a page atomically.

    Args:
        title: plain text.
        style: CSS in addition to the common style.
        parts: HTML.
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
    """Cards with the main figures: (value, name)."""
    each = (
        f'<div class="card"><b>{text(v)}</b><span>{text(name)}</span></div>' for v, name in figures
    )
    return f'<section class="cards">{"".join(each)}</section>'


def prose(sentences: str, most: int = 1500) -> str:
    """Escape our own sentences, and show parts in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(sentences, most))


def text(untrusted: str, most: int = 1500) -> str:
    """Escape untrusted text for HTML, shorten it, and make control characters visible."""
    cut = untrusted if len(untrusted) <= most else f"{untrusted[: most - 1]}…"
    return escape(printable(cut), quote=True)
