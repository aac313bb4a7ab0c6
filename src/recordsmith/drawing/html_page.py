"""Write a report as one HTML file, and escape untrusted text.

A page loads and runs nothing: its style is inline, and a policy in its head forbids the rest. All
text from files (names, values, details) must pass through `text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from recordsmith.errors import OptionError
from recordsmith.stores import Location, write_atomically
from recordsmith.words import printable

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #667085; --paper: #f6f7f9;
  --card: #ffffff; --line: #e3e6eb; --good: #157049; --good-soft: #d9f2e6; --bad: #bb2731;
  --bad-soft: #fbdedf; --note: #8a5a10; --note-soft: #fbefd5;
  --bar: #4a7fb5; --unseen: #b4bac4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --quiet: #98a2b3; --paper: #14171c;
  --card: #1d2229; --line: #2d343e; --good: #3fc48c; --good-soft: #17392c; --bad: #ff6b70;
  --bad-soft: #4a2023; --note: #e0a94a; --note-soft: #3f3216;
  --bar: #6ea3d8; --unseen: #5b6370; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
header { display: flex; gap: 16px; align-items: center; flex-wrap: wrap; }
h1 { font-size: 26px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 40px 0 8px; }
h3 { font-size: 15px; margin: 0 0 6px; display: flex; gap: 8px; align-items: center; }
p { margin: 0 0 6px; }
code { font: 13px/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.quiet { color: var(--quiet); }
.verdict { margin: 0; padding: 3px 14px; border-radius: 999px; font-weight: 600; }
.verdict.good { background: var(--good-soft); color: var(--good); }
.verdict.bad { background: var(--bad-soft); color: var(--bad); }
.verdict.note { background: var(--note-soft); color: var(--note); }
.cards { display: flex; gap: 12px; flex-wrap: wrap; margin: 16px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 20px; min-width: 130px; }
.card b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; }
.card span { color: var(--quiet); font-size: 13px; }
.unchecked { padding-left: 20px; color: var(--note); }
.kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 12px; }
.kind { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--bad);
  border-radius: 10px; padding: 12px 16px; }
.kind p { font-size: 14px; }
.advice { color: var(--quiet); }
.badge { background: var(--bad-soft); color: var(--bad); border-radius: 999px; padding: 0 9px;
  font-size: 13px; }
table { width: 100%; border-collapse: collapse; background: var(--card); font-size: 14px;
  border: 1px solid var(--line); }
th { text-align: left; color: var(--quiet); font-weight: 500; }
th, td { padding: 8px 12px; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
"""


_HEAD = (
    '<meta charset="utf-8">\n'
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; "
    'img-src data:">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)


def check_html_path(path: Location, *, overwrite: bool) -> None:
    """Raise OptionError if the suffix is not .html or .htm, or as `check_target` does."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(option="out", value=str(path), expected="a file name ending in .html")
    path.check_target(overwrite=overwrite)


def write_html(
    path: Location, title: str, style: str, parts: Iterable[str], *, overwrite: bool
) -> None:
    """Write a page atomically."""
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


def paragraphs(sentences: str, most: int = 1500) -> str:
    """Escape our own sentences, and show parts in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(sentences, most))


def text(untrusted: str, most: int = 1500) -> str:
    """Escape untrusted text for HTML, shorten it, and make control characters visible."""
    cut = untrusted if len(untrusted) <= most else f"{untrusted[: most - 1]}…"
    return escape(printable(cut), quote=True)
