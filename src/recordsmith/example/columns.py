"""A whole batch of Examples <-> columns: arrays whose first axis is the example.

`ColumnDecoder` collects payloads from any number of buffers; `decode_columns` is the same for one
buffer. `encode_columns` is the way back. The loops over records are compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import kernel
from recordsmith.example.codec import as_array, as_values
from recordsmith.example.payload import (
    KIND_NAMES,
    KIND_NUMBERS,
    PAYLOAD_KINDS,
    Kind,
    malformed_example,
    not_an_example,
)
from recordsmith.example.values import BytesArray, Column, Ragged

_GOOD, _MALFORMED, _NOT_AN_EXAMPLE, _MISSING, _WRONG_KIND, _WRONG_LENGTH = range(6)
_DTYPES = {1: np.uint8, 2: np.float32, 3: np.int64}


@dataclass(frozen=True)
class FeatureSpec:
    """What is expected of a feature when it is read as a column.

    kind: bytes, float or int64; None takes the kind of the first record that has the feature.
    shape: of one example: () for a scalar, (13,) or (3, 4) for lists of as many values in C order;
        "ragged" for any number. None lets the records decide: fixed where all agree, else ragged.
    default: stands in where a record lacks the feature (or has it without a kind), as in
        TensorFlow. Without a default, a record must have a feature of declared shape; of others
        a missing one is an empty row.
    """

    kind: Kind | None = None
    shape: tuple[int, ...] | Literal["ragged"] | None = None
    default: Any = None


FeatureRequest: TypeAlias = Mapping[str, FeatureSpec | None] | Iterable[str]


class ColumnDecoder:
    """Collects some features of many Example payloads; not for use by two threads at once."""

    def __init__(self, features: FeatureRequest) -> None:
        """`features` names the columns, with a FeatureSpec each where something is expected."""
        if isinstance(features, str):
            raise OptionError(f"features is the string {features!r}; expected a list of names")
        wanted = features if isinstance(features, Mapping) else dict.fromkeys(features)
        self._specs = {key: spec or FeatureSpec() for key, spec in wanted.items()}
        self._row_count = 0
        keys, kinds, required, defaults = [], [], [], []
        for key, spec in self._specs.items():
            default = None if spec.default is None else _default_values(key, spec)
            kind = KIND_NUMBERS.get(spec.kind or "", 0)
            keys.append(key.encode("utf-8", "surrogateescape"))
            kinds.append(kind if default is None else default[0])
            required.append(math.prod(spec.shape) if isinstance(spec.shape, tuple) else -1)
            defaults.append(None if default is None else default[1])
        self._builder = kernel.ColumnBuilder(keys, kinds, required, defaults)
        self._kinds = kinds

    def append(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the Examples at buffer[starts[i]:starts[i] + lengths[i]]; the buffer is not kept.

        Raises:
            CorruptDataError: malformed-example, not-an-example, missing-feature,
                feature-kind-mismatch or feature-shape-mismatch; `position` counts the payloads
                of this call. The decoder cannot be used any more.
        """
        code, row, column, found = self._builder.append(buffer, starts, lengths)
        if code != _GOOD:
            error = self._error(code, column, found)
            error.position = row
            raise error
        self._row_count += len(starts)

    def finish(self) -> dict[str, Column]:
        """The columns. They own their memory; the decoder is empty afterwards.

        Raises:
            CorruptDataError: missing-feature, if no record showed the kind of a feature and
                none was declared.
        """
        columns: dict[str, Column] = {}
        for (key, spec), built in zip(self._specs.items(), self._builder.finish(), strict=True):
            kind, values, ends, splits, shortest, longest, present = built
            if kind == 0:
                raise CorruptDataError(
                    Defect.MISSING_FEATURE,
                    f"no record has a feature {key!r} with a value; declare its kind to read it "
                    "as empty",
                )
            flat: Any = _array(values, _DTYPES[kind])
            if kind == KIND_NUMBERS["bytes"]:
                flat = BytesArray(flat, _array(ends, np.int64))
            shape = spec.shape
            if shape is None and self._row_count == 0:
                shape = "ragged"
            if shape is None and shortest == longest and present == self._row_count:
                shape = () if longest == 1 else (longest,)
            if isinstance(shape, tuple):
                columns[key] = flat.reshape(self._row_count, *shape)
            else:
                columns[key] = Ragged(flat, _array(splits, np.int64))
        return columns

    def _error(self, code: int, column: int, found: int) -> CorruptDataError:
        key, spec = list(self._specs.items())[column] if self._specs else ("", FeatureSpec())
        if code == _MALFORMED:
            return malformed_example()
        if code == _NOT_AN_EXAMPLE:
            return not_an_example(PAYLOAD_KINDS[found])
        if code == _MISSING:
            return CorruptDataError(
                Defect.MISSING_FEATURE,
                f"feature {key!r} is missing; shape {spec.shape} was declared for it and no "
                "default",
            )
        if code == _WRONG_KIND:
            expected = spec.kind or "another kind, as in the records before"
            return CorruptDataError(
                Defect.FEATURE_KIND,
                f"feature {key!r} is {KIND_NAMES[found]}, expected {expected}",
            )
        return CorruptDataError(
            Defect.FEATURE_SHAPE,
            f"feature {key!r} has {found} values, expected shape {spec.shape}",
        )


