"""Gives columns the Arrow types back that they had before they were stored as features."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from recordsmith.arrow.columns import feature_kinds, kind_of_type
from recordsmith.arrow.library import import_pyarrow
from recordsmith.errors import Problems


def schema_from_text(text: str) -> Any:
    """Return the pyarrow.Schema in base64 text, as a manifest has it.

    Raises:
        ValueError: it is invalid.
    """
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


def with_types(decoded: Any, types: Any, *, are_chosen: bool) -> tuple[Any, Any]:
    """Return two schemas: in which columns are decoded, and with the types that they had.

    Args:
        decoded: pyarrow.Schema of the columns as they would be decoded without `types`.
        types: pyarrow.Schema of the types that some columns had. A column that no record has is
            added, as it had only nulls.
        are_chosen: whether the columns of `decoded` were chosen, so that none is added.
    """
    pa = import_pyarrow()
    names = list(decoded.names)
    if not are_chosen:
        names = [*types.names, *(name for name in names if name not in types.names)]
    first, restored = [], []
    for name in names:
        field = decoded.field(name) if name in decoded.names else pa.field(name, pa.null())
        if name not in types.names:
            first.append(field)
            restored.append(field)
            continue
        arrow_type = types.field(name).type
        if name in decoded.names:
            first.append(field.with_type(stored_type(arrow_type)))
        restored.append(field.with_type(arrow_type))
    return pa.schema(first), pa.schema(restored)


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
    if is_type.is_fixed_size_list(arrow_type):
        return pa.list_(stored_type(arrow_type.value_type), arrow_type.list_size)
    if is_type.is_nested(arrow_type):
        return pa.large_list(stored_type(arrow_type.value_type))
    kind = kind_of_type(arrow_type)
    if kind == "bytes":
        is_text = "string" in str(arrow_type) or is_type.is_decimal(arrow_type)
        return pa.large_string() if is_text else pa.large_binary()
    return pa.int64() if kind == "int64" else pa.float32()


def restore(array: Any, arrow_type: Any) -> Any:
    """Convert an array of `stored_type(arrow_type)` to `arrow_type`.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    pa = import_pyarrow()
    from pyarrow import compute

    is_type = pa.types
    if array.type == arrow_type:
        return array
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, restore(array, arrow_type.storage_type))
    if is_type.is_dictionary(arrow_type):
        encoded = restore(array, arrow_type.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            encoded.indices.cast(arrow_type.index_type),
            encoded.dictionary,
            ordered=arrow_type.ordered,
        )
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
        if is_type.is_list_view(arrow_type) or is_type.is_large_list_view(arrow_type):
            return _list_view(array, values, nulls, arrow_type)
        lists = pa.LargeListArray.from_arrays(array.offsets, values, mask=nulls)
        return lists.cast(arrow_type)
    if is_type.is_decimal(arrow_type):
        return array.cast(pa.string()).cast(arrow_type)
    if is_type.is_temporal(arrow_type):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        return array.cast(width).view(arrow_type)
    return array.cast(arrow_type)


def _list_view(array: Any, values: Any, nulls: Any, arrow_type: Any) -> Any:
    """Convert lists to a list view, which pyarrow cannot cast them to."""
    pa = import_pyarrow()
    is_large = pa.types.is_large_list_view(arrow_type)
    width = pa.int64() if is_large else pa.int32()
    starts = array.offsets.slice(0, len(array)).cast(width)
    sizes = array.value_lengths().fill_null(0).cast(width)
    kind = pa.LargeListViewArray if is_large else pa.ListViewArray
    return kind.from_arrays(starts, sizes, values, type=arrow_type, mask=nulls)
