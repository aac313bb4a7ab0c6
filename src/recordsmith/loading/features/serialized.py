"""A feature of serialised tensors, as `tf.io.serialize_tensor` of TensorFlow writes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, RaggedArray, Schema
from recordsmith.format.example.serialized_tensor import (
    TENSOR_DTYPES,
    SerializedTensor,
    Sides,
    TensorSchema,
    merged_shape,
    numbers_of,
    read_tensor,
    tensor_type,
)
from recordsmith.loading.features.feature import (
    BatchRows,
    ColumnRequest,
    ValueFeature,
    number_of_images,
)
from recordsmith.loading.features.numbers import corrupt, number_type
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import DataError, Defect, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import is_whole

_Result = TypeVar("_Result")
_Tensors: TypeAlias = tuple[npt.NDArray[Any] | BytesArray, list[tuple[int, ...]]]


@dataclass(frozen=True)
class Serialized(ValueFeature):
    """Tensors that `tf.io.serialize_tensor` wrote: an array of each, of its own dtype.

    If each record has several tensors, such as the steps of a window of `Episodes`, the second axis
    counts them: (batch, count, *shape). One without bytes, as `Episodes` pads with, is 0.

    A tensor of another dtype or shape is an error, and so is one with fewer values than its shape
    has, for which TensorFlow repeats the last value.

    Attributes:
        key: the key of the feature in the records; its values are serialised tensors.
        shape: of each tensor. (3, 4) gives an ndarray, (batch, 3, 4). (None, 4) gives a RaggedArray
            whose row of a record is (any length, 4); the other sides must not be 0. "ragged"
            accepts any shapes: a RaggedArray of the values of each tensor, in C order, and
            `<name>_shape`, a RaggedArray of int64. Default: of the first two, that of the records.
        dtype: of each tensor, such as "float32", "bfloat16" (which needs the package ml_dtypes), or
            "string" for byte strings, as a BytesArray. Default: that of the records.

    Example:
        features = {"embedding": rs.Serialized("embedding", shape=(512,), dtype="float32")}
    """

    key: str
    shape: Sides | Literal["ragged"] | None = None
    dtype: str | None = None
    count: int | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shape = self.shape
        is_shape = isinstance(shape, tuple) and all(
            (side is None and place == 0 and 0 not in shape) or (is_whole(side) and side >= 0)
            for place, side in enumerate(shape)
        )  # any number of rows without values would be any number
        if not is_shape and shape not in (None, "ragged"):
            raise OptionError(
                option="shape",
                value=shape,
                expected="a tuple of lengths such as (3, 4), of which the first may be None, or "
                "'ragged'",
            )
        if self.dtype is not None:
            check_word("dtype", self.dtype, TENSOR_DTYPES)
        if self.dtype == "bfloat16":
            number_type(self.dtype)  # needs a package

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(("bytes",), () if self.count is None else (self.count,))}

    def outputs(self, name: str) -> tuple[str, ...]:
        return (name, f"{name}_shape") if self.shape == "ragged" else (name,)

    def for_schema(self, schema: Schema) -> Serialized:
        key, known = self.key, schema.columns.get(self.key)
        if known is None or known.kind != "bytes" or not known.max_length:
            return self
        shape, dtype, tensor = self.shape, self.dtype, known.tensor
        if tensor is not None:
            shape = tensor.shape if shape is None else shape
            dtype = tensor.dtype if dtype is None else dtype
            declared = TensorSchema(dtype, () if shape == "ragged" else shape)
            is_dtype = dtype is not None and tensor.dtype in (None, dtype)
            is_shape = shape == "ragged" or tensor.shape is None or _fits(shape, tensor.shape)
            if not (is_dtype and is_shape and may_be_serialized(declared)):
                name = "shape" if is_dtype else "dtype"
                other = f"pass {option('shape', 'ragged')}" if is_dtype else "load it with rs.Bytes"
                raise OptionError(
                    f"feature {key!r} has tensors {tensor}",
                    option=name,
                    value=getattr(self, name),
                    expected=f"the {name} of all of them",
                    remedy=f"Leave {option(name)} out, or {other}.",
                )
        elif known.content != "raw" or shape is None or dtype is None:
            raise OptionError(
                f"feature {key!r} has {known.content} values, not only serialised tensors",
                option="features",
                value=key,
                expected="values of tf.io.serialize_tensor",
                remedy=f"Pass {option('shape')} and {option('dtype')} if some are."
                if known.content == "raw"
                else "",
            )
        count = number_of_images(None, key, schema)
        if count is not None and (shape == "ragged" or None in (shape or ())):
            raise OptionError(
                f"feature {key!r} has {count} tensors in each record",
                option="shape",
                value=shape,
                expected="a shape without None",
            )
        feature = replace(self, shape=shape, dtype=dtype)
        object.__setattr__(feature, "count", count)
        return feature

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column = rows.columns[self.key]
        assert isinstance(column, BytesArray)
        if rows.count and (self.shape is None or self.dtype is None):
            raise OptionError(
                f"feature {self.key!r} needs {option('shape')} and {option('dtype')}, as the first "
                "records do not have it",
                option="dtype",
                value=self.dtype,
            )
        column = column.reshape(-1)
        values, shapes = self._tensors_of_equal_headers(column) or self._tensors(column)
        shape = () if self.shape is None else self.shape
        if shape == "ragged":
            sides = RaggedArray(
                np.array(list(chain.from_iterable(shapes)), np.int64), _splits(map(len, shapes))
            )
            return RaggedArray(values, _splits(map(math.prod, shapes))), sides
        if None in shape:
            splits = _splits(sides[0] for sides in shapes)
            numbers = values.reshape(int(splits[-1]), *shape[1:])  # type: ignore[arg-type]
            return (RaggedArray(numbers, splits),)
        counts = (rows.count,) if self.count is None else (rows.count, self.count)
        return (values.reshape(*counts, *shape),)  # type: ignore[arg-type]

    def _tensors_of_equal_headers(self, column: BytesArray) -> _Tensors | None:
        """Return all values, end to end, in one pass, if the bytes before the values are equal."""
        lengths = column.lengths
        if not len(column) or not lengths[0] or (lengths != lengths[0]).any():
            return None
        with suppress(DataError):  # raised for its row, where tensors are read one by one
            first = self._read(column[0], 0)
            if first.has_content:
                table = column.packed().buffer.reshape(len(column), -1)
                if (table[:, : first.start] == table[0, : first.start]).all():
                    values = table[:, first.start :].copy()  # aligned
                    return numbers_of(values.reshape(-1), first.dtype), [first.shape] * len(column)
        return None

    def _tensors(self, column: BytesArray) -> _Tensors:
        """Return all values, end to end, read one by one; zeros where one has no bytes."""
        is_text, dtype = self.dtype == "string", self.dtype or "float32"
        parts: list[Any] = []
        shapes: list[tuple[int, ...]] = []
        for number, data in enumerate(column.views()):
            if len(data) or self.count is None:
                row = number // (self.count or 1)
                tensor = self._read(data, row)
                parts.append(self._located(tensor.values, row))
                shapes.append(tensor.shape)
            else:
                size = math.prod(self.shape)  # type: ignore[arg-type]
                parts.append([b""] * size if is_text else np.zeros(size, tensor_type(dtype)))
        if is_text:
            return BytesArray.from_values(list(chain.from_iterable(parts))), shapes
        return np.concatenate([np.empty(0, tensor_type(dtype)), *parts]), shapes

    def _read(self, data: BytesLike, row: int) -> SerializedTensor:
        """Read one tensor, and check its dtype and shape."""
        tensor = self._located(partial(read_tensor, data), row)
        found = TensorSchema(tensor.dtype, tensor.shape)
        declared = TensorSchema(self.dtype, None if self.shape == "ragged" else self.shape)
        if found.is_of(declared):
            return tensor
        name, defect, remedy = "dtype", Defect.FEATURE_VALUE, ""
        if tensor.dtype == self.dtype:
            name, defect = "shape", Defect.FEATURE_SHAPE
            remedy = f"Pass a shape such as (None, 4), or {option('shape', 'ragged')}."
        problem = f"has a tensor of another {name}"
        raise corrupt(self.key, problem, row, str(found), str(declared), remedy, defect)

    def _located(self, function: Callable[[], _Result], row: int) -> _Result:
        try:
            return function()
        except DataError as error:
            error.problem = f"feature {self.key!r}: {error.problem}"
            error.feature, error.record = self.key, row
            raise


def _fits(shape: Sides | None, sides: Sides) -> bool:
    """Whether tensors can have a shape; None for any side."""
    return merged_shape(shape, sides) in (shape, sides)


def _splits(lengths: Iterable[int]) -> Int64Array:
    return offsets_from_lengths(np.fromiter(lengths, np.int64))


def may_be_serialized(tensor: TensorSchema) -> bool:
    """Whether `Serialized` reads such tensors without options."""
    dtype, shape = tensor.dtype, tensor.shape
    if dtype is None or shape is None or None in shape[1:]:
        return False
    return None not in shape or 0 not in shape
