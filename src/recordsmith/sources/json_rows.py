"""JSON Lines: one object per line -> columns, or rows one by one where values of a key differ.

The parser of the standard library is used because it keeps every digit.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.dataset.documents import json_fault
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import BytesArray, Kind, RaggedArray, encode_example
from recordsmith.sources.json_values import KindSurvey, as_json_text, json_features
from recordsmith.sources.problems import Fault
from recordsmith.sources.row_columns import category_texts
from recordsmith.sources.table_rows import LostDigits, RowBatch, encode_good
from recordsmith.sources.text_file import TextFile

_BATCH_ROWS = 1 << 13
_SPARSITY = 16  # with so many missing values for each value, rows are encoded one by one
_parse_object = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class JsonRows:
    """The rows of some files.

    kinds: by key, after all batches were surveyed; before that, of the keys until then.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        kinds: Mapping[str, Kind],
        *,
        wanted: Sequence[str] = (),
        encoding: str,
    ) -> None:
        """
        Args:
            kinds: of keys that are not inferred.
            wanted: keys that some row must have.
        """
        self.paths = paths
        self.unit = "line"
        self.class_names: Mapping[str, Sequence[str]] = {}
        self.image: str | None = None
        self._wanted = (*wanted, *kinds)
        self._survey = KindSurvey(kinds)
        self._encoding = encoding
        self.kinds: dict[str, Kind] = {}
        self._as_text: frozenset[str] = frozenset()
        self._is_current = False
        self._notices: list[str] = []

    def batches(self, number: int) -> Iterator[RowBatch]:
        """Parse one file.

        Raises:
            SourceError: it is not text in its encoding, or has no rows.
            FileAccessError: it cannot be read.
        """
        text = TextFile(self.paths[number], self._encoding)
        good_count = 0
        first: Fault | None = None
        for offset, line, block in text.lines():
            lines = io.StringIO(text.decoded(block, offset, line), newline="").readlines()
            for start in range(0, len(lines), _BATCH_ROWS):
                some = lines[start : start + _BATCH_ROWS]
                batch = _JsonBatch(self, number, line + start, some)
                good_count += len(batch.rows)
                first = first or next(iter(batch.faults.values()), None)
                if batch.count:
                    yield batch
        if not good_count:
            raise SourceError(
                first.problem if first else "no rows: all lines are blank",
                path=text.path,
                line=first.line if first else None,
                remedy='Write one object such as {"x": 1} on each line.',
            )

    def survey(self, batch: RowBatch) -> bool:
        """Consider the values of a batch; return whether a key has changed its kind."""
        assert isinstance(batch, _JsonBatch)
        columns = batch.columns()
        if columns is None:
            changed = [
                self._survey.update(row, batch.where(number))
                for number, row in enumerate(batch.rows)
            ]
        else:
            changed = [
                self._survey.update_column(key, values, batch.where)
                for key, values in columns.items()
            ]
        self._is_current = False
        try:
            self.settle()
        except SourceError:  # raised again by `notices`, with all problems
            return True
        return any(changed)

    def settle(self) -> tuple[Mapping[str, Kind], frozenset[str]]:
        """The kinds of the keys until now, and the keys that become JSON text."""
        if not self._is_current:
            self._notices = []
            self.kinds, self._as_text = self._survey.finish(self._place, self._notices)
            self._is_current = True
        return self.kinds, self._as_text

    def arrow_schema(self, _: LostDigits) -> None:
        """Text has no types."""

    def notices(self) -> list[str]:
        self.settle()
        for name in self._wanted:
            if name not in self._survey.keys:
                raise OptionError(
                    f"no row of {self.paths[0]} has the key {name!r}",
                    value=name,
                    expected=f"one of {', '.join(self._survey.keys)}",
                )
        return self._notices

    def _place(self, where: tuple[int, int]) -> str:
        """File and line; `where` has the number of the file and of the line."""
        return f"{self.paths[where[0]]}, line {where[1]}"


