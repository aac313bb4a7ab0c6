"""Types of columns in Spark and in Arrow."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from recordsmith.dataset import feature_kinds, import_pyarrow
from recordsmith.format.example import Kind
from recordsmith.support.errors import OptionError
from recordsmith.support.problems import Problems

_MAX_DIGITS = 38  # of decimals of Spark


def spark_schema(arrow_schema: Any) -> StructType:
    """Return the schema of Spark for the columns of a dataset: arrays for all lists."""
    from pyspark.sql.pandas.types import from_arrow_schema

    pa = import_pyarrow()
    fields = [
        pa.field(field.name, _spark_type(pa, field.name, field.type)) for field in arrow_schema
    ]
    return from_arrow_schema(pa.schema(fields))


def _spark_type(pa: Any, name: str, arrow_type: Any) -> Any:
    """Return the Arrow type in which Spark takes a column."""
    arrow_type = _plain(pa, arrow_type)
    if pa.types.is_nested(arrow_type):
        return pa.list_(_spark_type(pa, name, arrow_type.value_type))
    if pa.types.is_decimal(arrow_type) and arrow_type.precision > _MAX_DIGITS:
        raise OptionError(
            f"column {name!r} has the type {arrow_type}, and decimals of Spark have at most "
            f"{_MAX_DIGITS} digits",
            option="restore_types",
            value=name,
            remedy="Read it as text, without restore_types, or select other columns.",
        )
    similar = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.int64(),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
        pa.time32("s"): pa.time64("us"),
        pa.time32("ms"): pa.time64("us"),
        **dict.fromkeys((pa.large_string(), pa.string_view()), pa.string()),
        **dict.fromkeys((pa.large_binary(), pa.binary_view()), pa.binary()),
    }
    return similar.get(arrow_type, arrow_type)


def in_stored_unit(arrow_type: Any, stored: Any) -> Any:
    """Return a type of Spark's batches, but with times as they are stored."""
    pa = import_pyarrow()
    stored = _plain(pa, stored)
    if pa.types.is_list(arrow_type):
        return pa.list_(in_stored_unit(arrow_type.value_type, stored.value_type))
    return stored if pa.types.is_temporal(stored) else arrow_type


def _plain(pa: Any, arrow_type: Any) -> Any:
    """Return a type without extension and dictionary."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _plain(pa, arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return _plain(pa, arrow_type.value_type)
    return arrow_type


def batch_schema(schema: StructType) -> Any:
    """Return the pyarrow.Schema of the batches that Spark takes, or sends, for a schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def check_types(schema: StructType, *, may_nest: bool) -> dict[str, Kind]:
    """Return the kind of feature of each column."""
    problems = Problems()
    types = batch_schema(schema)
    if may_nest:
        types = import_pyarrow().schema([(field.name, _flat(field.type)) for field in types])
    kinds = feature_kinds(types, problems)
    if problems:
        raise OptionError(
            "some columns cannot be features:\n  " + "\n  ".join(problems), option="schema"
        )
    return kinds


def _flat(arrow_type: Any) -> Any:
    """Return the inner type of a list of lists; other types as they are."""
    is_list = import_pyarrow().types.is_list
    is_nested = is_list(arrow_type) and is_list(arrow_type.value_type)
    return arrow_type.value_type if is_nested else arrow_type