def decode_columns(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, features: FeatureRequest
) -> dict[str, Column]:
    """Decode some features of the Examples at buffer[starts[i]:starts[i] + lengths[i]].

    Args:
        buffer: the bytes that the payloads lie in.
        starts: int64, (count,).
        lengths: int64, (count,).
        features: names, or names with a FeatureSpec.

    Returns:
        For each name an ndarray (int64 or float32, (count, *shape)), a BytesArray of that shape,
        or Ragged. They own their memory.

    Raises:
        CorruptDataError: as in `ColumnDecoder`.
    """
    decoder = ColumnDecoder(features)
    decoder.append(buffer, starts, lengths)
    return decoder.finish()


def encode_columns(
    columns: Mapping[str, Column | Sequence[Any]],
) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """Encode columns as Example payloads, one for each row.

    Args:
        columns: for each name an ndarray of ints, floats or bools (rows, ...), a Ragged, a
            BytesArray, or a sequence or object array of bytes or str (rows,).

    Returns:
        The payloads end to end: uint8, (bytes,), and int64 offsets, (rows + 1,).

    Raises:
        OptionError: columns differ in their number of rows, or hold what no feature can hold.
    """
    prepared = []
    row_counts: dict[str, int] = {}
    for key in sorted(columns):
        try:
            column = _prepare(columns[key])
        except (OverflowError, TypeError, ValueError) as error:
            raise OptionError(f"column {key!r} cannot be encoded: {error}") from None
        row_counts[key], fields = column
        prepared.append((key.encode("utf-8", "surrogateescape"), *fields))
    if len(set(row_counts.values())) > 1:
        counts = ", ".join(f"{key!r} {count}" for key, count in row_counts.items())
        raise OptionError(f"columns differ in their number of rows: {counts}")
    row_count = next(iter(row_counts.values()), 0)
    data, offsets = kernel.encode_columns(prepared, row_count)
    return _array(data, np.uint8), _array(offsets, np.int64)


def _prepare(
    column: Any,
) -> tuple[int, tuple[int, npt.NDArray[Any], Int64Array | None, Int64Array | None, int]]:
    """(row count, (kind, values, ends, splits, length)), as the kernel wants them."""
    splits: Int64Array | None = None
    values: Any = column
    if isinstance(column, Ragged):
        splits = np.ascontiguousarray(column.row_splits, np.int64)
        values = column.values
    shape: tuple[int, ...]
    if not isinstance(values, BytesArray):
        array = as_array(values) if hasattr(values, "__array__") else np.asarray(values)
        if array.dtype.kind in "OSU":
            shape = array.shape
            strings = values if isinstance(values, list) else array.ravel().tolist()
            values = BytesArray.from_values(strings).reshape(*shape)
        else:
            values = array
    shape = values.shape
    if not shape:
        raise TypeError("it is a single value; expected one for each row")
    length = math.prod(shape[1:])
    row_count = shape[0] if splits is None else len(splits) - 1
    if isinstance(values, BytesArray):
        packed = values.packed()
        ends = np.ascontiguousarray(packed.offsets, np.int64)
        return row_count, (1, np.ascontiguousarray(packed.buffer), ends, splits, length)
    numbers = as_values(values, None)
    return row_count, (3 if numbers.dtype == np.int64 else 2, numbers, None, splits, length)


def _default_values(key: str, spec: FeatureSpec) -> tuple[int, tuple[bytes, bytes, int]]:
    """(kind, (values, ends, count)) of a default, in the kernel's layout."""
    shape = spec.shape if isinstance(spec.shape, tuple) else None
    try:
        if isinstance(spec.default, (str, bytes)):
            default: Any = [spec.default] * (math.prod(shape) if shape is not None else 1)
        else:
            default = np.asarray(spec.default)
            if shape is not None and default.ndim == 0:
                default = np.broadcast_to(default, shape)
            default = default.reshape(-1)
            if spec.kind == "float":
                default = default.astype(np.float32)
        _, (kind, values, ends, _, _) = _prepare(default)
    except (OverflowError, TypeError, ValueError) as error:
        raise OptionError(f"the default of feature {key!r} cannot be used: {error}") from None
    if spec.kind is not None and KIND_NUMBERS.get(spec.kind) != kind:
        raise OptionError(
            f"the default of feature {key!r} is {KIND_NAMES[kind]}, its kind {spec.kind}"
        )
    if shape is not None and len(default) != math.prod(shape):
        raise OptionError(
            f"the default of feature {key!r} has {len(default)} values, its shape is {shape}"
        )
    end_bytes = b"" if ends is None else ends[1:].tobytes()
    return kind, (values.tobytes(), end_bytes, len(default))


def _array(memory: kernel.Memory, dtype: Any) -> npt.NDArray[Any]:
    return np.frombuffer(memory, dtype) if len(memory) else np.empty(0, dtype)  # type: ignore[call-overload]
