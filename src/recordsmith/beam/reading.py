"""Transforms that read a dataset, in ranges of records that runners divide."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker

from recordsmith.beam.elements import with_all_fields
from recordsmith.dataset import (
    DEFAULT_ROWS,
    ArrowDecoder,
    Dataset,
    LocatedBlock,
    Paths,
    SelectedRecords,
    ShardRange,
    columns_of,
    dataset_of,
    parse_where,
    records_of,
    records_of_part,
)
from recordsmith.format.example import Schema, SchemaSurvey, SequenceExample, decode_payload
from recordsmith.format.wire import RecordBlock
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import DataError, OptionError
from recordsmith.support.words import suggest_names

_BATCH_BYTES = 8 << 20  # of payloads in a batch: the smallest unit of a split
_BUNDLE_BYTES = 64 << 20  # of a range that a runner begins with; it may divide it again
_SHARDS_TOGETHER = 256  # in one element of the pipeline's graph, whose size runners limit


class ReadBatches(beam.PTransform):
    """Reads the examples of a dataset as `pyarrow.RecordBatch`es, in any order.

    Columns and types are those of `Dataset.to_arrow`. Runners divide uncompressed shards between
    batches, also while they are read; a compressed shard is read by one worker. Without a manifest,
    the workers read all records once more, for their schema.

    Example:
        with beam.Pipeline() as pipeline:
            batches = pipeline | ReadBatches("out", columns=["image/class/label"])
            batches | beam.Map(len) | beam.CombineGlobally(sum) | beam.Map(print)
    """

    def __init__(
        self,
        paths: Paths | Dataset,
        split: str | None = None,
        *,
        columns: Iterable[str] | None = None,
        filter: str | None = None,
        batch_size: int | None = None,
        restore_types: bool = False,
        store_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Open a dataset: names, sizes and manifest.

        Args:
            paths: as in `recordsmith.open`, on a disk or store that the workers share; or a
                Dataset, such as a slice of one.
            split: as in `recordsmith.open`.
            columns: feature names, in order; None for all.
            filter: a condition as in `Dataset.filter`; only records that match are decoded.
            batch_size: the number of records of each batch but the last of a shard, before the
                filter; None for up to 16,384 records or about 8 MiB.
            restore_types: whether columns have the types of the table that was packed; needs a
                manifest that has them.
            store_options: as in `recordsmith.open`. They become part of the pipeline, so leave
                credentials out: workers take them from their own environment.

        Raises:
            OptionError, FileAccessError, CorruptDataError: as `recordsmith.open`; or no record has
                a feature, if the manifest has a schema.
        """
        super().__init__()
        if batch_size is not None and batch_size < 1:
            raise OptionError(option="batch_size", value=batch_size, expected="a positive integer")
        dataset = dataset_of(paths, split, store_options=store_options)
        types = dataset.to_arrow(restore_types=True).schema if restore_types else None
        self._parts = _parts(dataset)
        self._stored = dataset.view.outer_schema
        self._request = _Request(_names(columns), filter, batch_size, dataset.class_names, types)
        self._request.check(self._stored)
        if self._stored is not None:
            self._request.decoder(self._stored)

    @property
    def schema(self) -> Any:
        """The pyarrow.Schema of the batches; None if there is no manifest."""
        return None if self._stored is None else self._request.decoder(self._stored).schema

    def expand(self, pbegin: Any) -> Any:
        """Add the transform to a pipeline."""
        parts = _each_part(pbegin, self._parts)
        if self._stored is not None:
            schemas = pbegin | "Schema" >> beam.Create([self._stored])
        else:
            schemas = parts | "Survey" >> beam.Map(_survey) | beam.CombineGlobally(Schema.merged)
        reader = beam.ParDo(_ReadBatches(self._request), beam.pvalue.AsSingleton(schemas))
        counted = parts | "Count" >> beam.FlatMap(_count, self._request.batch_size)
        return counted | "Read" >> reader.with_output_types(pa.RecordBatch)


