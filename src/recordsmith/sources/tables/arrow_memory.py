"""Bounds the memory of Arrow files, in which a value that is stored once may be repeated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recordsmith.dataset import import_pyarrow


def memory_of_groups(file: Any, groups: Iterable[int]) -> int:
    """About how many bytes row groups of a Parquet file take, if each text is different."""
    widths = [max(8, file.schema.column(number).length) for number in range(len(file.schema))]
    size_bytes = 0
    for group in map(file.metadata.row_group, groups):
        for number, width in enumerate(widths):
            chunk = group.column(number)
            size_bytes += chunk.total_uncompressed_size + chunk.num_values * width
    return size_bytes


def rows_that_fit(file: Any, groups: Iterable[int], size_bytes: int) -> int:
    """How many rows of row groups take at most so many bytes, whatever texts they repeat; or 1."""
    leaves = range(len(file.schema))
    texts = [n for n in leaves if file.schema.column(n).physical_type == "BYTE_ARRAY"]
    longest = 1
    for group in map(file.metadata.row_group, groups):
        longest = max(longest, sum(group.column(n).total_uncompressed_size for n in texts))
    return max(1, size_bytes // longest)


def decoded_bytes(array: Any) -> int:
    """How many bytes the values of an array take if each repeated one is stored again."""
    from pyarrow import compute

    pa = import_pyarrow()
    if pa.types.is_dictionary(array.type):
        lengths = compute.binary_length(array.dictionary.cast("large_binary"))
        return int(compute.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return sum(map(decoded_bytes, array.flatten()))
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return decoded_bytes(array.flatten())
    try:
        return int(array.nbytes)  # without what a slice shares with others
    except pa.ArrowException:  # of views, in older versions
        return int(array.get_total_buffer_size())
