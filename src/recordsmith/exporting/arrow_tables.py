"""Parquet and Feather: a table for each split with a row for each example, typed by the schema.

    <split>.parquet or <split>.feather

Columns are as in `recordsmith.arrow`, with the types of the Arrow table that was packed. Class
names and the kinds of features are in the metadata of the fields. Memory holds one row group of a
split. Needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from recordsmith.arrow import ArrowDecoder
from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.exporting.export_writer import ExportWriter, TableExporter
from recordsmith.exporting.record_shards import numbered_names

_GROUP_BYTES = 32 << 20
_GROUP_ROWS = 1 << 17


class ArrowTables(TableExporter):
    """Writes a table for each split, many rows at a time."""

    decoder: ArrowDecoder
    restores_types = True

    def __init__(self, suffix: str) -> None:
        """`suffix`: parquet or feather."""
        self._suffix = suffix
        self._tables: dict[str, _Table] = {}

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        types = dataset.view.arrow_types() if self.restores_types else None
        if types is not None and self._suffix == "feather":
            types = _without_dictionaries(types)
        self.decoder = ArrowDecoder(dataset.schema, None, dataset.class_names, types)
        self._schema = self.decoder.schema
        if not self._schema.names and dataset.schema.record_count:
            raise OptionError("the records have no features, so a table would have no rows")

    def add(self, split: str, row_count: int, position: Callable[[int], int]) -> int:
        batch = self._batch(position)
        if len(batch):
            self._table(split).append(batch)
        return len(batch)

    def _table(self, split: str) -> _Table:
        if split not in self._tables:
            name = self._out.file_of(split, f".{self._suffix}")
            self._tables[split] = _Table(self._out, name, self._schema, self._suffix)
        return self._tables[split]

    def _batch(self, position: Callable[[int], int]) -> Any:
        """Return the rows in the decoder as a pyarrow.RecordBatch and empty it."""
        return self.decoder.finish()

    def part_names(self, split: str, count: int) -> Sequence[str]:
        return numbered_names(split, count, f".{self._suffix}")

    def finish(self) -> None:
        if self._out.part is not None:
            self._table(self._out.splits[0])
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
            self._writer = pq.ParquetWriter(file, schema, use_dictionary=_repeating(schema))
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


def _without_dictionaries(types: Any) -> Any:
    """Return a schema without dictionaries, of which a Feather file has only one per column."""
    import pyarrow as pa

    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in types
        ]
    )


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
