"""JSON Lines: one object per line -> columns.

msgspec parses lines: like the standard library, it keeps every digit. The standard library reads
the lines that it refuses, and explains what is wrong. Null is left out; a nested object, or a list
of objects or lists, becomes JSON text. A key with integers in some rows and floats in others
becomes float.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import json_fault
from recordsmith.format.example import BytesArray, Kind, RaggedArray
from recordsmith.sources.files.text_file import TextFile
from recordsmith.sources.problems import count_notice, raise_problems
from recordsmith.sources.tables.table_rows import RowBatch, TableRows
from recordsmith.stores import Location
from recordsmith.support.buffers import offsets_from_lengths
from recordsmith.support.errors import SourceError, option
from recordsmith.support.problems import Problems

_BATCH_ROWS = 1 << 10  # measured: more rows exceed the cache
_SPARSITY = 16  # with so many missing values for each value, batches are small
_SPARSE_ROWS = 16
_decode = msgspec.json.Decoder().decode
_NESTED = object()  # kind of a value that becomes JSON text
_KINDS: dict[type, Any] = {
    int: "int64",
    bool: "int64",
    float: "float",
    str: "bytes",
    bytes: "bytes",
}
_TYPES: dict[Kind, set[type]] = {
    "int64": {int, bool},
    "float": {int, bool, float},
    "bytes": {str, bytes},
}
_NAMES = {"int64": "integers", "float": "numbers", "bytes": "text"}
_BASE64 = "base64"


class JsonRows(TableRows):
    """The rows of some files."""

    def __init__(
        self,
        paths: Sequence[Location],
        kinds: Mapping[str, Kind],
        *,
        required: Mapping[str, str],
        encoding: str,
    ) -> None:
        super().__init__(paths)
        self.keys = KeyKinds(kinds)
        self._required = required
        self._encoding = encoding

    def batches(self, number: int) -> Iterator[RowBatch]:
        text = TextFile(self.paths[number], self._encoding)
        has_rows = False
        for offset, line, block in text.lines():
            lines = io.StringIO(text.decoded(block, offset, line), newline="").readlines()
            for start in range(0, len(lines), _BATCH_ROWS):
                some = lines[start : start + _BATCH_ROWS]
                rows, numbers = _parse_lines(text.path, line + start, some)
                has_rows |= bool(rows)
                keys = set(chain.from_iterable(rows))
                is_sparse = len(keys) * len(rows) > _SPARSITY * max(1024, sum(map(len, rows)))
                size = _SPARSE_ROWS if is_sparse else _BATCH_ROWS
                for first in range(0, len(rows), size):
                    end = first + size
                    yield _JsonBatch(self, text.path, rows[first:end], numbers[first:end])
        if not has_rows:
            raise SourceError(
                "no rows: all lines are blank",
                path=text.path,
                remedy='Write one object such as {"x": 1} on each line.',
            )

    def notices(self) -> list[str]:
        notices: list[str] = []
        self._kinds, _ = self.keys.finish(notices)
        self.check_columns(self._required, self.keys.names)
        return notices


class _JsonBatch(RowBatch):
    """Some rows of one file, by key; None where a key is missing."""

    def __init__(
        self, table: JsonRows, path: Location, rows: Sequence[Any], lines: Sequence[int]
    ) -> None:
        super().__init__(table, path, lines)
        self._keys = table.keys
        keys = list(dict.fromkeys(chain.from_iterable(rows)))
        self._values: Mapping[str, Sequence[Any]]
        try:
            values = zip(*map(itemgetter(*keys, *keys[:1]), rows), strict=True)
            self._values = dict(zip(keys, values, strict=False))
        except (KeyError, TypeError):  # not all rows have all keys, or none has any
            self._values = {key: [row.get(key) for row in rows] for key in keys}

    def survey(self) -> bool:
        changed = [self._keys.update(*item, self.place) for item in self._values.items()]
        return any(changed)

    def values(self, name: str) -> Sequence[Any]:
        return self._values.get(name, ())

    def columns(self) -> tuple[dict[str, Any], dict[str, Any], dict[int, Problems]]:
        columns: dict[str, Any] = {}
        validity: dict[str, npt.NDArray[np.bool_]] = {}
        problems: dict[int, Problems] = {}
        for key, values in self._values.items():
            kind, is_text = self._keys.kind(key), self._keys.is_text(key)
            stored: Sequence[Any] = values
            try:
                if is_text:
                    stored = [None if value is None else as_text(value) for value in values]
                columns[key] = _column(stored, kind)
            except (TypeError, ValueError, OverflowError):
                stored = list(values)
                for row, value in enumerate(values):
                    try:
                        stored[row] = as_text(value) if is_text and value is not None else value
                        _column(stored[row : row + 1], kind)
                    except (TypeError, ValueError, OverflowError) as error:
                        stored[row] = None
                        problem = f"{key!r} is {value!r:.60}; {error}"
                        problems.setdefault(row, Problems()).add(problem)
                columns[key] = _column(stored, kind)
            if None in stored:
                validity[key] = np.array([value is not None for value in stored])
        if not columns:  # rows without values
            columns[""], validity[""] = np.zeros(len(self)), np.zeros(len(self), bool)
        return columns, validity, problems


def _column(values: Sequence[Any], kind: Kind) -> Any:
    """Values of one kind, or lists of them, as a column; anything for None."""
    if list in set(map(type, values)):
        lists = [
            () if value is None else value if type(value) is list else (value,) for value in values
        ]
        splits = offsets_from_lengths(list(map(len, lists)))
        return RaggedArray(flat_column(list(chain.from_iterable(lists)), kind), splits)
    nothing = b"" if kind == "bytes" else 0
    return flat_column([nothing if value is None else value for value in values], kind)


def flat_column(values: list[Any], kind: Kind) -> Any:
    """Values of one kind as a column; an error if one is of another kind."""
    if not set(map(type, values)) <= _TYPES[kind]:
        raise TypeError(f"expected {_NAMES[kind]}")
    if kind == "bytes":
        return BytesArray.from_values(list(map(_as_bytes, values)))
    if kind == "float":
        return np.array(values, np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise OverflowError("the number does not fit int64") from None


def _parse_lines(
    path: Location, first: int, lines: Sequence[str]
) -> tuple[list[dict[str, Any]], Sequence[int]]:
    """Parse lines of a file, of which the first has this number; return rows and their lines."""
    try:
        rows = list(map(_decode, lines))
        if set(map(type, rows)) == {dict}:
            return rows, range(first, first + len(lines))
    except (msgspec.MsgspecError, RecursionError):
        pass
    rows, numbers = [], list[int]()  # some lines are blank, or invalid
    for line, text in enumerate(lines, first):
        if not text.isspace():
            try:
                rows.append(_parse(text))
            except ValueError as error:
                raise SourceError(
                    str(error), path=path, line=line, remedy="Fix or remove the line."
                ) from None
            numbers.append(line)
    return rows, numbers


def _parse(text: str) -> dict[str, Any]:
    """Parse the object on one line."""
    try:
        row = json.loads(text.rstrip(), parse_float=_parse_float)
    except json.JSONDecodeError as error:
        start = text.strip()
        if start in ("[", "{") or start.startswith("[{"):
            raise ValueError(
                f"not JSON Lines: found {start[:20]!r}, expected one object per line without "
                "commas between them"
            ) from None
        raise ValueError(f"not valid JSON: {error.msg} (column {error.colno})") from None
    except OverflowError as error:
        raise ValueError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {json_fault(error)}") from None
    if not isinstance(row, dict):
        raise ValueError(  # noqa: TRY004 - the line is wrong, not an argument
            f'expected an object such as {{"x": 1}}, found {type(row).__name__} {row!r:.40}'
        )
    return row


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise OverflowError(f"{digits:.40} does not fit a 32-bit float")
    return number


# -- values, which other sources of JSON use as well -----------------------------------------------


class KeyKinds:
    """The kinds of the values of each key, with the first place of each.

    A key with an object, or with a list of objects, lists or null, becomes JSON text.
    """

    def __init__(self, declared: Mapping[str, Kind]) -> None:
        self._declared = declared
        self._seen: dict[str, dict[Any, str]] = {}
        self._known: set[tuple[str, type]] = set()

    def update(self, key: str, values: Sequence[Any], place: Callable[[int], str]) -> bool:
        """Consider the values of one key; return whether earlier ones are stored in another way."""
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

    def kind(self, key: str) -> Kind:
        """The kind of a key as far as it is known."""
        seen = self._seen.get(key, {})
        if key in self._declared:
            return self._declared[key]
        if not seen or "bytes" in seen or _NESTED in seen:
            return "bytes"
        return "float" if "float" in seen else "int64"

    def is_text(self, key: str) -> bool:
        """Whether some values of a key become JSON text."""
        others = self._seen.get(key, {}).keys() - {"bytes"}
        return _NESTED in others or (self._declared.get(key) == "bytes" and bool(others))

    def finish(self, notices: list[str]) -> tuple[dict[str, Kind], frozenset[str]]:
        """Return the kind of each key that has values, and the keys that become JSON text."""
        nested: list[str] = []
        mixed: list[str] = []
        problems = Problems()
        for key, seen in self._seen.items():
            if key in self._declared:
                continue
            if _NESTED in seen:
                nested.append(key)
            elif len(seen) > 1 and "bytes" in seen:
                places = " and ".join(
                    f"{'text' if kind == 'bytes' else 'a number'} in {place}"
                    for kind, place in seen.items()
                )
                problems.add(f"{key!r} is {places}")
            elif len(seen) > 1:
                mixed.append(key)
        raise_problems(
            problems,
            f"Use one type in all rows, or pass {option('kinds')} to store the key as bytes.",
        )
        notices += count_notice(mixed, "key", "with integers and floats stored as float")
        notices += count_notice(nested, "key", "with nested values stored as JSON text")
        keys = [key for key, seen in self._seen.items() if seen or key in self._declared]
        return {key: self.kind(key) for key in keys}, frozenset(filter(self.is_text, keys))


def as_text(value: Any) -> bytes:
    """A text as it is, and any other value as compact JSON."""
    return _as_bytes(value) if isinstance(value, (str, bytes)) else as_json_text(value)


def as_json_text(value: Any) -> bytes:
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
    return {_KINDS.get(value_type, _NESTED) for value_type in set(map(type, values))}
