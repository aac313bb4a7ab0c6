"""Converts the entries of a batch to TensorFlow's tensors.

Numbers are not copied if their memory begins at a multiple of 64 bytes, as TensorFlow requires and
as that of pixels does: the tensor then shares the memory of the array, which must not be changed.
Bytes and text become `tf.string`, rows of unequal length a `tf.RaggedTensor`.

`tf.data` passes only plain arrays, so a ragged entry has two parts there: values and row splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from recordsmith.format.example import BytesArray, Column, RaggedArray
from recordsmith.loading import EntrySpec, Loader
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import FunctionError, OptionError, option

ALIGNMENT = 64  # of tensors, in bytes


def convert(batch: Mapping[str, Column]) -> dict[str, Any]:
    """Convert a batch of a loader to tensors.

    Numbers keep dtype and shape; bytes and text become `tf.string`; ragged entries become a
    `tf.RaggedTensor` with int64 row splits.

    Example:
        for batch in map(recordsmith.tensorflow.convert, loader):
            print(batch["label"].dtype)  # <dtype: 'int64'>
    """
    return {name: _tensor(entry) for name, entry in batch.items()}


def element_spec(loader: Loader) -> dict[str, Any]:
    """Return a `tf.TensorSpec` or `tf.RaggedTensorSpec` for each entry of a loader's batches.

    The length of the first axis is that of `loader.spec()`: known with `last_batch="drop"` or
    `"pad"`.

    Raises:
        OptionError: TensorFlow does not support a dtype.

    Example:
        spec = recordsmith.tensorflow.element_spec(loader)
        print(spec["image"])  # TensorSpec(shape=(None, 32, 32, 3), dtype=tf.uint8, name='image')
    """
    return {name: _entry_spec(name, entry) for name, entry in loader.spec().items()}


def _entry_spec(name: str, entry: EntrySpec) -> Any:
    try:
        dtype = tf.string
        if entry.dtype is not None:
            dtype = tf.as_dtype(entry.dtype.newbyteorder("="))
    except TypeError:
        raise OptionError(
            f"TensorFlow does not support {entry.dtype}, the dtype of {name!r}",
            value=entry.dtype,
            remedy=f"Convert it in {option('map_batches')}.",
        ) from None
    if entry.is_ragged:
        return tf.RaggedTensorSpec(entry.shape, dtype, entry.ragged_rank, row_splits_dtype=tf.int64)
    return tf.TensorSpec(entry.shape, dtype)


def _tensor(entry: Column) -> Any:
    if _is_ragged(entry):
        values, row_splits = _ragged_parts(entry)
        return tf.RaggedTensor.from_row_splits(_tensor(values), _tensor(row_splits), validate=False)
    array = _plain(entry)
    if array.dtype == object:
        return tf.convert_to_tensor(array, tf.string)
    if array.flags.c_contiguous and array.flags.writeable and not array.ctypes.data % ALIGNMENT:
        return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    return tf.convert_to_tensor(array)


def _is_ragged(entry: Column) -> bool:
    if isinstance(entry, np.ndarray) and entry.dtype == object:
        return len(entry) > 0 and isinstance(entry.flat[0], list)
    return isinstance(entry, RaggedArray)


def _plain(entry: Column) -> npt.NDArray[Any]:
    """Return an ndarray of numbers, or of bytes or str objects."""
    if isinstance(entry, BytesArray):
        return entry.to_numpy()
    array = np.asarray(entry)
    if array.dtype.kind in "SU":  # NumPy's own strings, of a user's map
        return array.astype(object)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _ragged_parts(entry: Any) -> tuple[Any, Int64Array]:
    if isinstance(entry, RaggedArray):
        return entry.values, entry.row_splits
    row_splits = offsets_from_lengths([len(texts) for texts in entry])
    values = np.empty(row_splits[-1], object)
    values[:] = list(chain.from_iterable(entry))
    return values, row_splits


class EntryParts:
    """The arrays of one entry in `tf.data`: one, or two if it is ragged.

    specs: of these arrays.
    """

    def __init__(self, name: str, spec: Any) -> None:
        self._name = name
        self._is_ragged = isinstance(spec, tf.RaggedTensorSpec)
        if not self._is_ragged and not isinstance(spec, tf.TensorSpec):
            raise OptionError(
                f"{option('element_spec')} has {spec!r:.80} for {name!r}",
                option="element_spec",
                value=spec,
                expected="a tf.TensorSpec or a tf.RaggedTensorSpec",
            )
        self._dtype = np.dtype(spec.dtype.as_numpy_dtype)
        self._shape = tuple(spec.shape)
        if not self._is_ragged:
            self.specs = [tf.TensorSpec(spec.shape, spec.dtype)]
            return
        if len(self._shape) < 2 or spec.ragged_rank != 1 or spec.row_splits_dtype != tf.int64:
            raise OptionError(
                f"{option('element_spec')} has {spec} for {name!r}",
                option="element_spec",
                value=spec,
                expected="a tf.RaggedTensorSpec of shape (batch, None, ...) with int64 row splits",
            )
        count = self._shape[0]
        splits_shape = (None if count is None else count + 1,)
        values = tf.TensorSpec((None, *self._shape[2:]), spec.dtype)
        self.specs = [values, tf.TensorSpec(splits_shape, tf.int64)]

    def split(self, entry: Any) -> list[npt.NDArray[Any]]:
        is_ragged = self._may_be_ragged(entry)
        values, *splits = _ragged_parts(entry) if is_ragged else (entry,)
        parts = [_plain(values), *splits]
        shape = parts[0].shape
        if is_ragged:
            shape = (len(parts[1]) - 1, None, *shape[1:])
        fits = (
            is_ragged == self._is_ragged
            and parts[0].dtype == self._dtype
            and len(shape) == len(self._shape)
            and all(b is None or a == b for a, b in zip(shape, self._shape, strict=True))
        )
        if not fits:
            raise FunctionError(
                f"{self._name!r} is {_described(parts[0].dtype, shape, is_ragged)} in this batch; "
                f"expected {_described(self._dtype, self._shape, self._is_ragged)}",
                function="map_batches",
                remedy=f"Return the same in all batches, or pass {option('element_spec')}.",
            )
        return parts

    def _may_be_ragged(self, entry: Any) -> bool:
        """Whether an entry is ragged; text without rows is if the spec is."""
        has_no_rows = isinstance(entry, np.ndarray) and entry.dtype == object and not len(entry)
        return self._is_ragged if has_no_rows else _is_ragged(entry)

    def join(self, parts: list[Any]) -> Any:
        """Return the tensor of the parts of `split`, which are tensors now."""
        if not self._is_ragged:
            return parts[0]
        return tf.RaggedTensor.from_row_splits(*parts, validate=False)


def _described(dtype: np.dtype[Any], shape: tuple[int | None, ...], is_ragged: bool) -> str:
    kind = "strings" if dtype.hasobject else str(dtype)
    return f"{'ragged ' * is_ragged}{kind} of shape {shape}"
