"""Format numbers, sizes and names for messages, tables and pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

_Sequence = TypeVar("_Sequence", bound=Sequence[Any])
_SIZE = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MAX_DEPTH = 10  # of folders in names that are compared
_MIN_SIMILARITY = 0.76  # one wrong letter of five, two swapped of five
_MAX_NAMES = 30
_MAX_KINDS_COMPARED = 10_000
_LONGEST_NAME = 80
_SIZE_UNITS = ("kB", "MB", "GB", "TB", "PB")
_NOTE = re.compile(r"([\w ]*?s)((?: (?:of|without) [\w ]+?)?) (were|are|have|had|lost|occur)\b(.*)")
_SINGULAR = {"were": "was", "are": "is", "have": "has", "occur": "occurs"}


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: 1 shard, 2,569 shards."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def note_text(number: int, sentence: str) -> str:
    """Return a note with its count: `41 JPEGs are progressive`, `1 image was resized`.

    Args:
        number: how many.
        sentence: begins with a noun in the plural and its verb.
    """
    match = _NOTE.fullmatch(sentence) if number == 1 else None
    if match is not None:
        nouns, which, verb, rest = match.groups()
        noun = nouns[:-2] if nouns.endswith("xes") else nouns[:-1]
        rest = rest.replace(" their ", " its ").replace(" with them", " with it")
        sentence = f"{noun}{which} {_SINGULAR.get(verb, verb)}{rest}"
    return f"{number:,} {sentence}"


def similar_name(typed: str, known: Iterable[str]) -> str | None:
    """Return the known name that was likely meant; None if each differs in too much.

    Upper and lower case, and the order of the letters of a short name (pakc), do not matter.
    """
    import difflib

    names = {name.lower(): name for name in known}
    similar = difflib.get_close_matches(typed.lower(), names, 1, _MIN_SIMILARITY)
    similar += [name for name in names if sorted(name) == sorted(typed.lower())]
    return names[similar[0]] if similar and typed else None


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return a question about the known name that was likely meant; empty if there is none."""
    similar = similar_name(typed, known)
    return f"Did you mean {similar!r}?" if similar else ""


def similar_key(name: str, known: Iterable[str]) -> str | None:
    """Return the key that was likely meant; None if each differs in too much.

    Keys of one folder are compared by what follows it: `image/class/text` is not a misspelled
    `image/class/label`.
    """
    # names come from files: they may be many and long
    likely = [key for key in known if len(key) <= 2 * len(name) + _MAX_NAMES]
    likely = likely[:_MAX_KINDS_COMPARED]
    folder, others = name if name.count("/") < _MAX_DEPTH else "/", likely
    while folder:  # from the folder of the name up: keys are compared by what follows it
        folder = folder.rstrip("/").rpartition("/")[0]
        folder += "/" * bool(folder)
        inside = {key.removeprefix(folder): key for key in others if key.startswith(folder)}
        if (similar := similar_name(name.removeprefix(folder), inside)) is not None:
            return inside[similar]
        others = [key for key in others if not key.startswith(folder)]
    last_parts = {key.rpartition("/")[2]: key for key in reversed(likely)}
    similar = similar_name(name, last_parts)
    return None if similar is None else last_parts[similar]


def suggest_names(name: str, known: Iterable[str], none: str) -> str:
    """Suggest a similar name, or list the first names; return `none` if there are none."""
    known = list(known)
    if (similar := similar_key(str(name), known)) is not None:
        return f"did you mean {similar!r}?"
    if not known:
        return none
    shown = [
        one
        if one and one.isprintable() and len(one) <= _LONGEST_NAME
        else f"{one!r:.{_LONGEST_NAME}}"
        for one in known[:_MAX_NAMES]
    ]
    more = f" and {len(known) - _MAX_NAMES:,} more" if len(known) > _MAX_NAMES else ""
    return f"available: {', '.join(shown)}{more}"


def parse_size(text: str) -> int | None:
    """Parse 256MB, 1.5 GiB or 500000 as a number of bytes; None if it is no size."""
    match = _SIZE.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        return None
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])


def percent(share: float) -> str:
    """Format a share: 42%; <1% instead of 0% if it is not 0."""
    return "<1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def first_of(names: Sequence[str], most: int) -> str:
    """List the first few names and the number of the others: a, b and 2,569 more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def shortened(text: str, most: int) -> str:
    """Shorten a long text in the middle, as names often differ at the end: photos/2…/0012.jpg."""
    if len(text) <= most:
        return text
    end = most // 2
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def size(size_bytes: float) -> str:
    """Format a size in bytes: 45.9 MB."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} byte{'' if size_bytes == 1 else 's'}"
    for unit in _SIZE_UNITS:  # noqa: B007 - used after the loop
        size_bytes /= 1000
        if size_bytes < 999.95:  # otherwise it rounds to 1000.0
            break
    return f"{size_bytes:.1f} {unit}"


def printable(text: str) -> str:
    """Escape control characters, which could move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def common_prefix(sequences: Iterable[_Sequence]) -> _Sequence:
    """Return the longest start that strings, or lists, have in common; without any, "".

    As `os.path.commonprefix`, which is deprecated in Python 3.15.
    """
    listed: list[Any] = list(sequences) or [""]
    first, last = min(listed), max(listed)
    for at, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:at]  # type: ignore[no-any-return]
    return first  # type: ignore[no-any-return]
