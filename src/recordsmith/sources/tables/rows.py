"""Rows from Python: any iterable of dicts, or of (context, feature lists) pairs.

The iterable is consumed once, at the first listing: encoded rows are kept in a temporary file, so a
generator of any length takes little memory and can be shuffled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from recordsmith.dataset import ArrowStream
from recordsmith.format.example import Kind, SchemaSurvey, encode_example, encode_sequence_example
from recordsmith.sources.numbered import RowNames
from recordsmith.sources.problems import Fault, join_names
from recordsmith.sources.source import Listing
from recordsmith.sources.tables.categories import LabelColumn, RowMarks
from recordsmith.sources.tables.precision import PrecisionLoss
from recordsmith.sources.tables.table_reader import TableReader, table_files
from recordsmith.sources.tables.table_rows import RowBatch, TableRows, encode_table
from recordsmith.stores import as_location
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, SourceError, option

Row: TypeAlias = Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Iterable[Any]]]

_BATCH_ROWS = 1024
_MAX_FAILURES = 1000
_NAME = "rows"


class Rows:
    """The rows of an iterable; a dict becomes an Example, a pair a SequenceExample.

    A row that cannot be encoded stays in the listing and fails when it is read. A key with ints in
    some rows and floats in others needs `kinds`.

    Example:
        rs.pack(rs.Rows({"x": [n, 1.5 * n]} for n in range(100)), "packed")
    """

    def __init__(
        self,
        rows: Iterable[Row],
        *,
        kinds: Mapping[str, Kind] | None = None,
        split: str | None = None,
        group: str | None = None,
        label: str | None = None,
    ) -> None:
        """
        Args:
            rows: dicts with ints, floats, texts, bytes, lists of these or NumPy arrays (see
                `encode_example`), None for a missing value; or pairs of such a dict and one with
                the steps of each feature list (see `encode_sequence_example`).
            kinds: the kinds of some keys, instead of inferring them from values.
            split: the key of the row, or of its context, with its split.
            group: the key with its group: a patient, a video.
            label: the key with its class: an integer from 0, or a text; texts are sorted and
                numbered from 0. All three stay features.

        Raises:
            OptionError: `rows` is not an iterable of rows.
        """
        if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
            raise OptionError(option="rows", value=rows, expected="an iterable of rows")
        if isinstance(rows, ArrowStream):
            raise OptionError(
                f"a {type(rows).__name__} is a table, not an iterable of rows",
                option="rows",
                remedy="Pass it to recordsmith.Table.",
            )
        self._given = rows
        self._kinds = dict(kinds or {})
        self._split, self._group, self._label = split, group, label
        self._lock = threading.Lock()
        self._listing: Listing | None = None

    def __repr__(self) -> str:
        return f"Rows({type(self._given).__name__})"

    def list_samples(self) -> Listing:
        """Encode all rows at the first call; later calls return the same listing.

        Raises:
            SourceError: there are no rows; a key has values of several kinds; no row has the key
                of split, group or label, or a value is neither text nor an integer.
            FileAccessError: the temporary file cannot be written.
        """
        with self._lock:
            if self._listing is None:
                self._listing = self._list()
            return self._listing

    def describe(self) -> Mapping[str, Any]:
        marks = {"split": self._split, "group": self._group, "label": self._label}
        options = {**marks, "kinds": self._kinds or None}
        return {"kind": "Rows"} | {k: v for k, v in options.items() if v is not None}

    def _list(self) -> Listing:
        rows = _PythonRows(self._given, self._kinds)
        marks = RowMarks(self._split, self._group, LabelColumn(self._label))
        table = encode_table(rows, marks.columns(), required=self._split)
        notices = list(table.notices)
        marks.check(None, rows.problems)
        labels, class_names = marks.labels(rows.feature_kinds.get(self._label or ""), None, notices)
        samples = marks.samples(RowNames({_NAME: len(table.rows)}), table.rows, labels)
        reader = TableReader(rows.paths[0], (), columns=tuple(self._kinds.items()))
        return Listing(
            samples,
            reader.having(table_files([_NAME], rows.paths, table)),
            class_names,
            tuple(notices),
            () if samples.splits is None else tuple(samples.splits[0]),
        )


class _PythonRows(TableRows):
    """The rows of an iterable, which are read once."""

    unit = "row"

    def __init__(self, given: Iterable[Row], kinds: Mapping[str, Kind]) -> None:
        super().__init__([as_location(_NAME)])
        self._given = given
        self._kinds = dict(kinds)
        self.survey = SchemaSurvey()
        self.problems: list[str] = []
        self._forms: set[bool] = set()  # whether rows are pairs

    def batches(self, number: int) -> Iterator[RowBatch]:
        rows = iter(self._given)
        first = 0
        while some := list(islice(rows, _BATCH_ROWS)):
            yield _PythonBatch(self, self.paths[number], range(first, first + len(some)), some)
            first += len(some)
        if not first:
            raise SourceError("no rows to pack: the iterable is empty or was already consumed")

    def encoded(self, number: int, row: Any, faults: dict[int, Fault], index: int) -> bytes:
        """The payload of a row; empty, with a fault, if it cannot be encoded."""
        try:
            _context(row)
            self._forms.add(isinstance(row, tuple))
            if isinstance(row, tuple):
                return encode_sequence_example(row[0], row[1], self._kinds)
            return encode_example(row, self._kinds)
        except (OptionError, TypeError) as error:
            faults[index] = Fault(f"row {number}: {error}")
            self.problems.append(f"row {number}: {error}")
            if len(self.problems) == _MAX_FAILURES:
                raise SourceError(
                    f"{_MAX_FAILURES} of the first {number + 1} rows cannot be encoded, such as "
                    f"{self.problems[0]}",
                    self.problems,
                ) from None
            return b""

    def notices(self) -> list[str]:
        """Refuse rows of two forms, and keys with values of several kinds."""
        if len(self._forms) > 1:
            raise SourceError(
                "some rows are dicts and some are (context, feature lists) pairs; expected one type"
            )
        schema = self.survey.finish()
        if not schema.is_complete:
            raise SourceError(f"cannot pack the rows: {schema.omission}")
        sections = schema.sections.values()
        self.feature_kinds = {
            key: feature.kind for section in sections for key, feature in section.items()
        }
        if mixed := [key for key, kind in self.feature_kinds.items() if kind == "mixed"]:
            kinds = dict.fromkeys(mixed, "float")
            raise SourceError(
                f"values of several kinds in {join_names(mixed)}; expected one kind in all rows",
                [f"{key!r} has values of several kinds" for key in mixed],
                remedy=f"If they are numbers, pass {option('kinds', kinds)} to store floats.",
            )
        return []


class _PythonBatch(RowBatch):
    """Some rows, which are encoded one by one."""

    def __init__(self, table: _PythonRows, path: Any, lines: range, rows: Sequence[Any]) -> None:
        super().__init__(table, path, lines)
        self._table = table
        self._rows = rows

    def survey(self) -> bool:
        return False

    def values(self, name: str) -> list[Any]:
        return [context.get(name) for context in map(_context, self._rows)]

    def encode(self, loss: PrecisionLoss) -> tuple[Any, Int64Array, dict[int, Fault]]:
        faults: dict[int, Fault] = {}
        payloads = [
            self._table.encoded(number, row, faults, index)
            for index, (number, row) in enumerate(zip(self.lines, self._rows, strict=True))
        ]
        self._rows = [{} if index in faults else row for index, row in enumerate(self._rows)]
        lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
        data, offsets = b"".join(payloads), offsets_from_lengths(lengths)
        self._table.survey.update(data, offsets[:-1], lengths)
        return data, offsets, faults


def _context(row: Any) -> Mapping[str, Any]:
    """The features of a row outside feature lists."""
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple) and len(row) == 2 and all(isinstance(part, Mapping) for part in row):
        return row[0]  # type: ignore[no-any-return]
    raise TypeError(
        f"found a {type(row).__name__}; expected a dict of values by name, or a pair (context, "
        "feature lists)"
    )
