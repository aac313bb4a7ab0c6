"""Filters of Spark as where expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.datasource import Filter

_OPERATORS = {
    "EqualTo": "==",
    "EqualNullSafe": "==",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_METHODS = {"StringStartsWith": "startswith", "StringEndsWith": "endswith"}


def where_of(filters: Iterable[Filter], types: Mapping[str, type]) -> str | None:
    """Return a condition that every row satisfies for which all filters are true.

    Spark evaluates its filters again, so filters without an equivalent are left out.

    Args:
        types: of the values of the columns that can be compared: int, or str and bytes. These
            columns have one value in a row, or null.
    """
    conditions = [condition for each in filters if (condition := _condition(each, types))]
    return " and ".join(conditions) or None


def _condition(condition: Any, types: Mapping[str, type]) -> str | None:
    is_negated = isinstance(condition, datasource.Not)
    if is_negated:
        condition = condition.child
    kind = type(condition).__name__
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(path) != 1 or path[0] not in types:
        return None
    name = f"`{path[0].replace('`', '``')}`"
    given = getattr(condition, "value", None)
    wanted = given if kind == "In" else (given,)
    values = [_literal(value, types[path[0]]) for value in wanted or ()]
    if not values or None in values:
        return None
    if kind == "In":
        return f"{name} {'not in' if is_negated else 'in'} ({', '.join(map(str, values))},)"
    if is_negated:
        return f"{name} != {values[0]}" if kind == "EqualTo" else None
    if kind in _METHODS and types[path[0]] is str:
        return f"{name}.{_METHODS[kind]}({values[0]})"
    return f"{name} {_OPERATORS[kind]} {values[0]}" if kind in _OPERATORS else None


def _literal(value: object, wanted: type) -> str | None:
    """Return a value as a where expression has it; None if it is of another type."""
    if type(value) is bytearray:
        value = bytes(value)
    if type(value) is not wanted:
        return None
    try:
        return repr(value.encode() if isinstance(value, str) else value)
    except UnicodeEncodeError:  # surrogates, which stored text does not have
        return None
