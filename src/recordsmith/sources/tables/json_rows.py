"""JSON Lines: one object per line -> columns, or rows one by one where values of a key differ.

msgspec parses lines, if it is installed: like the standard library, it keeps every digit.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.dataset.documents import json_fault
from recordsmith.errors import OptionError, Problems, SourceError
from recordsmith.example import BytesArray, Kind, RaggedArray, encode_example
from recordsmith.sources.files.text_file import TextFile
from recordsmith.sources.problems import Fault
from recordsmith.sources.tables.json_values import KindSurvey, Where, as_json_text, json_features
from recordsmith.sources.tables.table_rows import LostDigits, RowBatch, TableRows
from recordsmith.stores import Location

_BATCH_ROWS = 1 << 10  # measured: more rows exceed the cache
_SPARSITY = 16  # with so many missing values for each value, rows are encoded one by one
_FAULTS: tuple[type[Exception], ...] = (ValueError, RecursionError)
try:
    import msgspec
except ImportError:
    _decode: Callable[[str], Any] = json.loads
else:  # three times as fast; of what it refuses, json takes NaN and single surrogates
    _decode = msgspec.json.Decoder().decode
    _FAULTS += (msgspec.MsgspecError,)


class JsonRows(TableRows):
    """The rows of some files."""

    def __init__(
        self,
        paths: Sequence[Location],
        kinds: Mapping[str, Kind],
        *,
        wanted: Mapping[str, str],
        encoding: str,
    ) -> None:
        super().__init__(paths)
        self.seen = KindSurvey(kinds)
        self._wanted = wanted
        self._encoding = encoding
        self._as_text: frozenset[str] = frozenset()
        self._is_current = False
        self._notices: list[str] = []

    def batches(self, number: int) -> Iterator[RowBatch]:
        """Parse one file."""
        text = TextFile(self.paths[number], self._encoding)
        good_count = 0
        first: Fault | None = None
        for offset, line, block in text.lines():
            lines = io.StringIO(text.decoded(block, offset, line), newline="").readlines()
            for start in range(0, len(lines), _BATCH_ROWS):
                some = lines[start : start + _BATCH_ROWS]
                batch = _parsed(self, number, line + start, some)
                good_count += len(batch.rows)
                first = first or batch.first_fault
                if len(batch):
                    yield batch
        if not good_count:
            raise SourceError(
                first.problem if first else "no rows: all lines are blank",
                path=text.path,
                line=first.line if first else None,
                remedy='Write one object such as {"x": 1} on each line.',
            )

    def settle(self) -> tuple[Mapping[str, Kind], frozenset[str]]:
        """The kinds of the keys until now, and the keys that become JSON text."""
        if not self._is_current:
            self._notices = []
            self._kinds, self._as_text = self.seen.finish(self._place, self._notices)
            self._is_current = True
        return self._kinds, self._as_text

    def update(self, batch: _JsonBatch) -> bool:
        """Consider the rows of a batch; return whether a key has changed its kind."""
        self._is_current = False
        columns = batch.by_key()
        if columns is None:
            rows = enumerate(batch.rows)
            changed = [self.seen.update(row, batch.where(number)) for number, row in rows]
        else:
            found = columns.items()
            changed = [self.seen.update_column(key, each, batch.where) for key, each in found]
        return any(changed)

    def notices(self) -> list[str]:
        self.settle()
        self.check_columns(self._wanted, self.seen.keys)
        return self._notices

    def _place(self, where: Where) -> str:
        return f"{self.paths[where[0]]}, line {where[1]}"


class _JsonBatch(RowBatch):
    """Some rows of one file; `rows` are those without faults."""

    def __init__(
        self,
        table: JsonRows,
        number: int,
        rows: list[dict[str, Any]],
        lines: Sequence[int],
        faults: Mapping[int, str],
        given: Sequence[str],
    ) -> None:
        super().__init__(table, table.paths[number], lines, faults)
        self.rows = rows
        self.first_fault = next(iter(self._faults.values()), None)
        self._table = table
        self._number = number
        self._given = given
        self._columns: dict[str, Sequence[Any]] | None = None
        self._is_sparse = False

    def survey(self) -> bool:
        has_changed = self._table.update(self)
        try:
            self._table.settle()
        except SourceError:  # raised again by `notices`, with all problems
            return True
        return has_changed

    def values(self, name: str) -> Sequence[Any]:
        return [row.get(name) for row in self.rows]

    def columns(self, lost: LostDigits) -> tuple[Any, Any, Mapping[int, Problems]]:
        kinds, as_text = self._table.settle()
        encoded: dict[str, Any] = {}
        validity: dict[str, npt.NDArray[np.bool_]] = {}
        columns = self.by_key()
        if columns is None:
            raise ValueError("sparse rows have no columns")
        for key, values in columns.items():
            if None in values:
                validity[key] = np.array([value is not None for value in values])
                if not validity[key].any():
                    del validity[key]
                    continue
            kind = "text" if key in as_text else kinds.get(key, "bytes")
            encoded[key] = _column(key, values, kind, lost, self.place)
            if kind == "float":
                self._check_infinities(encoded[key])
        return encoded, validity, {}

    def encode(self, lost: LostDigits) -> tuple[Any, Int64Array, dict[int, Fault]]:
        found = LostDigits()
        try:
            encoded = super().encode(found)
        except (TypeError, ValueError, AttributeError, OverflowError):
            return self._encode_each(lost)
        lost.extend(found)
        return encoded

    def _check_infinities(self, column: Any) -> None:
        is_ragged = isinstance(column, RaggedArray)
        infinite = np.flatnonzero(np.isinf(column.values if is_ragged else column))
        if is_ragged:
            infinite = np.searchsorted(column.row_splits, infinite, side="right") - 1
        for number in dict.fromkeys(infinite.tolist()):
            _check_floats(self._text(number))

    def _text(self, number: int) -> str:
        """The line of a row without a fault."""
        return self._given[self.where(number)[1] - self.lines[0]]

    def _encode_each(self, lost: LostDigits) -> tuple[Any, Int64Array, dict[int, Fault]]:
        """Encode the rows one by one, to find those that cannot be stored."""
        kinds, as_text = self._table.settle()
        faults = dict(self._faults)
        payloads = [b""] * len(self)
        for number, row in enumerate(self.rows):
            place = self.place(number)
            try:
                found = json_features(row, kinds, as_text, lost, place)
                if any(np.isinf(v).any() for v in found.values() if not _is_bytes(v)):
                    _check_floats(self._text(number))
                payloads[self._row(number)] = encode_example(found, kinds)
            except (SourceError, OptionError) as error:
                faults[self._row(number)] = Fault(str(error))
            except ValueError as error:
                faults[self._row(number)] = Fault(f"{place}: {error}")
        return b"".join(payloads), offsets_from_lengths(list(map(len, payloads))), faults

    def by_key(self) -> dict[str, Sequence[Any]] | None:
        """The value of each key in the rows without faults; None where it is missing.

        Without columns if most keys are missing in most rows, as where identifiers are keys.
        """
        if self._columns is None and not self._is_sparse:
            keys = list(dict.fromkeys(chain.from_iterable(self.rows)))
            try:
                values = zip(*map(itemgetter(*keys, *keys[:1]), self.rows), strict=True)
                self._columns = dict(zip(keys, values, strict=False))
            except (KeyError, TypeError):  # not all rows have all keys, or none has any
                most_values = _SPARSITY * max(_BATCH_ROWS, sum(map(len, self.rows)))
                if len(keys) * len(self.rows) > most_values:
                    self._is_sparse = True
                    return None
                self._columns = {key: [row.get(key) for row in self.rows] for key in keys}
        return self._columns

    def where(self, number: int) -> Where:
        """The file and line of a row without a fault."""
        return self._number, self.lines[self._row(number)]


def _parsed(table: JsonRows, number: int, first: int, lines: Sequence[str]) -> _JsonBatch:
    """Parse lines of a file; `first` is the number of the first line."""
    rows = _objects(lines)
    if rows is not None:
        return _JsonBatch(table, number, rows, range(first, first + len(lines)), {}, lines)
    rows, found = [], list[int]()  # some lines are blank or have a fault
    faults: dict[int, str] = {}
    for line, text in enumerate(lines, first):
        if text.isspace():
            continue
        try:
            rows.append(_parse(text))
        except ValueError as error:
            faults[len(found)] = str(error)
        found.append(line)
    given = lines[found[0] - first :] if found else ()
    return _JsonBatch(table, number, rows, found, faults, given)


def _column(key: str, values: Sequence[Any], kind: str, lost: LostDigits, place: Any) -> Any:
    """The values of a key as a column; anything for None."""
    types = set(map(type, values)) - {type(None)}
    if kind == "text":
        texts = [
            b"" if v is None else v.encode() if type(v) is str else as_json_text(v) for v in values
        ]
        return BytesArray.from_values(texts)
    if types == {list}:
        splits = offsets_from_lengths([0 if value is None else len(value) for value in values])
        flat = list(chain.from_iterable(value for value in values if value))

        def place_of(at: int) -> str:
            return str(place(int(np.searchsorted(splits, at, side="right")) - 1))

        return RaggedArray(_flat(key, flat, kind, lost, place_of), splits)
    if list in types:
        raise TypeError("lists and single values")
    if None in values:
        values = [("" if kind == "bytes" else 0) if value is None else value for value in values]
    return _flat(key, values, kind, lost, place)


def _flat(key: str, values: Sequence[Any], kind: str, lost: LostDigits, place: Any) -> Any:
    """Values without None as an array."""
    if kind == "bytes":
        return BytesArray.from_values(list(map(str.encode, values)))
    types = set(map(type, values))
    if not types <= ({int, bool} if kind == "int64" else {int, float, bool}):
        raise TypeError("values of another type")
    if kind == "int64":
        return np.array(values, np.int64)
    numbers = np.array(values, np.float64)
    if lost.check(key, numbers, values.__getitem__, place) is not None:
        raise ValueError("a number does not fit a 32-bit float")
    return numbers


def _is_bytes(value: Any) -> bool:
    return isinstance(value[0] if isinstance(value, list) and value else value, bytes)


def _check_floats(text: str) -> None:

    def parse_float(digits: str) -> float:
        if np.isinf(float(digits)):
            raise ValueError(f"{digits:.40} does not fit a 32-bit float")
        return 0.0

    json.loads(text, parse_float=parse_float)


def _objects(lines: Sequence[str]) -> list[dict[str, Any]] | None:
    """The objects on some lines; None if a line is anything else."""
    try:
        rows = list(map(_decode, lines))
    except _FAULTS:
        return None
    return rows if all(type(row) is dict for row in rows) else None


def _parse(text: str) -> dict[str, Any]:
    """Parse the object on one line."""
    try:
        row = json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        found = text.strip()
        if found in ("[", "{") or found.startswith("[{"):
            raise ValueError(
                f"not JSON Lines: found {found[:20]!r}, expected one object per line without "
                "commas between them"
            ) from None
        raise ValueError(f"not valid JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {json_fault(error)}") from None
    if not isinstance(row, dict):
        raise ValueError(  # noqa: TRY004 - the line is wrong, not an argument
            f'expected an object such as {{"x": 1}}, found {type(row).__name__} {row!r:.40}'
        )
    return row
