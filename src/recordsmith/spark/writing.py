"""Writes the partitions of a DataFrame in Spark's tasks, and publishes them as a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from recordsmith.spark.options import WriteOptions, without_traceback
from recordsmith.support.errors import OptionError
from recordsmith.writing import abandon_table, begin_table, finish_table, write_table_part


@dataclass
class WrittenPartition(WriterCommitMessage):
    """What a task has written; `result` as in `write_table_part`."""

    result: Any


class RecordsmithWriter(DataSourceArrowWriter):
    """Writes each partition as shards of its own. The dataset appears when Spark commits."""

    def __init__(self, options: WriteOptions, *, overwrite: bool) -> None:
        try:
            self._job = begin_table(
                options.path,
                overwrite,
                split=options.split,
                compression=options.compression,
                shard_size_bytes=options.shard_size_bytes,
                source="Spark DataFrame",
                store_options=options.store_options,
            )
        except OptionError as error:
            if error.option == "out":
                error.advise('In Spark, overwrite=True is mode("overwrite").')
            raise

    @without_traceback()
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Write the batches of one partition, in an attempt that other attempts do not disturb."""
        context = TaskContext.get()
        assert context is not None
        return WrittenPartition(write_table_part(self._job, context.partitionId(), iterator))

    @without_traceback()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the shards of the attempts that Spark has chosen."""
        results = [message.result for message in messages if isinstance(message, WrittenPartition)]
        finish_table(self._job, results)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Remove what was written."""
        abandon_table(self._job)
