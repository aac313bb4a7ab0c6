"""Parquet: a table for each split with a row for each example, typed by the schema.

    <split>.parquet

Columns are int64, float32, strings for text, and binary for other bytes; lists unless every record
with the feature has exactly one value. Rows are written in groups of some megabytes, so memory
holds one group. Needs pyarrow.
"""

from __future__ import annotations

from typing import Any

from recordsmith.dataset import Dataset
from recordsmith.errors import MissingExtraError, OptionError, SourceError
from recordsmith.example import Features, FeatureSchema
from recordsmith.exporting.export_writer import ExportWriter

_GROUP_BYTES = 32 << 20
_GROUP_ROWS = 10_000


class ParquetTables:
    """Writes a table for each split."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        try:
            import pyarrow  # noqa: ICN001 - not `pa`, as it is optional
            import pyarrow.parquet
        except ImportError:
            raise MissingExtraError("arrow", "pyarrow") from None
        self._arrow = pyarrow
        self._out = out
        dataset.schema.check_complete("a table has a column for each feature")
        self._features = dict(dataset.schema.features)
        self._fields = [
            pyarrow.field(_checked(key), self._type(key, feature))
            for key, feature in self._features.items()
        ]
        self._tables: dict[str, _Table] = {}

    def add(self, example: Features, split: str, position: int) -> None:
        row: dict[str, Any] = {}
        size_bytes = 0
        for key, feature in self._features.items():
            value = example.get(key)
            if value is None:
                row[key] = None
                continue
            values: Any = value if isinstance(value, list) else value.tolist()
            size_bytes += sum(map(len, values)) if isinstance(value, list) else value.nbytes
            row[key] = values[0] if _is_single(feature) else values
        if split not in self._tables:
            self._tables[split] = _Table(self._arrow, self._fields, self._out, split)
        self._tables[split].append(row, size_bytes)

    def finish(self) -> None:
        for table in self._tables.values():
            table.close()

    def _type(self, key: str, feature: FeatureSchema) -> Any:
        types = {
            "int64": self._arrow.int64(),
            "float": self._arrow.float32(),
            "none": self._arrow.null(),
            "bytes": self._arrow.string() if feature.content == "text" else self._arrow.binary(),
        }
        if feature.kind not in types:
            raise OptionError(
                f"feature {key!r} has values of several kinds, which a column cannot hold",
                remedy="Choose another format.",
            )
        found = types[feature.kind]
        return found if _is_single(feature) else self._arrow.list_(found)


class _Table:
    """One file and its buffered rows."""

    def __init__(self, arrow: Any, fields: list[Any], out: ExportWriter, split: str) -> None:
        self._arrow = arrow
        self._fields = fields
        self._out = out
        self._name = f"{out.split_name(split)}.parquet"
        self._file = out.open(self._name)
        self._writer = arrow.parquet.ParquetWriter(self._file, arrow.schema(fields))
        out.add_cleanup(self._abandon)
        self._rows: list[dict[str, Any]] = []
        self._size_bytes = 0

    def append(self, row: dict[str, Any], size_bytes: int) -> None:
        self._rows.append(row)
        self._size_bytes += size_bytes
        if self._size_bytes >= _GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._out.close(self._name)

    def _abandon(self) -> None:
        """Prevent the destructor from writing the footer to a closed file."""
        self._writer.is_open = False

    def _flush(self) -> None:
        if not self._rows:
            return
        try:
            columns = [
                self._arrow.array([row[field.name] for row in self._rows], field.type)
                for field in self._fields
            ]
            table = self._arrow.Table.from_arrays(columns, schema=self._arrow.schema(self._fields))
            self._writer.write_table(table)
        except OSError:
            raise
        except (self._arrow.ArrowException, ValueError, TypeError) as error:
            raise SourceError(f"the records do not match their schema: {error}") from None
        self._rows, self._size_bytes = [], 0


def _is_single(feature: FeatureSchema) -> bool:
    """Whether every record with this feature has exactly one value."""
    return feature.min_length == feature.max_length == 1


def _checked(key: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"the feature name {key!r} is not UTF-8, which Parquet requires"
        ) from None
    return key
