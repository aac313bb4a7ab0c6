"""`recordsmith query`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all

_ROWS_SHOWN = 100


def query(
    sql: Annotated[
        str,
        typer.Argument(
            help="A SELECT statement in DuckDB's SQL, in which the records are the table data.",
            metavar="SQL",
            show_default=False,
        ),
    ],
    paths: Paths,
    split: Split = None,
    json: Json = False,
) -> None:
    """Run SQL over records, each of which is a row.

    Decodes only the features that the query uses. Put names such as image/class/label into double
    quotes, and the whole query into single ones. Needs DuckDB, which the extra `duckdb` installs.

    Example: `recordsmith query 'select avg("image/width") from data' out`
    """
    from recordsmith.duckdb import query as run  # DuckDB only when needed

    table = run(sql, rs.open(one_or_all(paths), split))
    if json:
        documents = [{key: _document(value) for key, value in row.items()} for row in _rows(table)]
        console.print_json({"columns": table.column_names, "rows": documents})
        return
    rows = [[_text(value) for value in row.values()] for row in _rows(table.slice(0, _ROWS_SHOWN))]
    numbers = [
        field.name for field in table.schema if not str(field.type).endswith(("string", "binary"))
    ]
    console.print_table(table.column_names, rows, numbers)
    if len(table) > _ROWS_SHOWN:
        console.print_aside(
            f"… and {len(table) - _ROWS_SHOWN:,} more rows (all of them with --json)"
        )


def _rows(table: Any) -> list[dict[str, Any]]:
    names = table.column_names
    columns = (column.to_pylist() for column in table.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _text(value: Any) -> str:
    from recordsmith.dataset.examples import bytes_text

    if isinstance(value, bytes):
        return bytes_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _document(value: Any) -> Any:
    from recordsmith.cli.values import bytes_document, number_document

    if isinstance(value, bytes):
        return bytes_document(value)
    if isinstance(value, list):
        return [_document(each) for each in value]
    if isinstance(value, float):
        return number_document(value)
    return value if isinstance(value, (str, int, type(None))) else str(value)
