"""Reads the partitions of a dataset in Spark's tasks, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from recordsmith.dataset import (
    Dataset,
    import_pyarrow,
    open_stream,
    parse_where,
    parts_of,
    records_of,
)
from recordsmith.format.example import Schema
from recordsmith.spark.options import ReadOptions, without_traceback
from recordsmith.spark.types import batch_schema, in_stored_unit


@dataclass
class DatasetPartition(InputPartition):
    """The records of one shard, or some records in a row of a large one."""

    dataset: Dataset


class RecordsmithReader(DataSourceReader):
    """Reads a dataset: each shard, or each part of a large one, is a partition."""

    def __init__(
        self, options: ReadOptions, schema: StructType, stored: Schema, types: Any = None
    ) -> None:
        self._options = options
        self._schema = schema
        self._stored = stored
        self._types = types
        if options.where:
            parse_where(options.where).check(stored)

    @without_traceback()
    def partitions(self) -> list[InputPartition]:
        without_columns = Schema("Example", 0)  # the reader has them
        view = replace(self._options.open().view, outer_schema=without_columns)
        return [*map(DatasetPartition, parts_of(Dataset(view), self._options.partition_bytes))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a partition as pyarrow.RecordBatches."""
        if not isinstance(partition, DatasetPartition):  # of Spark, for a dataset without shards
            return
        pa = import_pyarrow()
        schema = batch_schema(self._schema)
        decoded = [
            field if self._types is None
            else field.with_type(in_stored_unit(field.type, self._types.field(field.name).type))
            for field in schema
        ]  # fmt: skip
        where = self._options.where
        batches = open_stream(
            records_of(partition.dataset),
            self._stored,
            schema.names,
            None,
            None,
            1,
            pa.schema([field for field in decoded if not pa.types.is_null(field.type)]),
            parse_where(where) if where else None,
        )
        with without_traceback():
            for batch in batches:
                columns = [
                    column if column.type == field.type else _converted(column, field.type)
                    for column, field in zip(batch.columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _converted(column: Any, arrow_type: Any) -> Any:
    """Cast a column; digits of times that Spark does not have are cut off."""
    from pyarrow import compute

    return column.cast(options=compute.CastOptions(arrow_type, allow_time_truncate=True))
