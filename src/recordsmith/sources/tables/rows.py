"""Rows from Python: any iterable of dicts, or of (context, feature lists) pairs.

The iterable is consumed once, at the first listing: encoded rows are kept in a temporary file, so a
generator of any length takes little memory and can be shuffled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from recordsmith.arrow import ArrowStream
from recordsmith.buffers import offsets_from_lengths
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.example import (
    Kind,
    Schema,
    SchemaSurvey,
    encode_example,
    encode_sequence_example,
)
from recordsmith.sources.numbered import RowNames, SampleTable
from recordsmith.sources.problems import Fault, join_names, join_problems
from recordsmith.sources.source import Listing, Note, Sample, ignore_note
from recordsmith.sources.tables.categories import (
    CategoryColumn,
    as_labels,
    as_splits,
    category_text,
    missing_notice,
)
from recordsmith.sources.tables.encoded_rows import EncodedRows, memory_error, referenced_row

Row: TypeAlias = Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Iterable[Any]]]

_BATCH_ROWS = 1024
_MAX_FAILURES = 1000
_EXPECTED = "expected a dict of values by name, or a pair (context, feature lists)"


class Rows:
    """The rows of an iterable; a dict becomes an Example, a pair a SequenceExample.

    A row that cannot be encoded stays in the listing and fails when it is read. A key with ints in
    some rows and floats in others needs `kinds`.

    Example:
        >>> rs.pack(rs.Rows({"x": [n, 1.5 * n]} for n in range(100)), "packed")  # doctest: +SKIP
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
        self._rows = EncodedRows()
        self._label_types: set[type] = set()
        self._forms: set[bool] = set()  # whether rows are pairs

    def __repr__(self) -> str:
        return f"Rows({type(self._given).__name__})"

    def list_samples(self) -> Listing:
        """Encode all rows at the first call; later calls return the same listing.

        Raises:
            SourceError: there are no rows; a key has values of several kinds; no row has the key
                of split, group or label.
            FileAccessError: the temporary file cannot be written.
        """
        with self._lock:
            if self._listing is None:
                self._listing = self._list()
            return self._listing

    def describe(self) -> Mapping[str, Any]:
        options = {
            "split": self._split,
            "group": self._group,
            "label": self._label,
            "kinds": self._kinds or None,
        }
        return {"kind": "Rows"} | {k: v for k, v in options.items() if v is not None}

    def _list(self) -> Listing:
        marks = {
            name: CategoryColumn()
            for name in (self._split, self._group, self._label)
            if name is not None
        }
        survey = SchemaSurvey()
        for payloads in self._encode_rows(marks):
            lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
            data, offsets = b"".join(payloads), offsets_from_lengths(lengths)
            survey.update(data, offsets[:-1], lengths)
            self._rows.extend(data, offsets)
        self._rows.finish()
        if not len(self._rows):
            raise SourceError("no rows to pack: the iterable is empty or was already consumed")
        for name, column in marks.items():
            if not column.values:
                problems = [fault.problem for fault in self._rows.faults.values()]
                message = join_problems([f"no row has a value for {name!r}", *problems])
                raise SourceError(message, problems)
        schema = survey.finish()
        if len(self._forms) > 1:
            raise SourceError(
                "some rows are dicts and some are (context, feature lists) pairs; expected one type"
            )
        if not schema.is_complete:
            raise SourceError(f"cannot pack the rows: {schema.omission}")
        _check_kinds(schema)
        notices: list[str] = []
        labels = class_names = None
        if self._label is not None:
            column = marks[self._label]
            labels, class_names = as_labels(column, are_integers=str not in self._label_types)
            notices += missing_notice(column, self._label)
        splits = None if self._split is None else as_splits(marks[self._split])
        names = RowNames({"rows": len(self._rows)})
        samples = SampleTable(
            names,
            self._rows.sizes,
            labels=labels,
            splits=splits,
            groups=None if self._group is None else marks[self._group].coding(),
            version=self._rows.crc32c,
            references=names.reference,
        )
        reader = RowReader(self._rows, self._kinds)
        return Listing(
            samples, reader, class_names, tuple(notices), () if splits is None else tuple(splits[0])
        )

    def _encode_rows(self, marks: Mapping[str, CategoryColumn]) -> Iterator[list[bytes]]:
        """Yield the payloads of all rows in batches; empty for a row that cannot be encoded."""
        payloads: list[bytes] = []
        faults = self._rows.faults
        for number, row in enumerate(self._given):
            payload = b""
            try:
                context = _context(row)
                payload = _encode(row, self._kinds)
                self._forms.add(isinstance(row, tuple))
                self._mark(context, marks)
            except (OptionError, TypeError) as error:
                faults[number] = Fault(f"row {number}: {error}")
                for column in marks.values():
                    column.append(None)
                if len(faults) == _MAX_FAILURES:
                    problems = [fault.problem for fault in faults.values()]
                    raise SourceError(
                        f"{_MAX_FAILURES} of the first {number + 1} rows cannot be encoded, such "
                        f"as {problems[0]}",
                        problems,
                    ) from None
            payloads.append(payload)
            if len(payloads) == _BATCH_ROWS:
                yield payloads
                payloads = []
        if payloads:
            yield payloads

    def _mark(self, context: Mapping[str, Any], marks: Mapping[str, CategoryColumn]) -> None:
        """Store the split, group and label of a row."""
        texts = {}
        for name in marks:
            value = context.get(name)
            use = "split" if name == self._split else "group or class"
            problem = f"{name!r} is {value!r:.40}, which is not a valid {use}"
            try:
                texts[name] = category_text(value)
            except TypeError:
                raise TypeError(problem) from None
            if texts[name] is None and name == self._split:
                raise TypeError(problem)
        for name, text in texts.items():
            marks[name].append(text)
            if name == self._label and text is not None:
                self._label_types.add(str if isinstance(context[name], (str, bytes)) else int)


class RowReader:
    """Reads encoded rows that exist only in this process."""

    def __init__(self, rows: EncodedRows, kinds: Mapping[str, Kind]) -> None:
        self._rows = rows
        self._kinds = kinds

    def read(self, sample: Sample, note: Note = ignore_note) -> bytes:
        """Read the payload of one row."""
        return self._rows.read(referenced_row(sample))

    def frames(self) -> EncodedRows:
        """The rows as records, which `pack` copies."""
        return self._rows

    def kinds(self) -> Mapping[str, Kind]:
        return self._kinds

    def to_json(self) -> dict[str, Any]:
        raise memory_error()


def _encode(row: Any, kinds: Mapping[str, Kind]) -> bytes:
    if isinstance(row, tuple):
        return encode_sequence_example(row[0], row[1], kinds)
    return encode_example(row, kinds)


def _context(row: Any) -> Mapping[str, Any]:
    """The features of a row outside feature lists."""
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple) and len(row) == 2 and all(isinstance(part, Mapping) for part in row):
        return row[0]  # type: ignore[no-any-return]
    raise TypeError(f"found a {type(row).__name__}; {_EXPECTED}")


def _check_kinds(schema: Schema) -> None:
    """Refuse keys with values of several kinds."""
    mixed = [
        key
        for section in schema.sections.values()
        for key, feature in section.items()
        if feature.kind == "mixed"
    ]
    if mixed:
        kinds = dict.fromkeys(mixed, "float")
        raise SourceError(
            f"values of several kinds in {join_names(mixed)}; expected one kind in all rows",
            [f"{key!r} has values of several kinds" for key in mixed],
            remedy=f"If they are numbers, pass {option('kinds', kinds)} to store floats.",
        )
