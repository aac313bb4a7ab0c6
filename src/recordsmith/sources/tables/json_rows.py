"""JSON Lines: one object per line -> columns, or rows one by one where values of a key differ.

msgspec parses lines: like the standard library, it keeps every digit. The standard library reads
the lines that it refuses, and explains what is wrong.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.dataset.documents import json_fault
from recordsmith.errors import OptionError, Problems, SourceError
from recordsmith.example import BytesArray, Kind, RaggedArray, encode_example
from recordsmith.sources.files.text_file import TextFile
from recordsmith.sources.problems import Fault
from recordsmith.sources.tables.json_values import KindSurvey, as_text, json_features
from recordsmith.sources.tables.precision import PrecisionLoss
from recordsmith.sources.tables.table_rows import RowBatch, TableRows
from recordsmith.stores import Location

_BATCH_ROWS = 1 << 10  # measured: more rows exceed the cache
_SPARSITY = 16  # with so many missing values for each value, rows are encoded one by one
_decode = msgspec.json.Decoder().decode


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
        self.keys = KindSurvey(kinds)
        self._required = required
        self._encoding = encoding
        self._text_keys: frozenset[str] = frozenset()
        self._is_current = False
        self._notices: list[str] = []

    def batches(self, number: int) -> Iterator[RowBatch]:
        """Parse one file."""
        text = TextFile(self.paths[number], self._encoding)
        has_rows = False
        for offset, line, block in text.lines():
            lines = io.StringIO(text.decoded(block, offset, line), newline="").readlines()
            for start in range(0, len(lines), _BATCH_ROWS):
                some = lines[start : start + _BATCH_ROWS]
                batch = _parse_lines(self, text.path, line + start, some)
                if len(batch):
                    has_rows = True
                    yield batch
        if not has_rows:
            raise SourceError(
                "no rows: all lines are blank",
                path=text.path,
                remedy='Write one object such as {"x": 1} on each line.',
            )

    def settle(self) -> tuple[Mapping[str, Kind], frozenset[str]]:
        """The kinds of the keys until now, and the keys that become JSON text."""
        if not self._is_current:
            self._notices = []
            self._kinds, self._text_keys = self.keys.finish(self._notices)
            self._is_current = True
        return self._kinds, self._text_keys

    def update(self, batch: _JsonBatch) -> bool:
        """Consider the rows of a batch; return whether a key has changed its kind."""
        self._is_current = False
        columns = batch.by_key()
        if columns is None:
            rows = enumerate(batch.rows)
            changed = [self.keys.update(row, batch.place(number)) for number, row in rows]
        else:
            changed = [self.keys.update_column(*item, batch.place) for item in columns.items()]
        return any(changed)

    def notices(self) -> list[str]:
        self.settle()
        self.check_columns(self._required, self.keys.names)
        return self._notices


class _JsonBatch(RowBatch):
    """Some rows of one file."""

    def __init__(
        self,
        table: JsonRows,
        path: Location,
        rows: list[dict[str, Any]],
        lines: Sequence[int],
    ) -> None:
        super().__init__(table, path, lines)
        self.rows = rows
        self._table = table
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

    def columns(self) -> tuple[dict[str, Any], dict[str, Any], dict[int, Problems]]:
        kinds, text_keys = self._table.settle()
        by_key = self.by_key()
        if by_key is None:
            raise ValueError("sparse rows have no columns")
        columns: dict[str, Any] = {}
        validity: dict[str, npt.NDArray[np.bool_]] = {}
        for key, values in by_key.items():
            kind = kinds.get(key, "bytes")
            if None in values:
                valid = np.array([value is not None for value in values])
                if not valid.any():
                    continue
                validity[key] = valid
            if key in text_keys:
                texts = [b"" if value is None else as_text(value) for value in values]
                columns[key] = BytesArray.from_values(texts)
            elif self._table.keys.fits(key, kind):
                columns[key] = _column(values, kind)
            else:
                raise ValueError("some values are of another kind")
        return columns, validity, {}

    def encode(self, loss: PrecisionLoss) -> tuple[Any, Int64Array, dict[int, Fault]]:
        try:
            return super().encode(loss)
        except (TypeError, ValueError, OverflowError):  # before `loss` has any of these rows
            return self._encode_one_by_one(loss)

    def _encode_one_by_one(self, loss: PrecisionLoss) -> tuple[Any, Int64Array, dict[int, Fault]]:
        """Encode each row, to find those that cannot be stored."""
        kinds, text_keys = self._table.settle()
        faults = {}
        payloads = [b""] * len(self)
        for number, row in enumerate(self.rows):
            place = self.place(number)
            try:
                features = json_features(row, kinds, text_keys, loss, place)
                payloads[number] = encode_example(features, kinds)
            except (SourceError, OptionError) as error:
                faults[number] = Fault(str(error))
            except ValueError as error:
                faults[number] = Fault(f"{place}: {error}")
        return b"".join(payloads), offsets_from_lengths(list(map(len, payloads))), faults

    def by_key(self) -> dict[str, Sequence[Any]] | None:
        """The value of each key in the rows; None where it is missing.

        Without columns if most keys are missing in most rows, as where identifiers are keys.
        """
        if self._columns is None and not self._is_sparse:
            keys = list(dict.fromkeys(chain.from_iterable(self.rows)))
            try:
                values = zip(*map(itemgetter(*keys, *keys[:1]), self.rows), strict=True)
                self._columns = dict(zip(keys, values, strict=False))
            except (KeyError, TypeError):  # not all rows have all keys, or none has any
                max_values = _SPARSITY * max(_BATCH_ROWS, sum(map(len, self.rows)))
                if len(keys) * len(self.rows) > max_values:
                    self._is_sparse = True
                    return None
                self._columns = {key: [row.get(key) for row in self.rows] for key in keys}
        return self._columns


def _column(values: Sequence[Any], kind: Kind) -> Any:
    """Values of one kind, or lists of them, as a column; anything for None."""
    types = set(map(type, values)) - {type(None)}
    if list in types:
        if types != {list}:
            raise TypeError("lists and single values")
        splits = offsets_from_lengths([0 if value is None else len(value) for value in values])
        return RaggedArray(_flat(list(chain.from_iterable(filter(None, values))), kind), splits)
    nothing = "" if kind == "bytes" else 0
    return _flat([nothing if value is None else value for value in values], kind)


def _flat(values: list[Any], kind: Kind) -> Any:
    if kind == "bytes":
        return BytesArray.from_values(list(map(str.encode, values)))
    return np.array(values, np.int64 if kind == "int64" else np.float64)


def _parse_lines(table: JsonRows, path: Location, first: int, lines: Sequence[str]) -> _JsonBatch:
    """Parse lines of a file; `first` is the number of the first line."""
    try:
        rows = list(map(_decode, lines))
        if set(map(type, rows)) == {dict}:
            return _JsonBatch(table, path, rows, range(first, first + len(lines)))
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
    return _JsonBatch(table, path, rows, numbers)


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
