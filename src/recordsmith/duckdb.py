"""SQL over the examples of a dataset, by DuckDB. Needs duckdb and pyarrow.

    import recordsmith as rs
    from recordsmith.duckdb import query

    table = query('select "image/class/label", count(*) from data group by all', rs.open("out"))

The records are the table `data`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recordsmith.dataset import Dataset
from recordsmith.errors import MissingExtraError, OptionError, RecordsmithError

try:
    import duckdb
    import pyarrow as pa
except ImportError as _error:
    raise MissingExtraError("duckdb", _error.name or "duckdb") from None

__all__ = ["TABLE", "query"]

TABLE = "data"
"""The name of the dataset in queries."""


def query(sql: str, dataset: Dataset) -> pa.Table:
    """Run a query over the examples of a dataset, which it calls `data`.

    Decodes only the features that the query uses, in bounded memory; the result is in memory.
    Columns are as in `Dataset.to_arrow`. A key such as image/class/label needs double quotes.

    Args:
        sql: one SELECT statement in DuckDB's SQL. It may also read other files by their names.

    Raises:
        OptionError: the query is invalid, is not a single SELECT, or uses unknown columns.
        CorruptDataError: a record is damaged.

    Example:
        query("select avg(width) from data where label = 3", rs.open("rows.tfrecord"))
    """
    connection = duckdb.connect()
    source = _Source(dataset)
    try:
        connection.execute("set python_enable_replacements = false")
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise OptionError(option="sql", value=sql, expected="one SELECT statement")
        connection.register(TABLE, dataset.to_arrow().schema.empty_table())
        ((_, plan),) = connection.execute(f"explain (format json)\n{sql}").fetchall()
        source.columns = sorted(_scanned_columns(json.loads(plan)))
        if source.columns:
            connection.unregister(TABLE)
            connection.register(TABLE, source)
        return connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        if source.error is not None:
            raise source.error from None
        lines = str(error).strip().splitlines()
        raise OptionError(
            f"the query failed: {lines[0]}", option="sql", value=sql, excerpt=lines[1:]
        ) from None
    finally:
        connection.close()


class _Source:
    """The columns of a dataset that a query needs, as a stream for each of its scans.

    error: what the stream raised; DuckDB passes on only its text.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.columns: list[str] = []
        self.error: RecordsmithError | None = None
        self._dataset = dataset

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = self._dataset.to_arrow(self.columns)
        batches = pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))
        return batches.__arrow_c_stream__(requested_schema)

    def _batches(self, reader: Any) -> Iterator[Any]:
        try:
            yield from reader
        except RecordsmithError as error:
            self.error = error
            raise


def _scanned_columns(plan: Any) -> set[str]:
    """Return the columns that the scans of a plan project."""
    found: set[str] = set()
    for node in plan:
        details = node.get("extra_info", {})
        if "ARROW_SCAN" in node.get("name", ""):
            projections = details.get("Projections", [])
            found.update([projections] if isinstance(projections, str) else projections)
        found |= _scanned_columns(node.get("children", []))
    return found
