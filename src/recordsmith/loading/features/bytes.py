"""Features of byte strings: as stored, as text, or as arrays of one shape."""

from __future__ import annotations

import codecs
import math
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeGuard

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, RaggedArray, Schema
from recordsmith.format.example.serialized_tensor import describe_tensor
from recordsmith.loading.features.feature import (
    BatchRows,
    ColumnRequest,
    ValueFeature,
    number_of_images,
)
from recordsmith.loading.features.numbers import check_default, check_shape, corrupt, row_of
from recordsmith.support.errors import Defect, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.words import count as counted

_TYPES_BY_SIZE = {
    1: ("uint8",),
    2: ("uint16", "float16"),
    4: ("float32", "int32"),
    8: ("float64", "int64"),
}


def is_number_type(dtype: object) -> TypeGuard[str]:
    """Return whether NumPy knows a type of numbers by this name."""
    try:
        return dtype is not None and np.dtype(dtype).kind in "biufc"  # type: ignore[call-overload]
    except TypeError:
        return False


def types_of_size(value_count: int, byte_count: int) -> tuple[str, ...]:
    """Return the usual types of so many values in so many bytes."""
    if not value_count or byte_count % value_count:
        return ()
    return _TYPES_BY_SIZE.get(byte_count // value_count, ())


def _layouts(byte_count: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Return up to three dtypes and shapes of so many bytes, those like the declared ones first."""
    found = [f"{name} {shape}" for name in types_of_size(math.prod(shape), byte_count)]
    for name in (dtype.name, "uint8", "float32", "int64"):
        count, rest = divmod(byte_count, np.dtype(name).itemsize)
        if count and not rest:
            is_like = name in (dtype.name, "uint8")
            other = _similar_shape(count, shape) if is_like else (count,)
            if name != "uint8" or len(other) > 1:  # any bytes are a vector of uint8
                found.append(f"{name} {other}")
    return " or ".join(list(dict.fromkeys(found))[:3])


def _similar_shape(count: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape of so many numbers: other rows, else a square image, else a vector."""
    row = math.prod(shape[1:])
    if row > 1 and count % row == 0:
        return (count // row, *shape[1:])
    for channels in (1, 3, 4) if len(shape) in (2, 3) else ():
        side = math.isqrt(count // channels)
        if side * side * channels == count and side > 1:
            return (side, side) if channels == 1 else (side, side, channels)
    return (count,)


@dataclass(frozen=True)
class Bytes(ValueFeature):
    """Byte strings: a BytesArray, (batch, *shape), or a RaggedArray of byte strings.

    Attributes:
        key: the key of the feature in the records.
        shape: of the values of a record: () for one, (n,) for n, "ragged" for any number.
        default: the value for records without the feature; without it, a ragged row is empty.
        choose: "random" for one of the values of a record, such as its captions, all equally
            likely; another one in each epoch, the same ones with the same seed.

    Raises:
        OptionError: `choose` is given with another shape than ().

    Example:
        loader = rs.Loader(dataset, {"file": rs.Bytes("image/filename")}, batch_size=8)
        print(next(iter(loader))["file"][0])
    """

    key: str
    shape: tuple[int, ...] | Literal["ragged"] = ()
    _: KW_ONLY
    default: Any = None
    choose: Literal["random"] | None = None

    def __post_init__(self) -> None:
        if self.choose is None:
            return
        check_word("choose", self.choose, ("random",))
        if self.shape != ():
            expected = f"() with {option('choose', 'random')}"
            raise OptionError(option="shape", value=self.shape, expected=expected)

    def requests(self) -> dict[str, ColumnRequest]:
        if self.choose is not None:
            default = None if self.default is None else [self.default]
            return {self.key: ColumnRequest(("bytes",), "ragged", default, needs_value=True)}
        return {self.key: ColumnRequest(("bytes",), self.shape, self.default)}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        return (self._column(rows),)

    def _column(self, rows: BatchRows) -> Any:
        """Return the column, with the chosen value of each row."""
        column: Any = rows.columns[self.key]
        if self.choose is None:
            return column
        counts = column.lengths
        draws = rows.random_numbers.uniform(f"{self.key}/choose", 1)[:, 0]
        numbers = column.row_splits[:-1] + (draws * counts).astype(np.int64)
        if counts.all():
            return column.values[numbers]
        if self.default is None:
            problem = f"has no values to {option('choose')} from"
            remedy = f"Pass a {option('default')}."
            raise corrupt(self.key, problem, int(np.argmin(counts)), "none", remedy=remedy)
        return BytesArray.from_values(
            column.values[number] if count else self.default
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        )


@dataclass(frozen=True)
class Raw(ValueFeature):
    """Arrays stored as bytes, as `ndarray.tobytes` returns them: (batch, *shape).

    If each record has several byte strings, such as the steps of a window of `Episodes`, the first
    axis counts them. One without bytes, as `Episodes` pads with, is 0.

    Attributes:
        key: the key of the feature in the records; its value is one byte string, or `shape[0]`.
        shape: of the array of a record, in C order.
        dtype: of its numbers, such as "uint8" or "float32"; little-endian unless it is explicitly
            big-endian, such as ">f4".
        default: all numbers of records without the feature or without bytes, such as 0 or NaN.

    Example:
        features = {"pixels": rs.Raw("pixels", shape=(28, 28), dtype="uint8")}
    """

    key: str
    shape: tuple[int, ...]
    dtype: str
    _: KW_ONLY
    default: float | None = None
    count: int | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_number_type(self.dtype):
            raise OptionError(
                option="dtype", value=self.dtype, expected="a numeric dtype such as 'float32'"
            )
        check_shape(self.shape, "() or (3, 4)")
        if self.default is not None and np.ndim(self.default):
            raise OptionError(option="default", value=self.default, expected="one number")
        check_default(self.default, self.dtype)

    def requests(self) -> dict[str, ColumnRequest]:
        shape = () if self.count is None else (self.count,)
        default = None if self.default is None else b""
        return {self.key: ColumnRequest(("bytes",), shape, default)}

    def for_schema(self, schema: Schema) -> Raw:
        if number_of_images(None, self.key, schema) is None or not self.shape:
            return self
        feature = copy(self)
        object.__setattr__(feature, "count", self.shape[0])
        return feature

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column = rows.columns[self.key]
        assert isinstance(column, BytesArray)
        stored = np.dtype(self.dtype)
        if stored.byteorder != ">":
            stored = stored.newbyteorder("<")
        shape = self.shape if self.count is None else self.shape[1:]
        size = math.prod(shape) * stored.itemsize
        column = column.reshape(-1)
        lengths = column.lengths
        is_whole = lengths == size
        may_lack = self.count is not None or self.default is not None
        is_good = is_whole | (lengths == 0) if may_lack else is_whole
        if not is_good.all():
            number = int(np.argmin(is_good))
            data, row = column[number], number // (self.count or 1)
            tensor = describe_tensor(data)
            layouts = _layouts(len(data), shape, stored)
            remedy = f"The bytes fit {layouts}." if layouts else ""
            raise corrupt(
                self.key,
                "has the wrong size",
                row,
                f"{counted(len(data), 'byte')}{f' ({tensor})' if tensor else ''}",
                f"{counted(size, 'byte')} for shape {shape} of {stored.name}",
                f"Read it with rs.Serialized({self.key!r})." if tensor else remedy,
                Defect.FEATURE_SHAPE,
            )
        numbers = _in_place(column.packed().buffer, stored)
        if not is_whole.all():
            stored_numbers = numbers.reshape(np.count_nonzero(is_whole), *shape)
            numbers = np.full((len(column), *shape), self.default or 0, numbers.dtype)
            numbers[is_whole] = stored_numbers
        return (numbers.reshape(rows.count, *self.shape),)


def _in_place(memory: npt.NDArray[np.uint8], stored: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the numbers in native byte order, without a copy if possible."""
    if stored.kind == "b":
        return memory.astype(np.bool_)
    if memory.ctypes.data % stored.alignment:  # unaligned arrays break C code
        memory = memory.copy()
    native: npt.NDArray[Any] = memory.view(stored).astype(stored.newbyteorder("="), copy=False)
    return native


@dataclass(frozen=True)
class Text(Bytes):
    """Text: an ndarray of str objects, (batch, *shape); of lists of str, (batch,), if ragged.

    Attributes:
        key, shape, default, choose: as in `Bytes`.
        errors: how invalid UTF-8 is handled, as in `bytes.decode`: "strict" for an error,
            "replace", "ignore", "surrogateescape", "backslashreplace".

    Example:
        loader = rs.Loader(dataset, {"name": rs.Text("image/class/text")}, batch_size=8)
        print(next(iter(loader))["name"][0])
    """

    _: KW_ONLY
    errors: str = "strict"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            codecs.lookup_error(self.errors)
        except (LookupError, TypeError):
            raise OptionError(
                option="errors",
                value=self.errors,
                expected="'strict', 'replace', 'ignore' or another error handler of bytes.decode",
            ) from None

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column = self._column(rows)
        texts = self._decoded(column)
        if isinstance(column, RaggedArray):
            lists = np.empty(len(column), object)
            for row, (start, stop) in enumerate(pairwise(column.row_splits.tolist())):
                lists[row] = texts[start:stop]
            return (lists,)
        array = np.empty(len(texts), object)
        array[:] = texts
        return (array.reshape(column.shape),)

    def _decoded(self, column: Column) -> list[str]:
        values = column.values if isinstance(column, RaggedArray) else column.reshape(-1)
        assert isinstance(values, BytesArray)
        texts = []
        for value in values.tolist():
            try:
                texts.append(value.decode("utf-8", self.errors))
            except UnicodeDecodeError as error:
                raise corrupt(
                    self.key,
                    f"is not UTF-8: byte {error.start} is 0x{value[error.start]:02x} "
                    f"({error.reason})",
                    row_of(column, len(texts)),
                    f"{value!r:.80}",
                    remedy=f"Load it as Bytes, or pass {option('errors', 'replace')}.",
                ) from None
        return texts
