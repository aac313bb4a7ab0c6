"""What a loader reads: records by position, and the order of an epoch.

A `LoaderInput` is to a loader what a dataset is: positions count its records from 0, and an order
maps the places of an epoch to positions. Its records need not be those of files: each may be made
of others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from msgspec.structs import astuple

from recordsmith.dataset import (
    PREVIEW_COUNT,
    Dataset,
    Faults,
    RecordLocation,
    SelectedRecords,
    listed_digest,
    records_of,
)
from recordsmith.format.example import BytesArray
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder
from recordsmith.loading.preview import Preview
from recordsmith.support.buffers import AllocateBytes, Int64Array, empty_bytes, offsets_from_lengths
from recordsmith.support.errors import DataError, OptionError


class MadePayloads(BytesArray):
    """Payloads that are made of others, for which other bytes were read."""

    __slots__ = ("read_byte_count",)

    def __init__(self, payloads: BytesArray, read_byte_count: int) -> None:
        super().__init__(payloads.buffer, payloads.offsets)
        self.read_byte_count = read_byte_count


def bytes_read(payloads: BytesArray) -> int:
    """Return how many bytes were read for payloads of a RecordSource."""
    return payloads.read_byte_count if isinstance(payloads, MadePayloads) else len(payloads.buffer)


class RecordSource(Protocol):
    """Records by position, perhaps made of others: their payloads are `MadePayloads` then."""

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,
        faults: Faults | None = None,
    ) -> BytesArray:
        """Return the payloads at many positions; errors of damaged records go to `faults`."""

    def record_sizes(self, positions: Int64Array) -> Int64Array:
        """Return the sizes of the payloads at many positions: int64, (count,)."""

    def locate_record(self, position: int) -> RecordLocation:
        """Return the file, number and offset of a record."""


class FetchedRecords(NamedTuple):
    """Records that were read.

    payloads: in the order of their positions.
    faults: the errors of damaged ones by row; their bytes are undefined.
    read_byte_count: how many bytes were read for them.
    seconds: how long the step waited for them.
    """

    payloads: BytesArray
    faults: Faults
    read_byte_count: int = 0
    seconds: float = 0.0


def fetch_records(
    records: RecordSource, positions: Int64Array, allocate: AllocateBytes
) -> FetchedRecords:
    """Read records, of which some may be damaged: one by one if an index cannot be built."""
    faults: Faults = {}
    with suppress(DataError):
        payloads = records.read_records(positions, allocate, faults)
        return FetchedRecords(payloads, faults, bytes_read(payloads))
    values: list[bytes] = []
    faults, read_byte_count = {}, 0
    for row, position in enumerate(positions):
        try:
            payloads = records.read_records(position[np.newaxis])
            read_byte_count += bytes_read(payloads)
            values.append(payloads.buffer.tobytes())
        except DataError as error:
            values.append(b"")
            # its traceback would keep the memory
            faults[row] = error.with_traceback(None)
    return FetchedRecords(BytesArray.from_values(values), faults, read_byte_count)


class LoaderInput(ABC):
    """What a Loader reads.

    Attributes:
        datasets: whose records it has, or makes its records of.
        records: by position.
        record_count: how many positions there are.
        has_each_once: whether an epoch has each record once, in any order.
        batch_size: how many examples each batch must have, which belong together; None for any.
    """

    datasets: tuple[Dataset, ...]
    has_each_once: ClassVar[bool] = False
    batch_size: int | None = None
    records: RecordSource
    record_count: int

    @abstractmethod
    def __len__(self) -> int:
        """Return how many examples an epoch has."""

    @abstractmethod
    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        """Return the order of an epoch, whose count is the length."""

    def reading(self, keys: Collection[str], images: Collection[str] = ()) -> RecordSource:  # noqa: ARG002
        """Return the records for a reader that uses only some features, some of them as images."""
        records = self.records
        return records.reading(keys) if isinstance(records, SelectedRecords) else records

    def describe(self) -> Any:
        """Return a JSON-able description of the chosen records, for a state; None for all."""
        described = [records_of(dataset).describe() for dataset in self.datasets]
        return None if all(one is None for one in described) else described

    def digest(self) -> str | None:
        """Return the digest of the files that manifests list; None if there is another one.

        A state from before a record was removed or replaced, or a layer changed, has another one.
        """
        shards = [shard for dataset in self.datasets for shard in dataset.shards]
        files = [file for shard in shards for file in (shard, *shard.layers)]
        listed = [(f.split, *astuple(f.entry)) for f in files if f.entry is not None]
        return listed_digest(listed) if len(listed) == len(files) else None

    def previews(self) -> list[Preview]:
        """Return what is known of each kind of record."""
        return [_preview(dataset) for dataset in self.datasets]

    def first_payloads(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield number of dataset, position in it and payload of the first records of each.

        Those of a dataset end before the first damaged record.
        """
        for number, dataset in enumerate(self.datasets):
            with suppress(DataError):
                for position, payload in enumerate(islice(dataset.records(), PREVIEW_COUNT)):
                    yield number, position, payload


