"""Gives columns the Arrow types back that they had before they were stored as features."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordsmith.dataset.arrow.columns import feature_kinds, is_list, kind_of_type
from recordsmith.dataset.arrow.library import import_pyarrow
from recordsmith.support.problems import Problems

_INDEX_BITS = 32
_DECIMAL_BITS = 128


def schema_from_text(text: str) -> Any:
    """Return the pyarrow.Schema in base64 text, as a manifest has it; ValueError if invalid."""
    pa = import_pyarrow()
    problems = Problems()
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
        if len(feature_kinds(schema, problems)) < len(schema):
            problems.add("some columns have no type of features")
    except (pa.ArrowException, ValueError, OSError) as error:
        problems.add(str(error))
    if problems:
        raise ValueError(f"invalid Arrow schema: {problems.first[0]}")
    return schema


def schema_as_text(schema: Any) -> str:
    """Return a pyarrow.Schema as base64 text."""
    return base64.b64encode(schema.serialize()).decode()


def with_types(decoded: Any, types: Any, columns: Sequence[str] | None) -> tuple[Any, Any]:
    """Return two schemas: in which columns are decoded, and with the types that they had."""
    pa = import_pyarrow()
    if columns is None:
        columns = [*types.names, *(name for name in decoded.names if name not in types.names)]
    first, restored = [], []
    for name in columns:
        field = decoded.field(name) if name in decoded.names else pa.field(name, pa.null())
        if name not in types.names:
            first.append(field)
            restored.append(field)
            continue
        arrow_type = portable_type(types.field(name).type)
        if name in decoded.names:
            first.append(field.with_type(stored_type(arrow_type)))
        restored.append(field.with_type(arrow_type))
    return pa.schema(first), pa.schema(restored)


def portable_type(arrow_type: Any, *, is_inner: bool = False) -> Any:
    """Return the type that a column is restored to, which other libraries read.

    Text and lists lose their layout (views), decimals and the indices of dictionaries their small
    widths, dictionaries their order. Within lists, dictionaries become their values, and bytes of a
    fixed size any bytes.
    """
    pa = import_pyarrow()
    is_type = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        storage = portable_type(arrow_type.storage_type, is_inner=is_inner)
        return arrow_type if storage == arrow_type.storage_type else storage
    if is_type.is_dictionary(arrow_type):
        value = portable_type(arrow_type.value_type, is_inner=is_inner)
        if is_inner or is_type.is_dictionary(value):
            return value
        # each batch has the values of its own rows, which may be more than in the original
        is_wide = arrow_type.index_type.bit_width >= _INDEX_BITS
        index = arrow_type.index_type if is_wide else pa.int32()
        return pa.dictionary(index, value)
    if is_list(arrow_type):
        value = portable_type(arrow_type.value_type, is_inner=True)
        if is_type.is_fixed_size_list(arrow_type) and arrow_type.list_size:
            return pa.list_(value, arrow_type.list_size)
        is_small = is_type.is_list(arrow_type) or is_type.is_list_view(arrow_type)
        return pa.list_(value) if is_small else pa.large_list(value)
    if is_type.is_string_view(arrow_type):
        return pa.large_string()
    is_fixed = is_inner and is_type.is_fixed_size_binary(arrow_type)
    if is_fixed or is_type.is_binary_view(arrow_type):
        return pa.large_binary()
    if is_type.is_decimal(arrow_type) and arrow_type.bit_width < _DECIMAL_BITS:
        return pa.decimal128(arrow_type.precision, arrow_type.scale)
    return arrow_type


def stored_type(arrow_type: Any) -> Any:
    """Return the type of a column of this type as it is decoded.

    One of int64, float, large_binary and large_string, or a fixed-size or large list of them.
    """
    pa = import_pyarrow()
    is_type = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        return stored_type(arrow_type.storage_type)
    if is_type.is_dictionary(arrow_type):
        return stored_type(arrow_type.value_type)
    if is_type.is_fixed_size_list(arrow_type) and arrow_type.list_size:
        return pa.list_(stored_type(arrow_type.value_type), arrow_type.list_size)
    if is_type.is_nested(arrow_type):
        return pa.large_list(stored_type(arrow_type.value_type))
    kind = kind_of_type(arrow_type)
    if kind == "bytes":
        is_text = "string" in str(arrow_type) or is_type.is_decimal(arrow_type)
        return pa.large_string() if is_text else pa.large_binary()
    return pa.int64() if kind == "int64" else pa.float32()


def restore(array: Any, arrow_type: Any) -> Any:
    """Convert an array of `stored_type(arrow_type)` to `arrow_type`, a `portable_type`."""
    pa = import_pyarrow()
    from pyarrow import compute

    is_type = pa.types
    if array.type == arrow_type:
        return array
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, restore(array, arrow_type.storage_type))
    if is_type.is_dictionary(arrow_type):
        encoded = restore(array, arrow_type.value_type).dictionary_encode()
        indices = encoded.indices.cast(arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
    if is_type.is_fixed_size_list(arrow_type):
        values, nulls = array.values, None
        if array.null_count:  # the values of these rows are zeros or empty
            nulls = array.is_null()
            is_filler = np.repeat(nulls.to_numpy(zero_copy_only=False), arrow_type.list_size)
            values = compute.if_else(pa.array(~is_filler), values, None)
        values = restore(values, arrow_type.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=arrow_type, mask=nulls)
    if is_type.is_nested(arrow_type):
        values = restore(array.values, arrow_type.value_type)
        nulls = array.is_null() if array.null_count else None
        lists = pa.LargeListArray.from_arrays(array.offsets, values, mask=nulls)
        return lists.cast(arrow_type)
    if is_type.is_decimal(arrow_type):
        return array.cast(pa.string()).cast(arrow_type)
    if is_type.is_temporal(arrow_type):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        return array.cast(width).view(arrow_type)
    return array.cast(arrow_type)
