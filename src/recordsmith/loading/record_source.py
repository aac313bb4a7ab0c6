"""The records that a loader reads: those of a Dataset, or of a Mix of several."""

from __future__ import annotations

from typing import Protocol

from recordsmith.buffers import AllocateBytes, Int64Array, empty_bytes
from recordsmith.dataset import Dataset, Faults, RecordLocation, records_of
from recordsmith.example import BytesArray
from recordsmith.loading.order.mix import Mix


class RecordSource(Protocol):
    """Records by position: `SelectedRecords` or a Mix."""

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


def record_source(dataset: Dataset | Mix) -> RecordSource:
    """Return the records that positions of a loader refer to."""
    return dataset if isinstance(dataset, Mix) else records_of(dataset)


def datasets_of(dataset: Dataset | Mix) -> tuple[Dataset, ...]:
    """Return the datasets of a mix, or the only one."""
    return dataset.datasets if isinstance(dataset, Mix) else (dataset,)
