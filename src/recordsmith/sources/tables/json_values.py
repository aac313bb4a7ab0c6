"""JSON objects -> features: numbers, texts, lists of them; null is left out.

A nested object, or a list of objects, becomes JSON text. A key with integers in some rows and
floats in others becomes float in all.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from recordsmith.errors import Problems, option
from recordsmith.example import Kind
from recordsmith.sources.problems import count_notice, raise_problems
from recordsmith.sources.tables.precision import PrecisionLoss

_LIMIT = 2**63
_NESTED = object()  # kind of a value that becomes JSON text
_LISTS = object()  # kind of a list with lists in it
_KINDS: dict[type, Any] = {
    int: "int64",
    bool: "int64",
    float: "float",
    str: "bytes",
    bytes: "bytes",
}
_BASE64 = "base64"


class KindSurvey:
    """The kinds of the values of each key, with the first place of each."""

    def __init__(self, declared: Mapping[str, Kind], *, with_lists_as_text: bool = False) -> None:
        """`with_lists_as_text`: a list with lists in it becomes JSON text, and is not refused."""
        self._declared = declared
        self._seen: dict[str, dict[Any, str]] = {}
        self._known: set[tuple[str, type]] = set()
        self._with_lists_as_text = with_lists_as_text

    def update(self, row: Mapping[str, Any], place: str) -> bool:
        """Consider one more object; return whether a key has changed its kind."""
        changed = [self.update_column(key, (value,), lambda _: place) for key, value in row.items()]
        return any(changed)

    def update_column(self, key: str, values: Sequence[Any], place: Callable[[int], str]) -> bool:
        """Consider the values of one key in many objects; None where it is missing."""
        seen = self._seen.setdefault(key, {})
        before = seen.copy()
        for value_type in dict.fromkeys(map(type, values)):
            if value_type is list:
                lists = [value if type(value) is list else () for value in values]
                if not _value_kinds(list(chain.from_iterable(lists))) <= seen.keys():
                    for number, value in enumerate(lists):
                        for kind in _value_kinds(value) - seen.keys():
                            seen[kind] = place(number)
            elif (key, value_type) not in self._known and value_type is not type(None):
                self._known.add((key, value_type))
                kind = _KINDS.get(value_type, _NESTED)
                if kind not in seen:
                    seen[kind] = place(list(map(type, values)).index(value_type))
        return bool(before) and seen != before

    @property
    def names(self) -> list[str]:
        """Every key, in the order in which they appeared."""
        return list(self._seen)

    def fits(self, key: str, kind: Kind) -> bool:
        """Whether all values of a key are of a kind; integers are also floats."""
        return self._seen[key].keys() <= {kind, "int64" if kind == "float" else kind}

    def finish(self, notices: list[str]) -> tuple[dict[str, Kind], frozenset[str]]:
        """Return the kind of each key that has values, and the keys that become JSON text."""
        kinds: dict[str, Kind] = dict(self._declared)
        nested: list[str] = []
        mixed: list[str] = []
        problems = Problems()
        for key, seen in self._seen.items():
            if key in self._declared:
                continue
            if _LISTS in seen and not self._with_lists_as_text:
                problems.add(f"{seen[_LISTS]}: {key!r} has nested lists")
            elif _NESTED in seen or _LISTS in seen:
                kinds[key] = "bytes"
                nested.append(key)
            elif "bytes" in seen and len(seen) > 1:
                places = " and ".join(
                    f"{'text' if kind == 'bytes' else 'a number'} in {place}"
                    for kind, place in seen.items()
                )
                problems.add(f"{key!r} is {places}")
            elif seen:
                kinds[key] = "float" if "float" in seen else next(iter(seen))
                if len(seen) > 1:
                    mixed.append(key)
        raise_problems(
            problems,
            "Use one type in all rows (a flat list and its shape for a nested list), or pass "
            f"{option('kinds')} to store the key as bytes.",
        )
        notices += count_notice(mixed, "key", "with integers and floats stored as float")
        notices += count_notice(nested, "key", "with nested values stored as JSON text")
        declared = [
            key
            for key, kind in self._declared.items()
            if kind == "bytes" and self._seen.get(key, {}).keys() - {"bytes"}
        ]
        present = {key: kinds[key] for key in self._seen if key in kinds}
        return present, frozenset((*nested, *declared))


def json_features(
    row: Mapping[str, Any],
    kinds: Mapping[str, Kind],
    text_keys: frozenset[str],
    loss: PrecisionLoss,
    place: str,
) -> dict[str, Any]:
    """The features of one object."""
    features: dict[str, Any] = {}
    problems = Problems()
    for key, value in row.items():
        try:
            if key in text_keys and value is not None:
                features[key] = as_text(value)
            elif isinstance(value, list):
                features[key] = _flat(key, value, kinds.get(key), loss) if value else []
            elif value is not None:
                features[key] = _flat(key, [value], kinds.get(key), loss)[0]
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            problems.add(f"{place}: {key!r} is {value!r:.60}; {error}")
    raise_problems(problems)
    return features


def _flat(key: str, values: list[Any], kind: Kind | None, loss: PrecisionLoss) -> Any:
    """Values of one kind, checked."""
    if kind == "float":
        numbers = np.array(values, np.float64)
        wrong = loss.check(key, numbers)
        if wrong is not None:
            raise ValueError(f"{values[int(wrong.argmax())]!r} does not fit a 32-bit float")
        return numbers
    if kind != "int64":
        return list(map(_as_bytes, values))
    if not all(isinstance(value, int) for value in values):
        raise TypeError("expected integers")
    if not all(-_LIMIT <= value < _LIMIT for value in values):
        raise ValueError("the number does not fit int64")
    return np.array(values, np.int64)


def as_text(value: Any) -> bytes:
    """A text as it is, and any other value as compact JSON."""
    return _as_bytes(value) if isinstance(value, (str, bytes)) else as_json_text(value)


def as_json_text(value: Any) -> bytes:
    """A value as compact JSON."""
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), default=text_or_base64
    ).encode("utf-8", "surrogatepass")


def text_or_base64(value: bytes) -> str | dict[str, str]:
    """Bytes in JSON: their text, or {"base64": ...} if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {_BASE64: base64.b64encode(value).decode()}


def restore_base64(row: dict[str, Any]) -> None:
    """Replace each {"base64": ...} among the values, or in a list of such and texts, by its bytes.

    What is nested deeper, or is not base64, stays as it is.
    """
    for key, value in row.items():
        if type(value) is dict:
            row[key] = _restored(value)
        elif type(value) is list and dict in (types := set(map(type, value))):
            values = list(map(_restored, value)) if types <= {dict, str} else value
            if dict not in set(map(type, values)):
                row[key] = values


def _restored(value: Any) -> Any:
    if type(value) is dict and value.keys() == {_BASE64} and isinstance(value[_BASE64], str):
        try:
            return base64.b64decode(value[_BASE64], validate=True)
        except (ValueError, binascii.Error):
            return value
    return value


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _value_kinds(values: Sequence[Any]) -> set[Any]:
    """The kinds of what is in a list."""
    types = set(map(type, values))
    if dict in types or type(None) in types:
        return {_NESTED}
    if list in types:
        return {_LISTS}
    return {_KINDS[kind] for kind in types}
