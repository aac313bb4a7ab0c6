"""Parses the values of options: text as typed becomes what the functions take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from recordsmith.support import words
from recordsmith.support.errors import OptionError, option

_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.ASCII)
_MAX_NUMBERS = 1_000_000
_TOO_LARGE = 2**63
_PIXELS = re.compile(r"(\d{1,6})(?:x(\d{1,6}))?", re.ASCII)


def parse_size(text: str, name: str) -> int:
    """Parse 256MB or 1.5 GiB as a number of bytes; a number without a unit may mean anything.

    `name` is that of the option in Python, for errors, here and in the functions below.
    """
    size_bytes = words.parse_size(text)
    if size_bytes is None or text.rstrip()[-1:].isdecimal():
        raise OptionError(
            option=name, value=text, expected="a size with a unit, such as 256MB or 1GiB"
        )
    return size_bytes


def parse_number(text: str, name: str, kind: type[int | float], lowest: int | None) -> Any:
    """Parse a number of a kind, of at least `lowest`."""
    expected = "an integer" if kind is int else "a number"
    if lowest is not None:
        expected = "a positive integer" if lowest == 1 else f"{expected} of at least {lowest}"
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is not None and not abs(number) < _TOO_LARGE:  # also NaN
        number, expected = None, f"{expected} below 2**63"
    if number is None or (lowest is not None and number < lowest):
        raise OptionError(option=name, value=text, expected=expected)
    return number


def parse_pixels(text: str, name: str) -> int | tuple[int, int]:
    """Parse 224, or 192x256 as height and width."""
    match = _PIXELS.fullmatch(text)
    if match is None:
        raise OptionError(
            option=name, value=text, expected="a number, or height and width such as 192x256"
        )
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


def parse_share(text: str, name: str, expected: str = "a share such as 10% or 0.1") -> float:
    """Parse 10% or 0.1 as a share."""
    text = text.strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise OptionError(option=name, value=text, expected=expected) from None


def parse_shares(text: str, name: str) -> dict[str, float] | str:
    """Parse train=0.7,validation=0.3 as the share of each split; @FILE stays as it is."""
    if text.startswith("@"):
        return text
    expected = "shares that add up to 1, such as train=0.7,validation=0.3"
    pairs = parse_pairs(_listed(text), name, expected)
    return {split: parse_share(share, name, expected) for split, share in pairs.items()}


def parse_names(text: str, _name: str) -> list[str]:
    """Parse train,test as names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_name_lists(texts: list[str], name: str) -> list[str]:
    """Parse train,test and val as three names."""
    return [one for text in texts for one in parse_names(text, name)]


def parse_counts(text: str, name: str) -> int | dict[str, int]:
    """Parse 8, or train=8,validation=2, as the number for each split."""
    expected = "a number, or one for each split such as train=8,validation=2"
    pairs = parse_pairs(_listed(text), name, expected) if "=" in text else {"": text}
    try:
        counts = {split: int(number) for split, number in pairs.items()}
    except ValueError:
        raise OptionError(option=name, value=text, expected=expected) from None
    return counts.get("", counts)


def parse_keys(text: str, name: str) -> str | dict[str, str | None]:
    """Parse the name of a preset, or OLD=NEW,OLD= as new names by old ones; None drops one."""
    if "=" not in text:
        return text
    expected = "a preset, or new names such as image/encoded=image,image/filename="
    pairs = parse_pairs(_listed(text), name, expected, may_be_empty=True)
    return {old: new or None for old, new in pairs.items()}


def parse_pairs(
    texts: Iterable[str], name: str, expected: str = "OLD=NEW", *, may_be_empty: bool = False
) -> dict[str, str]:
    """Parse KEY=VALUE, which may be repeated, as values by key; the first = separates them."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals or not (value or may_be_empty):
            raise OptionError(option=name, value=text, expected=expected)
        if key in pairs:
            raise OptionError(f"{option(name)} contains {key!r} twice", option=name, value=text)
        pairs[key] = value
    return pairs


def parse_columns(texts: Iterable[str], name: str) -> dict[str, str]:
    """Parse FEATURE=COLUMN, which may be repeated; COLUMN is short for COLUMN=COLUMN."""
    pairs = (text if "=" in text else f"{text}={text}" for text in texts)
    return parse_pairs(pairs, name, "FEATURE=COLUMN")


def parse_values(texts: Iterable[str], name: str) -> dict[str, Any]:
    """Parse KEY=VALUE, which may be repeated, as values of features by key."""
    pairs = parse_pairs(texts, name, "KEY=VALUE")
    return {key: parse_value(text, name, key) for key, text in pairs.items()}


def parse_value(text: str, name: str, key: str) -> Any:
    """Parse 3, 0.5, [1,2] and "3" as JSON; other text is the value itself.

    Raises:
        OptionError: the JSON is not a valid feature, such as an object.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    items = value if isinstance(value, list) else [value]
    if all(type(item) in (int, float, str) for item in items):
        return value
    if not isinstance(value, (dict, list)):
        return text  # true, false and null are text
    what = "an object" if isinstance(value, dict) else "a list of other values"
    quoted = json.dumps(text, ensure_ascii=False)
    raise OptionError(
        f"{option(name)} {key} is {what}",
        option=name,
        value=text,
        expected="a number, text, or a list of these",
        remedy=f"To store it as text, put it in quotes: {quoted:.200}",
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def parse_colour(text: str, name: str) -> tuple[int, int, int]:
    """Parse white, black or #rrggbb as red, green and blue."""
    known = {"white": "#ffffff", "black": "#000000"}.get(text.lower(), text)
    if not re.fullmatch("#[0-9a-fA-F]{6}", known):
        raise OptionError(option=name, value=text, expected="white, black or #rrggbb")
    red, green, blue = bytes.fromhex(known[1:])
    return red, green, blue


def parse_numbers(text: str, name: str) -> list[int]:
    """Parse 3, or 0,2,5-9, as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise OptionError(option=name, value=text, expected="numbers such as 3 or 0,2,5-9")
        if last - first > _MAX_NUMBERS:
            raise OptionError(option=name, value=text, expected="at most a million numbers")
        numbers += range(first, last + 1)
    return numbers


def parse_positions(text: str, name: str = "at") -> list[int]:
    """Parse the numbers of --at, or those in a file: @positions.txt."""
    if not text.startswith("@"):
        return parse_numbers(text, name)
    from recordsmith.stores import read_document  # only when needed

    words = read_document(text[1:]).decode("utf-8", "replace").replace(",", " ").split()
    return parse_numbers(",".join(words), name)


def parse_without(text: str, name: str) -> str | list[int]:
    """Parse positions as --at; a file of findings is read later."""
    return text if names_findings(text) else parse_positions(text, name)


def names_findings(text: str) -> bool:
    """Return whether text names a file of findings: @findings.jsonl, not one of positions."""
    if not text.startswith("@"):
        return False
    from recordsmith.stores import as_location  # only when needed

    return as_location(text[1:]).read(0, 64).lstrip().startswith(b"{")


def parse_optional_numbers(text: str, name: str) -> list[int]:
    """Parse numbers, or nothing."""
    return parse_numbers(text, name) if text else []


def _listed(text: str) -> list[str]:
    """Split a=1, b=2 at commas, without the spaces around them."""
    return ["=".join(map(str.strip, part.split("=", 1))) for part in text.split(",")]
