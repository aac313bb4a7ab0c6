"""SQL over the examples of a dataset, by DuckDB. Needs duckdb 2 and pyarrow.

    import recordsmith as rs
    from recordsmith.duckdb import query

    table = query('select "image/class/label", count(*) from data group by all', rs.open("out"))

The records are the table `data`, and `records` has their split, file and position as well.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset import Dataset, records_of
from recordsmith.support.errors import MissingExtraError, OptionError, RecordsmithError, needs_extra

with needs_extra("duckdb", "duckdb", "pyarrow"):
    import duckdb
    import pyarrow as pa
    from pyarrow import dataset as arrow_dataset

# Versions before 2.0 replace `x > 1` by a filter that is false for NaN, for which it is true.
if int(duckdb.__version__.partition(".")[0]) < 2:
    raise MissingExtraError("duckdb", "duckdb 2.0 or later")

__all__ = ["DatasetTable", "query", "table"]

_LOCATION = ("split", "file", "position")


def query(sql: str, dataset: Dataset, *, restore_types: bool = True) -> pa.Table:
    """Run a query over the examples of a dataset.

    Its tables are `data`, with the columns of `Dataset.to_arrow`, and `records`, which has `split`,
    `file` and `position` before these (see `table`). Decodes only the features that the query uses,
    in bounded memory; the result is in memory. A key such as image/class/label needs double quotes.

    Args:
        sql: one SELECT statement in DuckDB's SQL. It may also read local files by their names;
            DuckDB installs and loads no extensions.
        restore_types: whether columns have the types of the Arrow table that was packed, if the
            manifest has them; otherwise those of the features.

    Raises:
        OptionError: the query is invalid, is not a single SELECT, or uses unknown columns; or
            DuckDB has no equivalent of a restored type.
        CorruptDataError: a record is damaged.

    Example:
        recordsmith.duckdb.query('select avg("image/width") from data', rs.open("out"))
    """
    config: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(config=config)
    records = table(dataset, location=True, restore_types=restore_types)
    try:
        connection.execute("set python_enable_replacements = false")
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise OptionError(option="sql", value=sql, expected="one SELECT statement")
        connection.register("records", records)
        # a view, so that count(*) reads the first column of `records`, which takes no decoding
        location = ", ".join(f'"{name}"' for name in records.schema.names[: len(_LOCATION)])
        view = f"select * exclude ({location}) from records"  # noqa: S608 - `split`, `split_`, …
        connection.execute(f"create temp view data as {view}")
        return connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        if records.error is not None:
            raise records.error from None
        kind, _, text = str(error).strip().partition(" Error: ")  # "Binder Error: …"
        lines = (text or kind).splitlines()
        remedy = ""
        if "extension" in lines[0]:  # DuckDB's own advice would download it
            remedy = "Queries load no extensions: use local files and functions without extensions."
            del lines[1:]
        elif kind == "Catalog" and '"data"' not in text and lines[0].startswith("Table with name"):
            remedy = "The tables are data, and records, which also has the split of each record."
            del lines[1:]  # DuckDB suggests one of its own tables
        elif kind == "Binder" and '"' not in sql:
            names = [name for name in records.schema.names if not name.isidentifier()]
            remedy = f'Put names such as "{names[0]}" into double quotes.' if names else ""
        raise OptionError(
            f"the query failed: {lines[0]}",
            option="sql",
            value=sql,
            remedy=remedy,
            excerpt=lines[1:],
        ) from None
    finally:
        connection.close()


def table(dataset: Dataset, *, location: bool = False, restore_types: bool = True) -> DatasetTable:
    """Return the examples of a dataset as a table to register in a connection to DuckDB.

    DuckDB passes on columns and filters, so that only the features that a query uses are decoded.
    The table can be read any number of times. It is a `pyarrow.dataset.Dataset` with a schema and
    a scanner.

    DuckDB reads the first column for `count(*)`: if that is an image, select other columns first
    with `Dataset.select_columns`, or use `location`.

    Args:
        location: whether the columns begin with `split` (text), `file` (text: the path or URL of
            the shard) and `position` (int64: the index of the example in the dataset). If a feature
            has one of these names, in upper or lower case, the name of the location ends with `_`.
        restore_types: as in `query`.

    Raises:
        OptionError: the argument is not a Dataset, or its features have no columns.

    Example:
        connection = duckdb.connect()
        connection.register("flowers", recordsmith.duckdb.table(rs.open("out")))
        connection.sql('select max("image/width") from flowers').show()
    """
    if not isinstance(dataset, Dataset):
        raise OptionError(
            option="dataset", value=dataset, expected="a Dataset, as recordsmith.open() returns it"
        )
    return DatasetTable(dataset, location=location, restore_types=restore_types)


class DatasetTable(arrow_dataset.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """The examples of a dataset for a query engine; returned by `table`.

    schema: pyarrow.Schema of the columns.
    error: the error that reading raised last, of which DuckDB passes on only the text.
    """

    def __init__(self, dataset: Dataset, *, location: bool, restore_types: bool) -> None:
        self.error: RecordsmithError | None = None
        self._dataset = dataset
        self._restore_types = None if restore_types else False
        features = self._stream(None).schema
        self._location = _location_names(features.names) if location else {}
        names = self._location
        types = zip(names, (pa.string(), pa.string(), pa.int64()), strict=False)
        self._schema = pa.schema([*(pa.field(*pair) for pair in types), *features])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> _Scan:
        """Return a scan of some columns, by default all, of the rows for which a filter is true.

        The filter is a `pyarrow.dataset.Expression`, which may use other columns.
        """
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        return _Scan(pa.RecordBatchReader.from_batches(schema, self._batches(names, filter)))

    def _stream(self, columns: Sequence[str] | None) -> Any:
        return self._dataset.to_arrow(columns, restore_types=self._restore_types)

    def _batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        used = [] if condition is None else _columns_of(condition, self.schema)
        fields = [self.schema.field(name) for name in dict.fromkeys([*names, *used])]
        start = 0
        try:
            for features in self._stream([f.name for f in fields if f.name not in self._location]):
                stop = start + len(features)
                columns = [
                    self._location_column(self._location[field.name], start, stop)
                    if field.name in self._location
                    else features.column(field.name)
                    for field in fields
                ]
                start = stop
                rows = pa.Table.from_arrays(columns, schema=pa.schema(fields))
                if condition is not None:
                    rows = rows.filter(condition)
                yield from rows.select(names).to_batches()
        except RecordsmithError as error:
            self.error = error
            raise

    def _location_column(self, kind: str, start: int, stop: int) -> Any:
        if kind == "position":
            return pa.array(np.arange(start, stop))
        records = records_of(self._dataset)
        values = [
            shard.split if kind == "split" else str(shard.location) for shard in records.all_shards
        ]
        if len(set(values)) == 1:  # so that the records of the shards need not be counted
            return pa.repeat(values[0], stop - start)
        return pa.array(values).take(pa.array(records.shard_numbers(start, stop)))

    def _not_supported(self, *_: Any, **__: Any) -> Any:
        raise OptionError(
            "a table for query engines has only a schema and scans",
            option="table",
            remedy="Use the dataset itself, or its to_arrow().",
        )

    # what pyarrow implements with parts that a subclass lacks
    count_rows = filter = get_fragments = head = join = join_asof = _not_supported
    replace_schema = sort_by = take = _not_supported
    partition_expression = property(_not_supported)


class _Scan:
    """A scan, with the methods of `pyarrow.dataset.Scanner` that read it.

    pyarrow's own class reads ahead of its consumer without a limit.
    """

    def __init__(self, reader: Any) -> None:
        self.projected_schema = reader.schema
        self.to_reader = lambda: reader
        self.to_table = reader.read_all
        self.to_batches = lambda: iter(reader)


def _location_names(features: Sequence[str]) -> dict[str, str]:
    """Return the columns of the location by name, which differ from those of features."""
    taken = {name.lower() for name in features}
    names = {}
    for kind in _LOCATION:
        name = kind
        while name in taken:
            name += "_"
        names[name] = kind
    return names


def _columns_of(expression: Any, schema: Any) -> list[str]:
    """Return the columns that an expression uses, which pyarrow does not list."""
    names = schema.names

    def suffice(chosen: Sequence[str]) -> bool:
        fields = pa.schema([schema.field(name) for name in dict.fromkeys(chosen)])
        try:
            fields.empty_table().filter(expression)
        except pa.ArrowInvalid:
            return False
        return True

    schema.empty_table().filter(expression)  # raises if it is invalid
    used: list[str] = []
    while not suffice(used):
        # the fewest first columns that suffice: the last one of them is used
        count = bisect_left(range(len(names)), True, key=lambda n: suffice([*used, *names[:n]]))
        used.append(names[count - 1])
    return used
