"""Pieces of Python source: literals, comments, dicts.

Texts come out of files, so they may hold anything. In code they stand as what `repr` makes of them;
in comments without a character that could end the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LONGEST_COMMENT = 200


def literal(value: str | bytes) -> str:
    """What `repr` makes of a text or bytes, between double quotes where it holds none."""
    text = repr(value)
    prefix, body = ("b", text[1:]) if isinstance(value, bytes) else ("", text)
    if body[0] == '"' or '"' in body:
        return text
    return f'{prefix}"{body[1:-1]}"'


def comment(*parts: str) -> str:
    """`  # this; and that`, or nothing; in one line, whatever the parts hold."""
    text = "; ".join(part for part in parts if part)
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )
    if len(text) > _LONGEST_COMMENT:
        text = text[: _LONGEST_COMMENT - 2] + " …"
    return f"  # {text}" if text else ""


def dict_lines(name: str, entries: Iterable[tuple[str, str, str]]) -> list[str]:
    """A dict with an entry in each line.

    Args:
        entries: of each the key, the expression of the value, and the comment.
    """
    lines = [f"    {literal(key)}: {value},{said}" for key, value, said in entries]
    return [f"{name} = {{", *lines, "}"] if lines else [f"{name} = {{}}"]


def list_lines(name: str, values: Sequence[str]) -> list[str]:
    """A list of expressions, in a line if it is short or has only one."""
    line = f"{name} = [{', '.join(values)}]"
    if len(values) == 1 or len(line) <= 88:
        return [line]
    return [f"{name} = [", *(f"    {value}," for value in values), "]"]


def is_utf8(text: str) -> bool:
    """Whether it can be written as UTF-8; keys and paths that were other bytes cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
