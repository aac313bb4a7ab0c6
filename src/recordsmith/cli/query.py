"""`recordsmith query`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all

_ROWS_SHOWN = 100


def query(
    sql: str,
    paths: Paths,
    *,
    split: Split = None,
    stored_types: bool = False,
    json: Json = False,
) -> None:
    """Decodes only the features that the query uses. Put names such as image/class/label into
    double quotes, and the whole query into single ones. Needs DuckDB, which the extra `duckdb`
    installs.

    Example: `recordsmith query 'select avg("image/width") from data' out`

    Args:
        sql: a SELECT statement in DuckDB's SQL. The records are the table data; the table records
            also has their split, file and position.
        stored_types: columns have the types of the features, not those of the packed table.
    """
    from recordsmith.duckdb import query as run  # DuckDB only when needed

    dataset = rs.open(one_or_all(paths), split)
    table = run(sql, dataset, restore_types=not stored_types)
    if json:
        names = _different(table.column_names)
        documents = [dict(zip(names, map(_document, row), strict=True)) for row in _rows(table)]
        console.print_json({"columns": names, "rows": documents})
        return
    rows = [list(map(_text, row)) for row in _rows(table.slice(0, _ROWS_SHOWN))]
    numbers = [
        field.name for field in table.schema if not str(field.type).endswith(("string", "binary"))
    ]
    console.print_table(table.column_names, rows, numbers)
    if len(table) > _ROWS_SHOWN:
        console.print_aside(
            f"… and {len(table) - _ROWS_SHOWN:,} more rows (all of them with --json)"
        )


def _rows(table: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(_values(column) for column in table.columns), strict=True)


def _values(column: Any) -> list[Any]:
    if str(column.type).endswith("[ns]"):  # which only pandas has a class for
        column = column.cast("string")
    return column.to_pylist()  # type: ignore[no-any-return]


def _different(names: Sequence[str]) -> list[str]:
    """Return names in which equal ones have numbers: a, a_1, a_2."""
    taken, different = set(names), dict[str, None]()
    for name in names:
        numbered = (f"{name}_{number}" for number in count(1))
        chosen = name if name not in different else next(n for n in numbered if n not in taken)
        taken.add(chosen)
        different[chosen] = None
    return list(different)


def _text(value: Any) -> str:
    from recordsmith.dataset import bytes_text

    if isinstance(value, bytes):
        return bytes_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _document(value: Any) -> Any:
    from recordsmith.dataset import json_value

    if isinstance(value, list):
        return list(map(_document, value))
    known = (str, bytes, int, float, type(None))
    return json_value(value) if isinstance(value, known) else str(value)
