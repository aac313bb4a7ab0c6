"""How do records become a batch? Read them, decode their columns, fill the pixels, finish.

A `BatchMaker` knows what a batch is made of; a `Batch` is one of them while it is made, in the
three parts of an engine's job. Rows that a filter refuses or that are skipped for a fault are left
out of their batch: which records the others hold never changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import RecordLocation
from recordsmith.errors import CorruptDataError, FunctionError, OptionError
from recordsmith.example import BytesArray, Column, ColumnDecoder, FeatureSpec
from recordsmith.loading.draws import Draws
from recordsmith.loading.features import Feature, Filling, PixelFeature, Rows, ValueFeature
from recordsmith.loading.features.contract import empty
from recordsmith.loading.schedule import Progress, Step
from recordsmith.loading.sequential import HeldRecords
from recordsmith.loading.stats import Stopwatch

Example: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[Example], Any]
Map: TypeAlias = Callable[[dict[str, Any], np.random.Generator], Mapping[str, Any]]


class Records(Protocol):
    """Where records are read from, by position: a Dataset, or several of them mixed."""

    def read_records(self, positions: Int64Array) -> BytesArray:
        """The payloads at many positions."""

    def locate_record(self, position: int) -> RecordLocation:
        """Where a record lies."""


@dataclass(frozen=True)
class Changes:
    """What a user's functions do to examples and batches.

    filter: example -> whether it is kept; it sees the entries that are not pixels.
    map_examples: (example, generator) -> example; after its pixels are decoded.
    map_batches: (batch, generator) -> batch.
    """

    filter: Filter | None = None
    map_examples: Map | None = None
    map_batches: Map | None = None


@dataclass(frozen=True)
class Made:
    """A batch, where the loader is when it was handed out, and the errors of the records that
    were left out of it.
    """

    batch: dict[str, Any]
    after: Progress
    faults: tuple[CorruptDataError, ...]


class BatchMaker:
    """Makes batches of records. Used by several threads at once."""

    def __init__(
        self,
        records: Records,
        features: Mapping[str, Feature],
        specs: Mapping[str, FeatureSpec],
        *,
        seed: int = 0,
        changes: Changes = Changes(),
        may_skip: bool = False,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        """`specs`: what is read of the records, as `resolve_requests` answers."""
        self.records = records
        self.value_features = {
            name: feature for name, feature in features.items() if isinstance(feature, ValueFeature)
        }
        self.pixel_features = _leaders_first(features)
        self.names = tuple(name for key in features for name in features[key].outputs(key))
        self.seed = seed
        self.changes = changes
        self.may_skip = may_skip
        self.stopwatch = stopwatch or Stopwatch()
        self._specs = dict(specs)
        self._decoders: deque[ColumnDecoder] = deque()

    def batch(self, step: Step, held: HeldRecords | None = None) -> Batch:
        """A job that makes one batch; `held` are its records, if they were read before."""
        return Batch(self, step, held)

    def decode(self, payloads: BytesArray) -> dict[str, Column]:
        """The columns of some payloads, which lie end to end."""
        try:
            decoder = self._decoders.pop()  # making one costs as much as some records
        except IndexError:
            decoder = ColumnDecoder(self._specs)
        offsets = payloads.offsets
        decoder.append(payloads.buffer, offsets[:-1], offsets[1:] - offsets[:-1])
        columns = decoder.finish()
        self._decoders.append(decoder)
        return columns

    @contextmanager
    def blame(self, what: str, position: int | None = None) -> Iterator[None]:
        """Turn what a user's function raises into an error that says which record it was about."""
        try:
            yield
        except Exception as error:
            where = "" if position is None else f" for {self.records.locate_record(position)}"
            raise FunctionError(f"{what} raised {type(error).__name__}{where}: {error}") from error


