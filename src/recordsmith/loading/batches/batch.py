"""Makes batches of records: reads them, decodes their columns, fills the pixels.

A `BatchMaker` knows what a batch holds; a `BatchJob` makes one of them, in the three parts
of a job of `JobRunner`. Rows that are filtered or skipped are missing from their batch; the other
batches keep their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import RecordLocation
from recordsmith.format.example import BytesArray, Column, ColumnDecoder, FeatureSpec, valid_rows
from recordsmith.loading.batches.user_functions import (
    MappedRows,
    UserFunction,
    UserFunctions,
    accepts,
    calling,
    mapped_batch,
)
from recordsmith.loading.features.bytes import Text
from recordsmith.loading.features.feature import (
    BatchRows,
    Feature,
    ImageBuffer,
    ImageFeature,
    RandomNumbers,
    RowFeature,
    ValueFeature,
)
from recordsmith.loading.features.requests import AbsentKey
from recordsmith.loading.loader_stats import BatchCost
from recordsmith.loading.memory import Allocate, empty
from recordsmith.loading.order.inputs import FetchedRecords, RecordSource, bytes_read, fetch_records
from recordsmith.loading.order.schedule import EpochProgress, Step
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import DataError, option

_SKIP_REMEDY = f"Pass {option('skip_errors')} to skip up to that many damaged records."


class BatchResult(msgspec.Struct, frozen=True):
    """A batch that is ready.

    after: the progress of the loader after it.
    epoch, record_count: the epoch of its records, and how many it was made of.
    keys: which of the keys that are watched its records have.
    faults: the positions of records that were skipped, and their errors; the file and number of
        those that could not be read, so that a record counts once of which others are made.
    """

    batch: dict[str, Any]
    after: EpochProgress
    epoch: int
    record_count: int
    keys: frozenset[str]
    faults: tuple[tuple[object, DataError], ...]
    cost: BatchCost


class BatchMaker:
    """Makes batches of records; safe to use from several threads."""

    def __init__(
        self,
        records: RecordSource,
        features: Mapping[str, Feature],
        specs: Mapping[str, FeatureSpec],
        *,
        seed: int = 0,
        functions: UserFunctions | None = None,
        may_skip: bool = False,
        watched: dict[str, AbsentKey] | None = None,
    ) -> None:
        """`specs`: the columns to read, as `resolve_for_all` found them.

        watched: keys that records may not have; a `KeyWatch` removes those that it finds.
        """
        self.records = records
        self.watched = watched or {}
        self.value_features = {
            name: feature for name, feature in features.items() if isinstance(feature, ValueFeature)
        }
        self.row_features = _images_first(features)
        self.has_pixels = any(feature.has_pixels for feature in self.row_features.values())
        self.decodes_images = any(
            isinstance(feature, ImageFeature) and feature.raw_shape is None
            for feature in self.row_features.values()
        )
        self.ragged_texts = {
            name for name, feature in features.items()
            if isinstance(feature, Text) and feature.shape == "ragged"
        }  # fmt: skip
        self.names = tuple(name for key in features for name in features[key].outputs(key))
        self.normalisation = {
            name: digest for name, feature in features.items()
            if (digest := feature.scaling_digest()) is not None
        }  # fmt: skip
        self.seed = seed
        self.functions = functions or UserFunctions()
        self.may_skip = may_skip
        self._specs = dict(specs)
        copied = {
            key
            for feature in self.value_features.values()
            if feature.keeps_columns
            for key in feature.requests()
        }
        self._borrowed = {
            key for key, spec in specs.items() if spec.kind == "bytes" and key not in copied
        }  # such as images: used while the batch is made, and not kept
        self._presence_of = {
            key
            for feature in features.values()
            for key, request in feature.requests().items()
            if request is None
        }.union(self.watched)
        self._decoders: deque[ColumnDecoder] = deque()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_decoders": deque()}

    def make(self, step: Step) -> BatchResult:
        """Make one batch in this thread."""
        job = BatchJob(self, step)
        job.fill(0, job.begin())
        return job.finish()

    def decode(
        self, payloads: BytesArray, rows: Int64Array | None
    ) -> tuple[dict[str, Column], dict[str, Column]]:
        """Decode payloads, or the given rows of them: columns, and the presence of features."""
        try:
            decoder = self._decoders.pop()  # creating one is as slow as decoding some records
        except IndexError:
            decoder = ColumnDecoder(
                self._specs, borrowed=self._borrowed, presence_of=self._presence_of
            )
        starts, stops = payloads.offsets[:-1], payloads.offsets[1:]
        if rows is not None:
            starts, stops = starts[rows], stops[rows]
        decoder.append(payloads.buffer, starts, stops - starts)
        columns, validity = decoder.finish_with_validity()
        self._decoders.append(decoder)
        return columns, {key: valid_rows(validity, key, len(starts)) for key in self._presence_of}


class BatchJob:
    """One batch in the making."""

    def __init__(
        self,
        maker: BatchMaker,
        step: Step,
        allocate: Allocate = empty,
        fetched: FetchedRecords | None = None,
    ) -> None:
        """`fetched`: the records, if they were read before."""
        self._maker = maker
        self._fetched = fetched
        self._step = step
        random_numbers = RandomNumbers(maker.seed, step.epoch, step.places)
        self._rows = BatchRows(step.positions, random_numbers, allocate)
        self._faults: list[tuple[object, DataError]] = []
        self._keys: frozenset[str] = frozenset()
        self._values: dict[str, Column] = {}  # of the batch, without pixels
        self._mapped: MappedRows | None = None
        waited = 0.0 if fetched is None else fetched.seconds
        self._cost = BatchCost(record_count=len(step.positions), reading_seconds=waited)
        self._filled: list[tuple[float, float]] = []  # (decoding, functions), added by any thread

    # -- the three parts of the job ----------------------------------------------------------------

    def begin(self) -> int:
        """Read the records and decode everything but the pixels; return the number of rows."""
        maker, functions, cost = self._maker, self._maker.functions, self._cost
        begun = perf_counter()
        payloads, kept = self._read()
        read = perf_counter()
        self._decode(payloads, kept)
        decoded = perf_counter()
        cost.byte_count = len(payloads.buffer)
        cost.reading_seconds += read - begun
        cost.decoding_seconds = decoded - read
        if functions.filter is not None:
            self._filter()
            cost.function_seconds = perf_counter() - decoded
        rows = self._rows
        if functions.map_examples is not None and rows.count:
            self._mapped = MappedRows(functions.map_examples, self._locate)
        elif not maker.row_features:
            return 0
        begun = perf_counter()
        for name, feature in maker.row_features.items():
            rows.buffers[name] = feature.begin(name, rows)
        if rows.failures:
            self._check(min(rows.failures))
        cost.decoding_seconds += perf_counter() - begun
        return rows.count

    def fill(self, start: int, stop: int) -> None:
        """Decode the pixels of some rows and map them."""
        begun = perf_counter()
        failures = self._rows.failures
        for row in range(start, stop):
            for buffer in self._rows.buffers.values():
                if row not in failures:
                    try:
                        buffer.fill(row)
                    except DataError as error:
                        self._rows.fail(row, error)
                        self._check(row)
        filled = perf_counter()
        if self._mapped is not None:
            entries = self._entries()
            with calling(self._maker):
                for row in range(start, stop):
                    if row not in failures:
                        generator = self._generator("map_examples", row)
                        self._mapped.add(row, _example(entries, row), generator)
        self._filled.append((filled - begun, perf_counter() - filled))

    def finish(self) -> BatchResult:
        begun = perf_counter()
        maker, failures, cost = self._maker, self._rows.failures, self._cost
        for row in sorted(failures):
            self._check(row)
            position = int(self._rows.positions[row])
            self._faults.append((position, self._located(failures[row], row)))
        batch = self._entries()
        for buffer in self._rows.buffers.values():
            if isinstance(buffer, ImageBuffer):
                image_pixels, decoded_pixels = buffer.pixel_counts()
                cost.image_pixel_count += image_pixels
                cost.decoded_pixel_count += decoded_pixels
        row_count = self._rows.count - len(failures)
        if failures:
            kept = [row for row in range(self._rows.count) if row not in failures]
            batch = _rows_of(batch, np.array(kept, np.int64))
        batch = {name: batch[name] for name in maker.names}
        finished = perf_counter()
        map_batches = maker.functions.map_batches
        if row_count and self._mapped is not None:
            batch = self._mapped.columns(batch)
        if map_batches is not None and not row_count:
            map_batches = map_batches.without_rows()
        if map_batches is not None:
            batch = self._map_batch(map_batches, batch)
        cost.decoding_seconds += finished - begun + sum(decoding for decoding, _ in self._filled)
        cost.function_seconds += perf_counter() - finished
        cost.function_seconds += sum(functions for _, functions in self._filled)
        step, faults = self._step, tuple(self._faults)
        record_count = len(step.positions)
        return BatchResult(batch, step.after, step.epoch, record_count, self._keys, faults, cost)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self) -> tuple[BytesArray, Int64Array | None]:
        """Return the payloads, and which of them can be used; None for all."""
        maker, rows, fetched = self._maker, self._rows, self._fetched

        def allocate(byte_count: int) -> npt.NDArray[np.uint8]:
            return rows.allocate("", (byte_count,), np.uint8)

        if fetched is None and not maker.may_skip:
            try:
                payloads = maker.records.read_records(rows.positions, allocate)
            except DataError as error:
                raise _with_skip_remedy(error) from error.__cause__
            self._cost.read_byte_count = bytes_read(payloads)
            return payloads, None
        fetched = fetched or fetch_records(maker.records, rows.positions, allocate)
        payloads, faults, self._cost.read_byte_count, _ = fetched
        if not faults:
            return payloads, None
        if not maker.may_skip:
            fault = faults[min(faults)]
            raise _with_skip_remedy(copy(fault)) from fault.__cause__
        self._faults += [(self._record_of(row, faults[row]), faults[row]) for row in sorted(faults)]
        kept = np.delete(np.arange(rows.count), list(faults))
        self._select(kept)
        return payloads, kept

    def _decode(self, payloads: BytesArray, kept: Int64Array | None) -> None:
        """Decode columns and values of the payloads, and skip damaged ones if allowed."""
        maker, rows = self._maker, self._rows
        while True:
            try:
                rows.columns, rows.presence = maker.decode(payloads, kept)
                presence: Any = rows.presence
                self._keys = frozenset(key for key in tuple(maker.watched) if presence[key].any())
                for name, feature in maker.value_features.items():
                    columns = feature.values(rows)
                    self._values |= zip(feature.outputs(name), columns, strict=True)
            except DataError as error:
                row = error.record
                if row is None:
                    raise
                located = self._located(error, row)
                if not maker.may_skip:
                    raise _with_skip_remedy(located) from None
                self._faults.append((int(rows.positions[row]), located))
                rows.columns, self._values = {}, {}
                kept = np.arange(rows.count) if kept is None else kept
                self._select(np.delete(np.arange(len(kept)), row))
                kept = np.delete(kept, row)
            else:
                return

    def _select(self, kept: Int64Array) -> None:
        rows = self._rows
        rows.positions = rows.positions[kept]
        rows.random_numbers = rows.random_numbers.select(kept)
        rows.columns = _rows_of(rows.columns, kept)
        self._values = _rows_of(self._values, kept)

    # -- faults ------------------------------------------------------------------------------------

    def _check(self, row: int) -> None:
        """Raise the error of a row, unless its record may be skipped."""
        error = self._rows.failures[row]
        if not isinstance(error, DataError):
            raise error
        if not self._maker.may_skip:
            raise _with_skip_remedy(self._located(error, row)) from error.__cause__

    def _located(self, error: Exception, row: int) -> DataError:
        assert isinstance(error, DataError)
        return self._locate(row).located(error)

    def _record_of(self, row: int, error: DataError) -> object:
        """Return which record of a row is damaged: its file and number, or else its position."""
        try:
            first = self._locate(row)  # of which it is made, perhaps with others
        except DataError:  # the index of its shard cannot be built
            return int(self._rows.positions[row])
        return first[:2] if error.record is None else (error.path, error.record)

    def _locate(self, row: int) -> RecordLocation:
        return self._maker.records.locate_record(int(self._rows.positions[row]))

    # -- users' functions --------------------------------------------------------------------------

    def _filter(self) -> None:
        function = self._maker.functions.filter
        assert function is not None
        count, entries = self._rows.count, self._entries()
        with calling(self._maker):
            kept = []
            for row in range(count):
                example, generator = _example(entries, row), self._generator("filter", row)
                if accepts(function, example, generator, row, self._locate):
                    kept.append(row)
        self._cost.rejected_count = count - len(kept)
        if len(kept) < count:
            self._select(np.array(kept, np.int64))

    def _entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = dict(self._values)
        for buffer in self._rows.buffers.values():
            entries |= buffer.entries
        return entries

    def _generator(self, purpose: str, row: int | None = None) -> Callable[[], np.random.Generator]:
        return partial(self._rows.random_numbers.generator, purpose, row)

    def _map_batch(self, function: UserFunction, batch: dict[str, Any]) -> dict[str, Any]:
        step = self._step
        places = f"places {step.places[0]} to {step.places[-1]}" if len(step.places) else "no rows"
        with calling(self._maker):
            generator = self._generator("map_batches")
            return mapped_batch(function, batch, generator, f"epoch {step.epoch}, {places}")


def _with_skip_remedy(error: DataError) -> DataError:
    """Add how to skip the record to an error of `_located`, which is a copy."""
    error.advise(_SKIP_REMEDY)
    return error


def _example(entries: Mapping[str, Any], row: int) -> dict[str, Any]:
    return {name: column[row] for name, column in entries.items()}


def _images_first(features: Mapping[str, Feature]) -> dict[str, RowFeature]:
    """Return the row features: images, boxes, which may follow them, and what follows boxes."""
    row_features = {
        name: feature for name, feature in features.items() if isinstance(feature, RowFeature)
    }
    return dict(
        sorted(
            row_features.items(),
            key=lambda item: (not isinstance(item[1], ImageFeature), item[1].follows_boxes),
        )
    )


def _rows_of(columns: Mapping[str, Column], rows: Int64Array) -> dict[str, Any]:
    return {name: column[rows] for name, column in columns.items()}
