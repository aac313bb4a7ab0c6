"""Completions of a condition: features, values that occur, and words of the grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MAX_COMPLETIONS = 40
_WORD = re.compile(r"[\w/.:\-]+")
_TOKEN = re.compile(r"`[^`]*(`|$)|\"(?:[^\"\\]|\\.)*(\"|$)|[\w/.:\-]+|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_/.:\-]*")
_COMPARED = re.compile(
    r"(`[^`]+`|[A-Za-z_][\w/.:\-]*)\s*(?:==|!=|<=?|>=?|(?:not\s+)?in\s*\((?:[^()]*,)?)\s*$"
)
_WORDS = ("and", "or", "not", "in", "has(", "missing(", "len(", "all(")


def complete(
    text: str,
    cursor: int,
    features: Mapping[str, str],
    values: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return what may stand at a place of a condition.

    Args:
        features: the kind of each feature by name.
        values: the values that occur in a feature, with their texts.

    Returns:
        `start` and `end` of what is replaced, and `completions` with `text` and `detail`.
    """
    before = text[:cursor]
    start = _word_start(before)
    word = before[start:]
    compared = _COMPARED.search(before[:start])
    if compared is not None:
        key = compared[1].strip("`")
        pairs = list(_values(word.strip('"'), values.get(key, ())))
    else:
        pairs = list(_features(word.strip('`"'), features))
        pairs += [(known, "") for known in _WORDS if word and known.startswith(word)]
    completions = [{"text": shown, "detail": detail} for shown, detail in pairs[:_MAX_COMPLETIONS]]
    return {"start": start, "end": cursor, "completions": completions}


def _word_start(before: str) -> int:
    """Where the unfinished word at the end of a text begins: a name, or an open quote."""
    tokens = list(_TOKEN.finditer(before))
    if not tokens or tokens[-1][1] or tokens[-1][2]:
        return len(before)
    is_word = tokens[-1][0][0] in '`"' or _WORD.fullmatch(tokens[-1][0])
    return tokens[-1].start() if is_word else len(before)


def _features(word: str, features: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    lower = word.lower()
    matching = [key for key in features if lower in key.lower()]
    matching.sort(key=lambda key: (not key.lower().startswith(lower), key))
    for key in matching:
        if "`" not in key:
            yield key if _PLAIN.fullmatch(key) else f"`{key}`", features[key]


def _values(word: str, values: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for value in values:
        literal, text = value["literal"], value["text"]
        if word.lower() in literal.lower() or word.lower() in text.lower():
            detail = "" if literal in (text, f'"{text}"') else f"{text}, "
            yield literal, f"{detail}{value['count']:,}"
