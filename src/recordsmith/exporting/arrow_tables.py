"""Parquet and Feather: a table for each split with a row for each example, typed by the schema.

    <split>.parquet or <split>.feather

Columns are as in `recordsmith.arrow`. Class names and the kinds of features are in the metadata of
the fields. Memory holds one row group of a split. Needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recordsmith.arrow import ArrowDecoder
from recordsmith.dataset import Dataset, records_of
from recordsmith.dataset.arrow_stream import record_batches
from recordsmith.exporting.export_writer import ExportWriter

_GROUP_BYTES = 32 << 20
_GROUP_ROWS = 1 << 17


class ArrowTables:
    """Writes a table for each split, many rows at a time."""

    def __init__(self, suffix: str) -> None:
        """`suffix`: parquet or feather."""
        self._suffix = suffix
        self._tables: dict[str, _Table] = {}

    def export(
        self, dataset: Dataset, out: ExportWriter, advance: Callable[[str, int], None]
    ) -> None:
        """Write all records.

        Args:
            advance: called with the split and the number of rows after each batch.

        Raises:
            OptionError: the records or features have no columns.
            CorruptDataError: a record is damaged or does not match the schema.
            MissingExtraError: pyarrow is not installed.
        """
        decoder = ArrowDecoder(dataset.schema, class_names=dataset.class_names)
        for split, part in dataset.splits.items():
            for batch in record_batches(records_of(part).blocks(), decoder, None):
                if split not in self._tables:
                    name = f"{out.split_name(split)}.{self._suffix}"
                    self._tables[split] = _Table(out, name, decoder.schema, self._suffix)
                self._tables[split].append(batch)
                advance(split, len(batch))
        for table in self._tables.values():
            table.close()


class _Table:
    """One file, and the batches of its next row group."""

    def __init__(self, out: ExportWriter, name: str, schema: Any, suffix: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._pa = pa
        self._out, self._name = out, name
        file = out.open(name)
        if suffix == "parquet":
            self._writer = pq.ParquetWriter(file, schema)
            out.add_cleanup(self._abandon)
        else:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(file, schema, options=options)
        self._batches: list[Any] = []
        self._row_count = self._size_bytes = 0

    def append(self, batch: Any) -> None:
        self._batches.append(batch)
        self._row_count += len(batch)
        self._size_bytes += batch.nbytes
        if self._size_bytes >= _GROUP_BYTES or self._row_count >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._out.close(self._name)

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(self._pa.Table.from_batches(self._batches))
        self._batches = []
        self._row_count = self._size_bytes = 0

    def _abandon(self) -> None:
        """Prevent the destructor from writing the footer to a closed file."""
        self._writer.is_open = False
