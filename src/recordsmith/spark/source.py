"""The format `recordsmith` of Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from recordsmith.dataset import arrow_schema, columns_of
from recordsmith.format.example import FeatureSchema, Schema
from recordsmith.spark.options import ReadOptions, WriteOptions, without_traceback
from recordsmith.spark.types import check_types, spark_schema
from recordsmith.support.errors import OptionError


class RecordsmithSource(DataSource):
    """Reads and writes datasets as DataFrames. Spark calls its methods.

    Options of reads: `split`, `columns`, `where`, `partition_size`, `restore_types` and
    `store_options`; of writes: `split`, `compression`, `shard_size` and `store_options`.

    Example:
        frame = spark.read.format("recordsmith").option("split", "train").load("out")
    """

    _stored: Schema | None = None  # the schema of the records, once it is known
    _types: Any = None  # the Arrow types of the columns, if they are restored

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "recordsmith"

    @without_traceback()
    def schema(self) -> StructType:
        """Return the columns of the dataset.

        Reads the manifest; without one, all records, unless the user states a schema.

        Raises:
            OptionError: an option is invalid, or the records have no columns.
            CorruptDataError: a record is damaged.
        """
        options = ReadOptions(self.options)
        dataset = options.open()
        self._stored = dataset.schema
        reader = dataset.to_arrow(options.columns, restore_types=options.restore_types)
        self._types = reader.schema if options.restore_types else None
        return spark_schema(reader.schema)

    @without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of some columns.

        Raises:
            OptionError: a column does not exist, or cannot have the type in the schema.
        """
        from recordsmith.spark.reading import RecordsmithReader

        options = ReadOptions(self.options)
        stored = self._stored
        if stored is None:
            stored = _stored_schema(options, schema)
        return RecordsmithReader(options, schema, stored, self._types)

    @without_traceback()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Begin to write, and return the writer.

        Raises:
            OptionError: features cannot have the type of a column; or the folder has a dataset, and
                the mode is not `overwrite`.
        """
        from recordsmith.spark.writing import RecordsmithWriter

        check_types(schema, may_nest=False)
        return RecordsmithWriter(WriteOptions(self.options), overwrite=overwrite)


def _stored_schema(options: ReadOptions, stated: StructType) -> Schema:
    """Return the schema of the records for columns that the user states.

    Without a manifest, only the first record of Examples is read: the columns are as stated, and
    null where records lack them.
    """
    dataset = options.open()
    stored, is_declared = dataset.view.schema, False
    if stored is None:
        stored, _ = dataset.view.preview_schema(1)
        is_declared = stored.payload in ("Example", "none")
        stored = stored if is_declared else dataset.schema
    kinds = check_types(stated, may_nest=stored.payload in ("SequenceExample", "ELWC"))
    features = columns_of(stored)
    for name, kind in kinds.items():
        if name not in features:
            continue
        kind_of_records = features[name][2].kind
        if kind_of_records not in (kind, "none"):
            raise OptionError(
                f"the schema has the type {stated[name].dataType.simpleString()} for column "
                f"{name!r}, which is {kind_of_records}",
                option="schema",
                value=name,
                remedy="State a type of that kind, or no schema.",
            )
    if is_declared:  # the shapes are unknown
        declared = {name: FeatureSchema(kind, 0, 0, 0) for name, kind in kinds.items()}
        return Schema("Example", 0, {"features": declared})
    arrow_schema(stored, stated.names)  # checks the names
    return stored