class _JsonBatch:
    """Some rows of one file; `rows` are those without faults."""

    def __init__(self, table: JsonRows, number: int, first: int, lines: Sequence[str]) -> None:
        """`first`: the number of the first line."""
        self._table = table
        self._number = number
        self.rows: list[dict[str, Any]] = []
        self.faults: dict[int, Fault] = {}
        good: list[int] = []
        self._lines: list[int] = []
        self._columns: dict[str, Sequence[Any]] | None = None
        self._is_sparse = False
        self._given = lines
        self._first = first
        for line, text in enumerate(lines, first):
            try:
                row, stop = _parse_object(text, 0)
                if type(row) is not dict or (stop < len(text) and not text[stop:].isspace()):
                    row = _parse(text)
            except (ValueError, StopIteration, RecursionError):
                if text.isspace():
                    continue
                try:
                    row = _parse(text)
                except ValueError as error:
                    path = str(table.paths[number])
                    self.faults[len(self._lines)] = Fault(str(error), path, line)
                    self._lines.append(line)
                    continue
            good.append(len(self._lines))
            self.rows.append(row)
            self._lines.append(line)
        self.count = len(self._lines)
        self._good = np.array(good, np.int64) if self.faults else None

    def columns(self) -> dict[str, Sequence[Any]] | None:
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

    def where(self, row: int) -> tuple[int, int]:
        """File and line of a row without a fault."""
        return self._number, self._lines[row if self._good is None else int(self._good[row])]

    def line(self, row: int) -> int:
        return self._lines[row]

    def category(self, name: str) -> Sequence[str | None]:
        try:
            values = category_texts([row.get(name) for row in self.rows])
        except TypeError as error:
            problem, row = error.args
            raise TypeError(f"in line {self.where(row)[1]}, {problem}") from None
        if self._good is None:
            return values
        found: list[str | None] = [None] * self.count
        for row, value in zip(self._good.tolist(), values, strict=True):
            found[row] = value
        return found

    def encode(self, lost: LostDigits) -> tuple[Any, Int64Array, Mapping[int, Fault]]:
        kinds, as_text = self._table.settle()
        encoded: dict[str, Any] = {}
        validity: dict[str, npt.NDArray[np.bool_]] = {}
        found = LostDigits()
        columns = self.columns()
        if columns is None:
            return self._encode_each(kinds, as_text, lost)
        try:
            for key, values in columns.items():
                if None in values:
                    validity[key] = np.array([value is not None for value in values])
                    if not validity[key].any():
                        del validity[key]
                        continue
                kind = "text" if key in as_text else kinds.get(key, "bytes")
                encoded[key] = _column(key, values, kind, found, self._row_place)
                if kind == "float":
                    self._check_infinities(encoded[key])
        except (TypeError, ValueError, AttributeError, OverflowError):
            return self._encode_each(kinds, as_text, lost)
        lost.extend(found)
        return *encode_good(encoded, validity, self._good, self.count), self.faults

    def _check_infinities(self, column: Any) -> None:
        """
        Raises:
            ValueError: a number of a column is infinite, but not in its line.
        """
        is_ragged = isinstance(column, RaggedArray)
        infinite = np.flatnonzero(np.isinf(column.values if is_ragged else column))
        if is_ragged:
            infinite = np.searchsorted(column.row_splits, infinite, side="right") - 1
        for row in dict.fromkeys(infinite.tolist()):
            _check_floats(self._text(row))

    def _text(self, row: int) -> str:
        """The line of a row without a fault."""
        return self._given[self.where(row)[1] - self._first]

    def _encode_each(
        self, kinds: Mapping[str, Kind], as_text: frozenset[str], lost: LostDigits
    ) -> tuple[Any, Int64Array, Mapping[int, Fault]]:
        """Encode the rows one by one, to find those that cannot be stored."""
        faults = dict(self.faults)
        payloads = [b""] * self.count
        good = range(self.count) if self._good is None else self._good.tolist()
        for at, (number, row) in enumerate(zip(good, self.rows, strict=True)):
            place = f"{self._table.paths[self._number]}, line {self._lines[number]}"
            try:
                found = json_features(row, kinds, as_text, partial(lost.note, place), place)
                if any(np.isinf(v).any() for v in found.values() if not _is_bytes(v)):
                    _check_floats(self._text(at))
                payloads[number] = encode_example(found, kinds)
            except (SourceError, OptionError) as error:
                faults[number] = Fault(str(error))
            except ValueError as error:
                faults[number] = Fault(f"{place}: {error}")
        return b"".join(payloads), offsets_from_lengths(list(map(len, payloads))), faults

    def _row_place(self, row: int) -> str:
        number, line = self.where(row)
        return f"{self._table.paths[number]}, line {line}"


def _column(key: str, values: Sequence[Any], kind: str, lost: LostDigits, place: Any) -> Any:
    """The values of a key as a column; anything for None.

    Raises:
        TypeError, ValueError, AttributeError, OverflowError: some values do not fit the kind.
    """
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
    """
    Raises:
        ValueError: a number in a JSON text exceeds the largest float.
    """

    def parse_float(digits: str) -> float:
        if np.isinf(float(digits)):
            raise ValueError(f"{digits:.40} does not fit a 32-bit float")
        return 0.0

    json.loads(text, parse_float=parse_float)


def _parse(text: str) -> dict[str, Any]:
    """Parse the object on one line.

    Raises:
        ValueError: the line is not a JSON object.
    """
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