class ReadExamples(beam.PTransform):
    """Reads the examples of a dataset as dicts of features, in any order.

    Examples are as in `Dataset[i]`: dicts of int64 arrays, float32 arrays and lists of bytes, or
    SequenceExamples. `ReadBatches` takes a fraction of the time.

    Example:
        with beam.Pipeline() as pipeline:
            examples = pipeline | ReadExamples("out")
            examples | beam.Map(lambda example: example["image/class/label"][0]) | beam.Map(print)
    """

    def __init__(
        self,
        paths: Paths | Dataset,
        split: str | None = None,
        *,
        columns: Iterable[str] | None = None,
        filter: str | None = None,
        store_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Arguments and errors as in `ReadBatches`."""
        super().__init__()
        dataset = dataset_of(paths, split, store_options=store_options)
        self._parts = _parts(dataset)
        self._request = _Request(_names(columns), filter)
        stored = dataset.view.outer_schema
        self._request.check(stored)
        self._is_flat = stored is not None and stored.payload == "Example"

    def expand(self, pbegin: Any) -> Any:
        """Add the transform to a pipeline."""
        counted = _each_part(pbegin, self._parts) | "Count" >> beam.FlatMap(_count, None)
        reader = beam.ParDo(_ReadExamples(self._request))
        return counted | "Read" >> reader.with_output_types(
            dict[str, Any] if self._is_flat else Any
        )


class _CountedRange(NamedTuple):
    """A part in steps: ranges of records that are read together.

    step_count: the number of steps that runners divide; one, if the shard is compressed.
    rows: the number of records of each step but the last.
    size_bytes: of a step, about.
    """

    part: ShardRange
    step_count: int
    rows: int
    size_bytes: int
    is_compressed: bool


@dataclass(frozen=True)
class _Request:
    """What workers decode. `types`: pyarrow.Schema with the types to restore."""

    columns: tuple[str, ...] | None
    where: str | None
    batch_size: int | None = None
    class_names: Sequence[str | None] | None = None
    types: Any = None

    def decoder(self, schema: Schema) -> ArrowDecoder:
        return ArrowDecoder(schema, self.columns, self.class_names, self.types)

    def check(self, schema: Schema | None) -> None:
        """Check the condition and, if the schema is known, that the features exist."""
        condition = None if self.where is None else parse_where(self.where)
        if schema is None or not schema.is_complete:
            return
        if condition is not None:
            condition.check(schema)
        known = columns_of(schema)
        for name in self.columns or ():
            if name not in known:
                hint = suggest_names(name, known, "records have no features")
                raise OptionError(
                    f"no record has a feature {name!r}; {hint}", option="columns", value=name
                )


def _names(columns: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(columns, str):
        raise OptionError(option="columns", value=columns, expected="a list of names")
    return None if columns is None else tuple(columns)


def _parts(dataset: Dataset) -> list[ShardRange]:
    return [part.portable() for part in records_of(dataset).in_file_order().parts()]


def _each_part(pbegin: Any, parts: Sequence[ShardRange]) -> Any:
    groups = [
        pickle.dumps(parts[start : start + _SHARDS_TOGETHER])
        for start in range(0, len(parts), _SHARDS_TOGETHER)
    ]
    each = beam.FlatMap(pickle.loads).with_output_types(ShardRange)
    return pbegin | "Shards" >> beam.Create(groups) | "Each" >> each | beam.Reshuffle()


@with_all_fields()
def _survey(part: ShardRange) -> Schema:
    survey = SchemaSurvey()
    for located in records_of_part(part).blocks():
        block = located.block
        with located.located():
            survey.update(block.buffer, block.starts, block.lengths)
    return survey.finish()


@with_all_fields()
def _count(part: ShardRange, batch_size: int | None) -> list[_CountedRange]:
    """Plan the steps of a part, unless it is empty; reads nothing if it is in a manifest."""
    shard, rows = part.shard, batch_size or DEFAULT_ROWS
    size_bytes = shard.size_bytes if shard.entry is None else shard.entry.size_bytes
    if shard.compression != "none":
        return [_CountedRange(part, 1, rows, size_bytes, is_compressed=True)]
    record_bytes = max(1, size_bytes // max(1, shard.record_count))
    if batch_size is None:
        rows = max(1, min(rows, _BATCH_BYTES // record_bytes))
    count = part.record_count
    step_count = -(-count // rows)
    counted = _CountedRange(part, step_count, rows, rows * record_bytes, is_compressed=False)
    return [counted] if count else []


class _Steps(beam.transforms.core.RestrictionProvider):
    """The steps of a part, as ranges that runners divide."""

    def initial_restriction(self, element: _CountedRange) -> OffsetRange:
        return OffsetRange(0, element.step_count)

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: _CountedRange, restriction: OffsetRange) -> Iterator[OffsetRange]:
        yield from restriction.split(max(1, _BUNDLE_BYTES // element.size_bytes))

    def restriction_size(self, element: _CountedRange, restriction: OffsetRange) -> int:
        return int(element.size_bytes * restriction.size())


class _StepReader:
    """Reads the steps of a part that it can claim, and selects records."""

    def __init__(self, request: _Request) -> None:
        self._where = None if request.where is None else parse_where(request.where)
        self._may_be_large = request.batch_size is None

    def read(self, counted: _CountedRange, tracker: Any) -> Iterator[tuple[LocatedBlock, bool]]:
        """Yield the selected records in blocks, and whether a batch ends with each."""
        step, filled, filled_bytes = tracker.current_restriction().start, 0, 0
        if counted.is_compressed and not tracker.try_claim(step):
            return
        for located in _records(counted, tracker.current_restriction()).blocks():
            low, count = 0, len(located.block)
            while low < count:
                if not filled and not counted.is_compressed:
                    if not tracker.try_claim(step):
                        return
                    step += 1
                high = min(count, low + counted.rows - filled)
                filled += high - low
                filled_bytes += int(located.block.lengths[low:high].sum())
                is_large = counted.is_compressed and filled_bytes >= _BATCH_BYTES
                is_end = filled == counted.rows or (is_large and self._may_be_large)
                yield located.select(self._rows(located, low, high)), is_end
                if is_end:
                    filled = filled_bytes = 0
                low = high

    def _rows(self, located: LocatedBlock, low: int, high: int) -> Int64Array:
        """Return the rows low:high that match the condition: int64, (n,)."""
        if self._where is None:
            return np.arange(low, high)
        block = located.block
        starts, lengths = block.starts[low:high], block.lengths[low:high]
        with located.located():
            matches = self._where.matches(RecordBlock(block.buffer, starts, lengths, low, 0))
        return np.flatnonzero(matches) + low


def _records(counted: _CountedRange, steps: OffsetRange) -> SelectedRecords:
    if steps.size() == counted.step_count:
        return records_of_part(counted.part)
    return records_of_part(counted.part, steps.start * counted.rows, steps.stop * counted.rows)


class _ReadBatches(beam.DoFn):
    def __init__(self, request: _Request) -> None:
        self._request = request

    def process(
        self,
        counted: _CountedRange,
        schema: Schema,
        tracker: Any = beam.DoFn.RestrictionParam(_Steps()),  # noqa: B008 - how Beam finds it
    ) -> Iterator[pa.RecordBatch]:
        with with_all_fields():
            decoder = self._request.decoder(schema)
            count = 0
            for located, is_end in _StepReader(self._request).read(counted, tracker):
                located.append_to(decoder)
                count += len(located.block)
                if is_end and count:
                    yield decoder.finish()
                    count = 0
            if count:
                yield decoder.finish()


class _ReadExamples(beam.DoFn):
    def __init__(self, request: _Request) -> None:
        self._request = request

    def process(
        self,
        counted: _CountedRange,
        tracker: Any = beam.DoFn.RestrictionParam(_Steps()),  # noqa: B008 - how Beam finds it
    ) -> Iterator[Any]:
        with with_all_fields():
            for located, _ in _StepReader(self._request).read(counted, tracker):
                yield from self._decoded(located)

    def _decoded(self, located: LocatedBlock) -> Iterator[Any]:
        columns = self._request.columns
        for row, payload in enumerate(located.block.payloads()):
            try:
                example = decode_payload(payload)
            except DataError as error:
                error.record = row
                with located.located():
                    raise
            yield example if columns is None else _with_columns(example, columns)


def _with_columns(example: Any, columns: Sequence[str]) -> Any:
    if isinstance(example, SequenceExample):
        return SequenceExample(*(_with_columns(section, columns) for section in example))
    return {key: example[key] for key in columns if key in example}