def _preview(dataset: Dataset) -> Preview:
    view = dataset.view
    schema, is_complete = view.preview_schema(PREVIEW_COUNT)
    of_files = schema if is_complete and view.records.has_all else view.outer_schema
    listed = None if of_files is None or not of_files.is_complete else of_files.columns
    is_sure = listed is not None
    return Preview(
        schema, is_complete, listed, is_sure, lambda: enumerate(dataset.records()), view.find_key
    )


class DatasetInput(LoaderInput):
    """The records of one dataset."""

    has_each_once = True

    def __init__(self, dataset: Dataset) -> None:
        check_random_access(dataset)
        self.datasets = (dataset,)
        self.records = records_of(dataset)
        self.record_count = len(dataset)

    def __len__(self) -> int:
        return self.record_count

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        return DatasetOrder(len(self), shuffle=shuffle, seed=seed)

    def describe(self) -> Any:
        return records_of(self.datasets[0]).describe()


def as_input(dataset: object) -> LoaderInput:
    """Return what a user passes to a loader as its input; OptionError for anything else."""
    if isinstance(dataset, LoaderInput):
        return dataset
    if isinstance(dataset, Dataset):
        return DatasetInput(dataset)
    raise OptionError(
        option="dataset",
        value=dataset,
        expected="a Dataset, as recordsmith.open() returns it, a Mix, a Weighted, a ByClass, "
        "Episodes or a Packed",
    )


def check_random_access(dataset: Dataset) -> None:
    """Raise OptionError unless it is a Dataset whose records can be read at any position."""
    if not isinstance(dataset, Dataset):
        raise OptionError(
            option="dataset", value=dataset, expected="a Dataset, as recordsmith.open() returns it"
        )
    compressed = records_of(dataset).compressed_shard()
    if compressed is not None:
        raise OptionError(
            f"{compressed.location} is compressed with {compressed.compression}, so its records "
            "can only be read in order",
            option="dataset",
            value=str(compressed.location),
            remedy="Write it once with `recordsmith reshard PATH OUT --compression none`.",
        )


def in_order(
    pieces: list[tuple[Int64Array, BytesArray]], count: int, allocate: AllocateBytes
) -> BytesArray:
    """Return payloads that were read in pieces, (rows, payloads); those of no piece are empty."""
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    lengths = np.zeros(count, np.int64)
    for rows, payloads in pieces:
        lengths[rows] = payloads.lengths
    offsets = offsets_from_lengths(lengths)
    data = allocate(int(offsets[-1]))
    for rows, payloads in pieces:
        spans = pairwise(payloads.offsets.tolist())
        for row, (begin, end) in zip(rows.tolist(), spans, strict=True):
            data[offsets[row] : offsets[row + 1]] = payloads.buffer[begin:end]
    return BytesArray(data, offsets)
