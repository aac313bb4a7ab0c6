"""Measures records of which some may be damaged, as an order needs it before it reads them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from recordsmith.dataset.column_file import Numbers, ShardColumn, record_counts, record_values
from recordsmith.dataset.dataset import Dataset, records_of
from recordsmith.dataset.shard_sequence import Faults
from recordsmith.format.example import FeatureSpec, decode_columns
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, OptionError

Measure: TypeAlias = Callable[[BytesLike, Int64Array, Int64Array], Any]
"""Called as `measure(buffer, starts, lengths)`; returns one value for each payload."""

_AT_ONCE = 16  # episodes are large


def measure_records(
    dataset: Dataset, measure: Measure, positions: Int64Array | None = None
) -> tuple[Int64Array, list[Any], Faults]:
    """Measure the intact ones of some records, at ascending positions; None for all.

    A record for which `measure` raises is damaged. Returns the positions of the intact records,
    their values, and the errors of the others by position, with file, record and offset.
    """
    records = records_of(dataset)
    chosen = np.arange(len(dataset)) if positions is None else positions
    intact: list[Int64Array] = [np.empty(0, np.int64)]
    values: list[Any] = []
    damaged: Faults = {}
    for begin in range(0, len(chosen), _AT_ONCE):
        some = chosen[begin : begin + _AT_ONCE]
        faults: Faults = {}
        payloads = records.read_records(some, faults=faults)
        while True:
            rows = np.delete(np.arange(len(some)), list(faults))
            try:
                measured = measure(payloads.buffer, payloads.offsets[rows], payloads.lengths[rows])
            except DataError as error:
                row = int(rows[error.record or 0])
                located = records.locate_record(int(some[row])).located(error)
                faults[row] = located.with_traceback(None)
            else:
                break
        intact.append(some[rows])
        values.append(measured)
        damaged |= {int(some[row]): error for row, error in faults.items()}
    return np.concatenate(intact), list(chain.from_iterable(values)), damaged


def readable_counts(dataset: Dataset, key: str) -> Numbers:
    """Return how many values of a feature each record has, as `record_counts`.

    A damaged record has one, so that what is made of the records meets it.
    """
    try:
        return record_counts(dataset, key)
    except CorruptDataError:
        spec = FeatureSpec(_known(dataset, key).kind, "ragged")
        positions, values, _ = measure_records(
            dataset, lambda *payloads: _column(key, spec, *payloads).lengths
        )
    counts = np.ones(len(dataset), np.int64)
    counts[positions] = values
    return counts


def readable_values(dataset: Dataset, key: str) -> ShardColumn:
    """Return the value of a feature of each record, as `record_values`.

    A record that cannot be read has the median of the others, so that what draws records meets it.
    """
    try:
        return record_values(dataset, key)
    except CorruptDataError as first:
        known = _known(dataset, key)
        if known.min_length > 1:
            raise OptionError(
                f"feature {key!r} has {known.min_length:,} and more values in a record",
                option="key",
                value=key,
                expected="the key of a feature with one value in each record",
            ) from None
        spec = FeatureSpec(known.kind, ())
        positions, values, damaged = measure_records(
            dataset, lambda *payloads: _column(key, spec, *payloads)
        )
        for error in damaged.values():
            if error.feature is not None:  # intact, but without exactly one value
                raise error from None
        if not len(positions):
            raise
        texts: tuple[str, ...] = ()
        if spec.kind == "bytes":
            try:
                decoded = [value.decode() for value in values]
            except UnicodeDecodeError:
                raise first from None
            texts = tuple(sorted(set(decoded)))
            number_of = {text: number for number, text in enumerate(texts)}
            values = [number_of[text] for text in decoded]
    found = np.array(values)
    numbers = np.full(len(dataset), np.sort(found)[len(found) // 2])
    numbers[positions] = found
    return ShardColumn(numbers, texts)


def _known(dataset: Dataset, key: str) -> Any:
    """Return the schema of a feature, whose kind `record_values` or `record_counts` has checked."""
    return dataset.view.preview_schema()[0].features[key]


def _column(
    key: str, spec: FeatureSpec, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> Any:
    return decode_columns(buffer, starts, lengths, {key: spec})[key]
