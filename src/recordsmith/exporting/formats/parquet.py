"""Parquet and Feather: a table for each split with a row for each example, typed by the schema.

    <split>.parquet or <split>.feather

Columns are as in `recordsmith.dataset.arrow`, with the types of the Arrow table that was packed.
Class names and the kinds of features are in the metadata of the fields. Memory holds one row group
of a split. Needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from recordsmith.dataset import ArrowDecoder, Dataset, import_pyarrow
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import TableFiles
from recordsmith.support.errors import OptionError

_GROUP_BYTES = 32 << 20
_GROUP_ROWS = 1 << 17


class ParquetTables(TableFiles):
    suffix = ".parquet"
    options = (*TableFiles.options, "restore_types")
    _writer: Any = None

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        types = dataset.view.arrow_types() if "restore_types" in self.options else None
        types = types and self._stored_types(types)
        self.decoder = ArrowDecoder(dataset.schema, None, dataset.class_names, types)
        self._schema = self.decoder.schema
        if not self._schema.names and dataset.schema.record_count:
            raise OptionError("the records have no features, so a table would have no rows")

    def open(self, file: BinaryIO, split: str) -> None:
        self._writer = self._make_writer(file)
        self._batches: list[Any] = []
        self._row_count = self._size_bytes = 0

    def add(self, row_count: int, position: Callable[[int], int]) -> int:
        batch = self._batch(position)
        self._batches.append(batch)
        self._row_count += len(batch)
        self._size_bytes += batch.nbytes
        if self._size_bytes >= _GROUP_BYTES or self._row_count >= _GROUP_ROWS:
            self._flush()
        return len(batch)

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Prevent the destructor from writing the footer to a closed file."""
        if self._writer is not None:
            self._writer.is_open = False

    def _make_writer(self, file: BinaryIO) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(file, self._schema, use_dictionary=_repeating(self._schema))

    def _stored_types(self, types: Any) -> Any:
        """Return the types that the format can hold."""
        return types

    def _batch(self, position: Callable[[int], int]) -> Any:
        """Return the rows in the decoder as a pyarrow.RecordBatch and empty it."""
        return self.decoder.finish()

    def _flush(self) -> None:
        if self._row_count:
            self._writer.write_table(import_pyarrow().Table.from_batches(self._batches))
        self._batches = []
        self._row_count = self._size_bytes = 0


class FeatherTables(ParquetTables):
    """Writes Feather, whose files have only one dictionary for a column, so none are written."""

    suffix = ".feather"

    def abandon(self) -> None:
        """Do nothing: the writer of Feather has no footer of its own."""

    def _make_writer(self, file: BinaryIO) -> Any:
        pa = import_pyarrow()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        return pa.ipc.new_file(file, self._schema, options=options)

    def _stored_types(self, types: Any) -> Any:
        pa = import_pyarrow()
        values = [
            getattr(t, "value_type", t) if pa.types.is_dictionary(t) else t for t in types.types
        ]
        return pa.schema([field.with_type(t) for field, t in zip(types, values, strict=True)])


def _repeating(schema: Any) -> list[str]:
    """Return the columns whose values may repeat, so that a dictionary makes them smaller."""
    from pyarrow import types

    columns = []
    for field in schema:
        name, kind = field.name, field.type
        while types.is_large_list(kind) or types.is_fixed_size_list(kind):
            name, kind = f"{name}.list.element", kind.value_type
        if types.is_large_string(kind) or types.is_int64(field.type):
            columns.append(name)
    return columns