class Batch:
    """One batch in the making."""

    def __init__(self, maker: BatchMaker, step: Step, held: HeldRecords | None = None) -> None:
        self._maker = maker
        self._records = held or maker.records
        if held is not None:
            maker.stopwatch.add("reading", held.seconds)
        self._step = step
        self._positions = step.positions
        self._draws = Draws(maker.seed, step.epoch, step.places)
        self._faults: list[CorruptDataError] = []
        self._columns: dict[str, Column] = {}  # of the records
        self._values: dict[str, Column] = {}  # of the batch, without pixels
        self._fillings: dict[str, Filling] = {}
        self._mapped: dict[int, Mapping[str, Any]] = {}

    # -- the three parts of the job ----------------------------------------------------------------

    def begin(self) -> int:
        """Read the records and make what needs no work row by row."""
        maker = self._maker
        with maker.stopwatch.timed("reading"):
            payloads = self._read()
        maker.stopwatch.count(len(self._positions), len(payloads.buffer))
        with maker.stopwatch.timed("decoding"):
            self._decode(payloads)
            for name, feature in maker.value_features.items():
                self._values |= feature.values(name, self._columns)
        if maker.changes.filter is not None:
            with maker.stopwatch.timed("your functions"):
                self._filter(maker.changes.filter)
        self._rows = Rows(len(self._positions), self._columns, self._draws, empty)
        with maker.stopwatch.timed("decoding"):
            for name, pixel_feature in maker.pixel_features.items():
                self._fillings[name] = pixel_feature.begin(name, self._rows)
                self._rows.fillings[name] = self._fillings[name]
        has_rows = self._fillings or maker.changes.map_examples is not None
        return len(self._positions) if has_rows else 0

    def fill(self, start: int, stop: int) -> None:
        """Do the work of some rows."""
        maker, failures = self._maker, self._rows.failures
        with maker.stopwatch.timed("decoding"):
            for row in range(start, stop):
                for filling in self._fillings.values():
                    if row not in failures:
                        try:
                            filling.fill(row)
                        except CorruptDataError as error:
                            self._rows.fail(row, error)
        if maker.changes.map_examples is not None:
            with maker.stopwatch.timed("your functions"):
                for row in range(start, stop):
                    if row not in failures:
                        self._mapped[row] = self._map_example(row, maker.changes.map_examples)

    def finish(self) -> Made:
        """The batch."""
        maker = self._maker
        for row in sorted(self._rows.failures):
            error = self._rows.failures[row]
            if not isinstance(error, CorruptDataError):
                raise error
            self._fault(self._located(error, row))
        with maker.stopwatch.timed("decoding"):
            batch = dict(self._values)
            for filling in self._fillings.values():
                batch |= filling.finish()
            if self._rows.failures:
                kept = [row for row in range(self._rows.count) if row not in self._rows.failures]
                batch = _rows_of(batch, np.array(kept, np.int64))
        batch = {name: batch[name] for name in maker.names}
        if maker.changes.map_examples is not None or maker.changes.map_batches is not None:
            with maker.stopwatch.timed("your functions"):
                if self._mapped:
                    batch = _stack([self._mapped[row] for row in sorted(self._mapped)])
                if maker.changes.map_batches is not None:
                    batch = self._map_batch(batch, maker.changes.map_batches)
        return Made(batch, self._step.after, tuple(self._faults))

    # -- reading -----------------------------------------------------------------------------------

    def _read(self) -> BytesArray:
        records = self._records
        try:
            return records.read_records(self._positions)
        except CorruptDataError:
            if not self._maker.may_skip:
                raise
        kept, pieces = [], []
        for row, position in enumerate(self._positions):
            try:
                pieces.append(records.read_records(position[np.newaxis]).buffer.tobytes())
                kept.append(row)
            except CorruptDataError as error:
                self._fault(error)
        self._select(np.array(kept, np.int64))
        return BytesArray.from_values(pieces)

    def _decode(self, payloads: BytesArray) -> None:
        while True:
            try:
                self._columns = self._maker.decode(payloads)
            except CorruptDataError as error:
                row = error.position
                if row is None:
                    raise
                self._fault(self._located(error, row))
                kept = np.delete(np.arange(len(self._positions)), row)
                self._select(kept)
                payloads = payloads[kept].packed()
            else:
                return

    def _select(self, rows: Int64Array) -> None:
        """Go on with some of the rows."""
        self._positions = self._positions[rows]
        self._draws = self._draws.select(rows)
        self._columns = _rows_of(self._columns, rows)
        self._values = _rows_of(self._values, rows)

    # -- faults ------------------------------------------------------------------------------------

    def _fault(self, error: CorruptDataError) -> None:
        """Skip a record, or stop at it."""
        if not self._maker.may_skip:
            raise error
        self._faults.append(error)

    def _located(self, error: CorruptDataError, row: int) -> CorruptDataError:
        """An error about a row, as one about its record."""
        location = self._maker.records.locate_record(int(self._positions[row]))
        return CorruptDataError(
            error.defect,
            error.detail,
            path=location.path,
            position=location.number,
            offset=location.offset,
        )

    # -- users' functions --------------------------------------------------------------------------

    def _filter(self, function: Filter) -> None:
        kept = []
        for row, position in enumerate(self._positions.tolist()):
            example = {name: column[row] for name, column in self._values.items()}
            with self._maker.blame("filter", position):
                if function(example):
                    kept.append(row)
        if len(kept) < len(self._positions):
            self._select(np.array(kept, np.int64))

    def _map_example(self, row: int, function: Map) -> Mapping[str, Any]:
        example = {name: column[row] for name, column in self._values.items()}
        for filling in self._fillings.values():
            example |= filling.example(row)
        position = int(self._positions[row])
        with self._maker.blame("map_examples", position):
            mapped = function(example, self._draws.generator("map_examples", row))
            if not isinstance(mapped, Mapping):
                raise OptionError(f"it answered {mapped!r:.50}; expected a dict")
        return mapped

    def _map_batch(self, batch: dict[str, Any], function: Map) -> dict[str, Any]:
        with self._maker.blame("map_batches"):
            mapped = function(batch, self._draws.generator("map_batches"))
            if not isinstance(mapped, Mapping):
                raise OptionError(f"it answered {mapped!r:.50}; expected a dict")
        return dict(mapped)


def _leaders_first(features: Mapping[str, Feature]) -> dict[str, PixelFeature]:
    """Those that have work for each row; what follows another comes after it."""
    pixels = {
        name: feature for name, feature in features.items() if isinstance(feature, PixelFeature)
    }
    return dict(
        sorted(pixels.items(), key=lambda item: item[1].leader(item[0], features) is not None)
    )


def _rows_of(columns: Mapping[str, Column], rows: Int64Array) -> dict[str, Any]:
    return {name: column[rows] for name, column in columns.items()}  # type: ignore[call-overload]


def _stack(examples: list[Mapping[str, Any]]) -> dict[str, Any]:
    """What `map_examples` answered, as a batch."""
    return {name: np.stack([example[name] for example in examples]) for name in examples[0]}
