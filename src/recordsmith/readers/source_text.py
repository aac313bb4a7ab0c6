"""Python source: literals, comments, dicts. Texts from files are untrusted."""

from __future__ import annotations

from collections.abc import Iterable

from recordsmith.words import printable

_LONGEST_COMMENT = 200


def literal(value: str | bytes) -> str:
    """The `repr` of a str or bytes, in double quotes if it contains none."""
    text = repr(value)
    prefix, body = ("b", text[1:]) if isinstance(value, bytes) else ("", text)
    if body[0] == '"' or '"' in body:
        return text
    return f'{prefix}"{body[1:-1]}"'


def comment(*parts: str) -> str:
    """A comment in one line, `  # this; and that`, or empty; parts may hold any characters."""
    text = printable("; ".join(filter(None, parts)))
    if len(text) > _LONGEST_COMMENT:
        text = text[: _LONGEST_COMMENT - 2] + " …"
    return f"  # {text}" if text else ""


def dict_lines(name: str, entries: Iterable[tuple[str, str, str]]) -> str:
    """A dict with one entry per line: key, expression of the value, and comment of each."""
    lines = [f"    {literal(key)}: {value},{note}" for key, value, note in entries]
    return "\n".join([f"{name} = {{", *lines, "}"]) if lines else f"{name} = {{}}"


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded as UTF-8, without surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
