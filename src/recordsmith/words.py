"""Numbers and names as people read them: in messages, tables and pages."""

from __future__ import annotations

from collections.abc import Sequence

_SIZE_UNITS = ("kB", "MB", "GB", "TB", "PB")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 shard, 2,569 shards."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first few of some names, and how many more there are: a, b and 2,569 more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def size(size_bytes: float) -> str:
    """A size in bytes as people say it: 45.9 MB."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} byte{'' if size_bytes == 1 else 's'}"
    for unit in _SIZE_UNITS:  # noqa: B007 - used after the loop
        size_bytes /= 1000
        if size_bytes < 999.95:  # else it would round to 1000.0
            break
    return f"{size_bytes:.1f} {unit}"


def printable(text: str, keep: str = "") -> str:
    """`text` with whatever could move a cursor written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in keep
        else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )
