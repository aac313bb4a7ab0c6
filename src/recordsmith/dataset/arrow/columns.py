"""Converts Arrow tables to columns that can be encoded as Examples.

| Arrow | feature |
| --- | --- |
| bool, integers | int64 |
| floats | float; float64 is rounded to float32 |
| strings, binaries, and dictionaries of them | bytes; text as UTF-8 |
| dictionaries of other types | their values |
| timestamps, times, dates, durations | int64 in the unit of the type |
| decimals | int64 if they have no fraction and fit, otherwise bytes as text |
| lists | any number of values |
| fixed-size lists | n values |
| null elements of a column | the record lacks the feature |

Null elements within a list, structs, maps, unions and lists of lists are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.arrow.library import ArrowStream, import_pyarrow
from recordsmith.format.example import BytesArray, Column, Kind, RaggedArray
from recordsmith.support.buffers import offsets_from_lengths
from recordsmith.support.errors import OptionError
from recordsmith.support.problems import Problems

_INT64_DIGITS = 18  # that always fit int64


class ArrowColumns:
    """Converts batches of one Arrow schema.

    kinds: the kind of feature by column name; columns of type null are left out.
    """

    def __init__(self, schema: Any) -> None:
        """Raise OptionError for the columns of a pyarrow.Schema that a feature cannot store."""
        self._pa = import_pyarrow()
        problems = Problems()
        self.kinds = feature_kinds(schema, problems)
        if problems:
            raise OptionError(
                "some columns cannot be stored as features:\n  " + "\n  ".join(problems),
                option="columns",
            )

    def convert(
        self, batch: Any, first_row: int = 0
    ) -> tuple[dict[str, Column], dict[str, npt.NDArray[np.bool_]]]:
        """Convert a pyarrow.RecordBatch.

        Args:
            first_row: the number of its first row in the whole table, for errors.

        Returns:
            The columns by name, which share the memory of the batch where the layouts agree; and
            the validity of those with nulls: bool, (rows,).

        Raises:
            OptionError: a value does not fit, or a list contains null; names the column and row.
        """
        columns: dict[str, Column] = {}
        validity: dict[str, npt.NDArray[np.bool_]] = {}
        for name in self.kinds:
            try:
                array = plain(batch.column(name))
                if array.null_count:
                    validity[name] = as_numpy(array.is_valid())
                columns[name] = self._column(array)
            except _RowError as error:
                raise OptionError(
                    f"column {name!r}, row {first_row + error.row}: {error.problem}",
                    option="columns",
                    value=name,
                ) from None
            except self._pa.ArrowException as error:
                raise OptionError(
                    f"column {name!r}, rows from {first_row}, cannot be converted from "
                    f"{batch.column(name).type!s:.80}: {error}",
                    option="columns",
                    value=name,
                    remedy="Cast it to numbers, text or lists of them.",
                ) from None
        return columns, validity

    def _column(self, array: Any) -> Any:
        pa = self._pa
        if not is_list(array.type):
            return self._values(array)
        if pa.types.is_fixed_size_list(array.type) and not array.null_count:
            size = array.type.list_size
            values = plain(array.flatten())
            if values.null_count:
                raise _RowError(_first_null(values) // size, "a list contains null")
            try:
                inner: Any = self._column(values)
            except _RowError as error:
                raise _RowError(error.row // size, error.problem) from None
            return inner.reshape(len(array), size)
        values = plain(array.flatten())  # without the values of null rows
        splits = offsets_from_lengths(self._values(array.value_lengths()))
        if values.null_count:
            row = int(np.searchsorted(splits, _first_null(values), side="right")) - 1
            raise _RowError(row, "a list contains null")
        try:
            flat: Any = self._column(values)
        except _RowError as error:
            row = int(np.searchsorted(splits, error.row, side="right")) - 1
            raise _RowError(row, error.problem) from None
        return RaggedArray(flat, splits)

    def _values(self, array: Any) -> Any:
        """Return the values of an array that is not a list; zeros or empty bytes for nulls."""
        pa = self._pa
        array = as_stored(array)
        if _is_bytes(pa, array.type):
            array = array.cast(pa.large_binary())
            _, offsets, data = array.buffers()
            numbers = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
            content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
            if not len(array):
                numbers = np.zeros(1, np.int64)
            return BytesArray(content, numbers)
        if pa.types.is_float16(array.type):
            array = array.cast(pa.float32())
        numbers = as_numpy(array)
        if array.null_count:
            numbers = np.where(as_numpy(array.is_valid()), numbers, numbers.dtype.type(0))
        if numbers.dtype == np.uint64 and len(numbers) and numbers.max() >= 2**63:
            row = int((numbers >= 2**63).argmax())
            raise _RowError(row, f"{numbers[row]} does not fit int64")
        return numbers


def feature_kinds(schema: Any, problems: Problems, where: str = "") -> dict[str, Kind]:
    """Return the kind of each column of a schema, none of type null; the rest are `problems`."""
    pa = import_pyarrow()
    kinds: dict[str, Kind] = {}
    for field in schema:
        if pa.types.is_null(field.type):
            continue
        try:
            kinds[field.name] = kind_of_type(field.type)
        except TypeError as error:
            problems.add(f"{where}column {field.name!r} has the type {field.type!s:.80}: {error}")
    for name in sorted(name for name, times in Counter(schema.names).items() if times > 1):
        problems.add(f"{where}column {name!r} occurs more than once")
    return kinds


def kind_of_type(arrow_type: Any, *, is_inner: bool = False) -> Kind:
    """Return the kind of feature of an Arrow type."""
    pa = import_pyarrow()
    is_type = pa.types
    if is_type.is_dictionary(arrow_type):
        return kind_of_type(arrow_type.value_type, is_inner=is_inner)
    if isinstance(arrow_type, pa.BaseExtensionType):
        return kind_of_type(arrow_type.storage_type, is_inner=is_inner)
    if is_list(arrow_type):
        if is_inner:
            raise TypeError("lists of lists have no equivalent; flatten the inner lists")
        return kind_of_type(arrow_type.value_type, is_inner=True)
    if is_type.is_boolean(arrow_type) or is_type.is_integer(arrow_type):
        return "int64"
    if is_type.is_temporal(arrow_type) and not is_type.is_interval(arrow_type):
        return "int64"
    if is_type.is_floating(arrow_type):
        return "float"
    if is_type.is_decimal(arrow_type):
        fits = arrow_type.scale == 0 and arrow_type.precision <= _INT64_DIGITS
        return "int64" if fits else "bytes"
    if _is_bytes(pa, arrow_type):
        return "bytes"
    if is_type.is_struct(arrow_type):
        raise TypeError("a struct has no equivalent; flatten it, as pyarrow.Table.flatten does")
    raise TypeError("it has no equivalent; convert it to numbers, text or lists of them")


def read_stream(
    table: ArrowStream,
) -> Iterator[tuple[dict[str, Column], dict[str, npt.NDArray[np.bool_]]]]:
    """Yield the columns and validity of each batch of a table; errors as in `ArrowColumns`."""
    pa = import_pyarrow()
    try:
        reader = pa.RecordBatchReader.from_stream(table)
        columns = ArrowColumns(reader.schema)
        row = 0
        for batch in reader:
            yield columns.convert(batch, row)
            row += len(batch)
    except pa.ArrowException as error:
        raise OptionError(f"cannot read the table: {error}", option="columns") from None


class _RowError(Exception):
    """A value of a row cannot be stored."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(row, problem)
        self.row = row
        self.problem = problem


def as_stored(array: Any) -> Any:
    """Return a column without extension type and dictionary, with numbers for times and decimals.

    Decimals that may not fit int64 become text.
    """
    pa = import_pyarrow()
    array = plain(array)
    if pa.types.is_decimal(array.type):
        return array.cast(pa.int64() if kind_of_type(array.type) == "int64" else pa.string())
    if not pa.types.is_temporal(array.type):
        return array
    return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())


def plain(array: Any) -> Any:
    """Return an array without extension type and dictionary, in which nulls may hide."""
    pa = import_pyarrow()
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            values = array.dictionary
            if str(values.type).endswith("_view"):  # pyarrow cannot look values up in views
                is_text = pa.types.is_string_view(values.type)
                values = values.cast(pa.large_string() if is_text else pa.large_binary())
                array = pa.DictionaryArray.from_arrays(array.indices, values)
            array = array.dictionary_decode()
        else:
            return array


def is_list(arrow_type: Any) -> bool:
    """Whether a type is that of lists, in any layout."""
    names = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    return _is_any(import_pyarrow(), arrow_type, *names)


def _is_bytes(pa: Any, arrow_type: Any) -> bool:
    texts = ("string", "large_string", "string_view")
    binaries = ("binary", "large_binary", "binary_view", "fixed_size_binary")
    return _is_any(pa, arrow_type, *texts, *binaries)


def _is_any(pa: Any, arrow_type: Any, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(arrow_type) for name in names)


def _first_null(array: Any) -> int:
    return int(as_numpy(array.is_null()).argmax())


def as_numpy(array: Any) -> npt.NDArray[Any]:
    """The values of numbers or bools, anything for nulls.

    `to_numpy` and Python values for pyarrow would import pandas where it is installed.
    """
    start, stop = array.offset, array.offset + len(array)
    data = array.buffers()[1]
    if import_pyarrow().types.is_boolean(array.type):
        bits = np.frombuffer(data or b"", np.uint8)
        return np.unpackbits(bits, bitorder="little")[start:stop].view(bool)
    return np.frombuffer(data or b"", array.type.to_pandas_dtype())[start:stop]
