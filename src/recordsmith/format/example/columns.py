"""Batches of Examples and SequenceExamples <-> columns: arrays whose first axis is the record.

`ColumnDecoder` reads payloads from any number of buffers, `decode_columns` from one;
`ColumnEncoder` and `encode_columns` write them. The loops over records are compiled.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.codec import as_array, as_values, too_many_axes
from recordsmith.format.example.kernel import encoding
from recordsmith.format.example.kernel.columns import ColumnBuilder
from recordsmith.format.example.kernel.memory import Memory
from recordsmith.format.example.payload import (
    KIND_NAMES,
    KIND_NUMBERS,
    PAYLOAD_KINDS,
    Kind,
    encode_key,
    kind_remedy,
    unparsable_error,
)
from recordsmith.format.example.values import BytesArray, Column, RaggedArray
from recordsmith.support.buffers import AllocateBytes, BytesLike, Int64Array, as_view
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    NotAnExampleError,
    OptionError,
    option,
)

_GOOD, _MALFORMED, _NOT_AN_EXAMPLE, _MISSING, _WRONG_KIND, _WRONG_LENGTH = range(6)
_DTYPES = {1: np.uint8, 2: np.float32, 3: np.int64}
_ENTRY_BYTES = 80  # of a feature in a payload, besides its key and values, at most
_PRESENCE_ONLY = -1  # the kernel's kind of a column without values
_EITHER = 2  # for the kernel: a feature or a feature list


@dataclass(frozen=True)
class FeatureSpec:
    """The kind, shape and default of a feature that is read as a column.

    Of SequenceExamples, the features of the context are read as those of Examples.

    kind: bytes, float or int64; None means the kind in the first record that has the feature.
    shape: of one example: () for a scalar, (13,) or (3, 4) for lists of that many values in C
        order; "ragged" for any number. None means fixed if all records agree, else ragged.
    default: replaces a feature that is missing or has no kind, as in TensorFlow. Without a default,
        a missing feature is an error if a fixed shape is declared, and an empty row otherwise.
    in_steps: whether it is a feature list of SequenceExamples, whose shape is that of one step. The
        column is a RaggedArray with a row for each record, and the steps of all records as its
        values: (steps, *shape), or a RaggedArray with a row for each step if they vary. A record
        without the list has no steps; a default is not possible.

    Raises:
        OptionError: the kind or the shape is invalid, or there is a default for steps.

    Example:
        spec = rs.FeatureSpec(kind="int64", shape=(), default=0)
        columns = dataset.read_columns({"age": spec})  # 0 where it is missing
    """

    kind: Kind | None = None
    shape: tuple[int, ...] | Literal["ragged"] | None = None
    default: Any = None
    in_steps: bool = False

    def __post_init__(self) -> None:
        if self.in_steps and self.default is not None:
            raise OptionError(
                "a feature list has no default: a record without it has no steps",
                option="default",
                value=self.default,
                remedy=f"Leave {option('default')} out.",
            )
        if self.kind is not None and self.kind not in KIND_NUMBERS:
            raise OptionError(
                option="kind",
                value=self.kind,
                expected="bytes, float, int64 or None",
                remedy=kind_remedy(self.kind),
            )
        if self.shape is not None and self.shape != "ragged" and not _is_shape(self.shape):
            raise OptionError(
                option="shape",
                value=self.shape,
                expected="a tuple of lengths such as (), (13,) or (3, 4), 'ragged' or None",
            )


FeatureRequest: TypeAlias = Mapping[str, FeatureSpec | None] | Iterable[str]


class ColumnDecoder:
    """Decodes some features of many payloads to columns. Safe to use from threads."""

    def __init__(
        self,
        features: FeatureRequest,
        *,
        borrowed: Collection[str] = (),
        with_validity: bool = False,
        presence_of: Collection[str] = (),
        with_lists: bool = False,
    ) -> None:
        """Prepare for the first payloads.

        Args:
            features: the names of the columns, or a FeatureSpec or None by name.
            borrowed: columns of bytes, without defaults, that share the memory of the appended
                buffer instead of copying; then only one buffer can be appended.
            with_validity: whether `finish_with_validity` reports which records lack a feature.
                A record that lacks a feature of fixed shape without a default gets zeros or empty
                bytes instead of an error; such a feature needs a declared kind.
            presence_of: features whose validity `finish_with_validity` reports, with or without a
                column. Records that lack one are errors as without it.
            with_lists: whether a feature of SequenceExamples may also be a feature list, of which
                the values of all steps are read.
        """
        self._specs = _specs(features)
        for key, spec in self._specs.items():
            if with_validity and isinstance(spec.shape, tuple) and spec.kind is None:
                raise OptionError(
                    f"feature {key!r} has a shape but no kind",
                    option="features",
                    value=spec,
                    expected="a FeatureSpec with kind and shape, as missing values are filled",
                )
        self._borrowed = frozenset(borrowed)
        if any(self._specs[key].default is not None for key in self._borrowed):
            raise OptionError("a borrowed column cannot have a default", option="borrowed")
        self._lock = threading.Lock()
        keys, kinds, required, defaults = [], [], [], []
        for key, spec in self._specs.items():
            default = None if spec.default is None else _default_values(key, spec)
            kind = KIND_NUMBERS.get(spec.kind or "", 0)
            keys.append(encode_key(key))
            kinds.append(kind if default is None else default[0])
            required.append(math.prod(spec.shape) if isinstance(spec.shape, tuple) else -1)
            defaults.append(None if default is None else default[1])
        without_column = [key for key in dict.fromkeys(presence_of) if key not in self._specs]
        for key in without_column:
            keys.append(encode_key(key))
            kinds.append(_PRESENCE_ONLY)
            required.append(-1)
            defaults.append(None)
        self._names = [*self._specs, *without_column]
        are_borrowed = [key in self._borrowed for key in self._names]
        have_validity = [with_validity or key in presence_of for key in self._names]
        are_in_steps = [_EITHER if with_lists else spec.in_steps for spec in self._specs.values()]
        are_in_steps += [_EITHER] * len(without_column)
        self._arguments = (
            keys, kinds, required, defaults, are_borrowed, have_validity, are_in_steps,
            with_validity,
        )  # fmt: skip
        self._begin()

    def _begin(self) -> None:
        self._builder = ColumnBuilder(*self._arguments)
        self._buffer: BytesLike = b""
        self._row_count = 0
        self._has_failed = False

    def append(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the records at buffer[starts[i]:starts[i] + lengths[i]].

        The buffer is kept only for borrowed columns.
        """
        with self._lock:
            self._check_open()
            if self._borrowed:
                if self._row_count:
                    raise OptionError("borrowed columns allow one buffer only", option="borrowed")
                self._buffer = buffer
            code, row, column, found, step = self._builder.append(buffer, starts, lengths)
            if code != _GOOD:
                self._has_failed = True
                payload = as_view(buffer)[int(starts[row]) :][: int(lengths[row])]
                error = self._error(code, column, found, step, payload)
                error.record = row
                raise error
            self._row_count += len(starts)

    def finish(self, *, is_strict: bool = True) -> dict[str, Column]:
        """Return the columns of the appended payloads and empty the decoder.

        The columns own their memory, except borrowed ones.

        Args:
            is_strict: False omits features without a known kind instead of raising.
        """
        return self.finish_with_validity(is_strict=is_strict)[0]

    def finish_with_validity(
        self, *, is_strict: bool = True
    ) -> tuple[dict[str, Column], dict[str, npt.NDArray[np.uint8]]]:
        """Return the columns as `finish`, and the validity of those that some record lacks.

        Returns:
            The columns; and by name uint8, (ceil(rows / 8),): a bit for each record, lowest bit
            first, as in Arrow: 1 if the record has the feature, even with an empty list or without
            a kind. Features that all records have are left out.
        """
        with self._lock:
            self._check_open()
            finished = self._builder.finish(with_all_splits=False)
            row_count, buffer = self._row_count, self._buffer
            self._begin()
        columns: dict[str, Column] = {}
        validity = {
            key: _array(built[-1], np.uint8)
            for key, built in zip(self._names, finished, strict=True)
            if len(built[-1])
        }
        for (key, spec), built in zip(self._specs.items(), finished, strict=False):
            kind, values, ends, splits, shortest, longest, present, steps, _ = built
            if kind == 0 and not is_strict:
                continue
            if kind == 0:
                raise CorruptDataError(
                    Defect.MISSING_FEATURE,
                    f"no record has a value for feature {key!r}",
                    feature=key,
                    remedy="Declare its kind to read it as empty.",
                )
            if kind != KIND_NUMBERS["bytes"]:
                flat: Any = _array(values, _DTYPES[kind])
            elif key in self._borrowed:
                spans = _array(values, np.int64)
                numbers = np.arange(0, len(spans), 2)
                flat = BytesArray(np.frombuffer(buffer, np.uint8), spans, numbers)
            else:
                flat = BytesArray(_array(values, np.uint8), _array(ends, np.int64))
            if spec.in_steps:
                step_splits = _array(steps, np.int64)
                row_splits = _row_splits(splits, row_count, longest)
                columns[key] = RaggedArray(_steps(flat, step_splits, spec.shape), row_splits)
                continue
            shape = spec.shape
            if shape is None and row_count == 0:
                shape = "ragged"
            if shape is None and shortest == longest and present == row_count:
                shape = () if longest == 1 else (longest,)
            if isinstance(shape, tuple):
                columns[key] = flat.reshape(row_count, *shape)
            else:
                columns[key] = RaggedArray(flat, _row_splits(splits, row_count, longest))
        return columns, validity

    def _error(
        self, code: int, column: int, found: int, step: int, payload: BytesLike
    ) -> DataError:
        if code == _MALFORMED:
            return unparsable_error(payload)
        if code == _NOT_AN_EXAMPLE:
            return NotAnExampleError(PAYLOAD_KINDS[found])
        key, spec = list(self._specs.items())[column]
        subject = f"step {step} of feature list {key!r}" if spec.in_steps else f"feature {key!r}"
        if code == _MISSING:
            return CorruptDataError(
                Defect.MISSING_FEATURE,
                f"feature {key!r} is missing",
                expected=f"shape {spec.shape}",
                feature=key,
                remedy="Declare a default, or the shape 'ragged'.",
            )
        if code == _WRONG_KIND:
            expected = KIND_NAMES[self._builder.kind(column)]
            why = "" if spec.kind or spec.default is not None else " as in the records before"
            return CorruptDataError(
                Defect.FEATURE_KIND,
                f"{subject} has the wrong kind",
                found=KIND_NAMES[found],
                expected=f"{expected}{why}",
                remedy="If records have different kinds of it, write them again with one kind.",
                feature=key,
            )
        values = "1 value" if found == 1 else f"{found} values"
        return CorruptDataError(
            Defect.FEATURE_SHAPE,
            f"{subject} has the wrong number of values",
            found=values,
            expected=f"shape {spec.shape}",
            feature=key,
        )

    def _check_open(self) -> None:
        if self._has_failed:
            raise OptionError("this ColumnDecoder has failed", remedy="Make a new one.")


def _row_splits(memory: Memory, row_count: int, length: int) -> Int64Array:
    """Return the row splits that the kernel built; none if all rows have this length."""
    row_splits = _array(memory, np.int64)
    return row_splits if row_splits.size else np.arange(row_count + 1) * length


def _steps(flat: Any, splits: Int64Array, shape: tuple[int, ...] | str | None) -> Any:
    """Return the values of all steps, with an axis for the steps if they have one shape."""
    step_count = len(splits) - 1
    if shape is None and step_count:
        lengths = np.diff(splits)
        if (lengths == lengths[0]).all():
            shape = () if lengths[0] == 1 else (int(lengths[0]),)
    return (
        flat.reshape(step_count, *shape) if isinstance(shape, tuple) else RaggedArray(flat, splits)
    )


def _specs(features: FeatureRequest) -> dict[str, FeatureSpec]:
    if isinstance(features, (str, bytes)) or not isinstance(features, Iterable):
        raise OptionError(
            option="features",
            value=features,
            expected="a list of names, or a dict of FeatureSpec by name",
        )
    items = features.items() if isinstance(features, Mapping) else ((key, None) for key in features)
    specs = {}
    for key, spec in items:
        encode_key(key)
        if spec is not None and not isinstance(spec, FeatureSpec):
            raise OptionError(
                f"feature {key!r} is requested with {spec!r:.60}",
                option="features",
                value=spec,
                expected="a FeatureSpec or None",
            )
        specs[key] = spec or FeatureSpec()
    return specs


def _is_shape(shape: Any) -> bool:
    return (
        isinstance(shape, tuple)
        and all(isinstance(length, (int, np.integer)) and length >= 0 for length in shape)
        and math.prod(map(int, shape)) < 2**60
    )


def decode_columns(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array, features: FeatureRequest
) -> dict[str, Column]:
    """Decode some features of the records at buffer[starts[i]:starts[i] + lengths[i]].

    Args:
        buffer: the bytes that contain the payloads.
        starts: int64, (count,).
        lengths: int64, (count,).
        features: names, or a FeatureSpec or None by name.

    Returns:
        By name, an ndarray (int64 or float32, (count, *shape)), a BytesArray of that shape, or a
        RaggedArray. They own their memory.
    """
    decoder = ColumnDecoder(features)
    decoder.append(buffer, starts, lengths)
    return decoder.finish()


class ColumnEncoder:
    """Encodes columns as Example payloads, some rows at a time.

    Checks all rows when it is made, so that `encode` cannot fail on a value.
    """

    def __init__(
        self,
        columns: Mapping[str, Column | Sequence[Any]],
        validity: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Arguments and errors as in `encode_columns`; do not change the columns until the end."""
        if not isinstance(columns, Mapping):
            raise OptionError(
                f"the columns are a {type(columns).__name__}",
                option="columns",
                expected="a dict of columns by name",
            )
        keys = {key: encode_key(key) for key in columns}
        self._columns: list[tuple[bytes, Column]] = []
        row_counts: dict[str, int] = {}
        for key in sorted(keys):
            try:
                column = _encodable(columns[key])
            except (OverflowError, TypeError, ValueError) as error:
                raise OptionError(f"column {key!r} cannot be encoded: {error}") from None
            row_counts[key] = len(column)
            self._columns.append((keys[key], column))
        if len(set(row_counts.values())) > 1:
            counts = ", ".join(f"{key!r} {count}" for key, count in row_counts.items())
            raise OptionError(f"the columns have different numbers of rows: {counts}")
        self.row_count = next(iter(row_counts.values()), 0)
        self._validity = {
            keys[key]: self._valid_rows(key, valid)
            for key, valid in (validity or {}).items()
            if key in keys
        }

    def _valid_rows(self, key: str, valid: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        rows = np.ascontiguousarray(valid)
        if rows.dtype != np.bool_ or rows.shape != (self.row_count,):
            raise OptionError(
                f"the validity of {key!r} is an array of {rows.dtype}, shape {rows.shape}",
                option="validity",
                expected=f"bool, ({self.row_count},)",
            )
        return rows.view(np.uint8)

    def encode(
        self, start: int, stop: int, allocate: AllocateBytes | None = None
    ) -> tuple[npt.NDArray[np.uint8], Int64Array]:
        """Encode rows start:stop; memory depends only on these rows.

        Args:
            allocate: for the memory of the payloads.

        Returns:
            The payloads end to end: uint8, (bytes,), and int64 offsets, (stop - start + 1,).
        """
        if not 0 <= start <= stop <= self.row_count:
            raise OptionError(
                f"rows {start}:{stop} do not exist", expected=f"rows within 0:{self.row_count}"
            )
        pieces, most = [], 0
        for key, column in self._columns:
            valid = self._validity.get(key)
            part = None if valid is None else valid[start:stop]
            memory = _memory(column[start:stop])
            pieces.append((key, *memory, part))
            if allocate is not None:
                most += _most_bytes(*memory[:4]) + (stop - start) * (len(key) + _ENTRY_BYTES)
        out = None if allocate is None else allocate(most + _ENTRY_BYTES)
        data, offsets = encoding.encode_columns(pieces, stop - start, out)
        array = _array(data, np.uint8)  # type: ignore[arg-type]
        return array[len(array) - int(offsets[-1]) :], offsets


def encode_columns(
    columns: Mapping[str, Column | Sequence[Any]],
    validity: Mapping[str, npt.ArrayLike] | None = None,
) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """Encode columns as Example payloads, one for each row.

    Args:
        columns: by name, an ndarray of ints, floats or bools, (rows,) or (rows, values), a
            RaggedArray, a BytesArray, an array of str, or a sequence with an int, float, str,
            bytes or a list of these for each row; the lists may differ in length. A row without
            values is an empty list, not None.
        validity: by name, bool, (rows,): False omits the feature from the row's payload. Columns
            without one are in all payloads.

    Returns:
        The payloads end to end: uint8, (bytes,), and int64 offsets, (rows + 1,).
    """
    encoder = ColumnEncoder(columns, validity)
    return encoder.encode(0, encoder.row_count)


def _encodable(given: Any) -> Column:
    """Convert a column so that each of its slices can be encoded."""
    column = _as_column(given)
    if isinstance(column, RaggedArray):
        return RaggedArray(_encodable_values(_as_column(column.values)), column.row_splits)
    if len(column.shape) > 2:
        raise ValueError(too_many_axes(column.shape, "column.reshape(len(column), -1)"))
    return _encodable_values(column)


def _encodable_values(values: Any) -> npt.NDArray[Any] | BytesArray:
    # small types take more memory after conversion, so each slice is converted separately
    if isinstance(values, BytesArray) or (values.itemsize < 8 and values.dtype.kind in "iufb"):
        return values  # type: ignore[no-any-return]
    return as_values(values, None).reshape(values.shape)


def _memory(
    column: Any,
) -> tuple[int, npt.NDArray[Any], Int64Array | None, Int64Array | None, Int64Array | None, int]:
    """Return (kind, values, starts, stops, splits, length) for the kernel."""
    splits: Int64Array | None = None
    values = column
    if isinstance(column, RaggedArray):
        splits, values = column.row_splits, column.values
    length = math.prod(values.shape[1:])
    if isinstance(values, BytesArray):
        return 1, np.ascontiguousarray(values.buffer), *values.spans(), splits, length
    numbers = as_values(values, None)
    return 3 if numbers.dtype == np.int64 else 2, numbers, None, None, splits, length


def _most_bytes(
    kind: int, values: npt.NDArray[Any], starts: Int64Array | None, stops: Int64Array | None
) -> int:
    """Return how many bytes the values of a column take at most when they are encoded."""
    if starts is None or stops is None:
        return len(values) * (10 if kind == 3 else 4)
    return int((stops - starts).sum()) + 11 * len(starts)


def _default_values(key: str, spec: FeatureSpec) -> tuple[int, tuple[bytes, bytes, int]]:
    """Return (kind, (values, ends, count)) of a default, in the kernel's layout."""
    shape = spec.shape if isinstance(spec.shape, tuple) else None
    try:
        default = spec.default
        if isinstance(default, (str, bytes, int, float, np.generic)):
            default = [default] * (math.prod(shape) if shape is not None else 1)
        column: Any = _as_column(default)
        if isinstance(column, RaggedArray):
            raise ValueError("the lists differ in length")  # noqa: TRY004 - the type is right
        count = math.prod(column.shape)
        if not count:
            kind, values, ends = KIND_NUMBERS.get(spec.kind or "", 0), b"", b""
        else:
            if not isinstance(column, BytesArray) and spec.kind == "float":
                column = as_values(column, "float")
            flat = column.reshape(-1)
            kind, numbers, *_ = _memory(flat)
            ends = b""
            if isinstance(flat, BytesArray):
                flat = flat.packed()
                numbers, ends = flat.buffer, flat.offsets[1:].tobytes()
            values = numbers.tobytes()
    except (OverflowError, TypeError, ValueError) as error:
        raise OptionError(
            f"the default of feature {key!r} is invalid: {error}", option="default"
        ) from None
    if spec.kind is not None and KIND_NUMBERS[spec.kind] != kind:
        raise OptionError(
            f"the default of feature {key!r} is {KIND_NAMES[kind]}",
            option="default",
            value=spec.default,
            expected=spec.kind,
        )
    if shape is not None and count != math.prod(shape):
        found = "1 value" if count == 1 else f"{count} values"
        raise OptionError(
            f"the default of feature {key!r} has {found}",
            option="default",
            value=spec.default,
            expected=f"shape {shape}",
        )
    return kind, (values, ends, count)


def valid_rows(
    validity: Mapping[str, npt.NDArray[np.uint8]], key: str, row_count: int
) -> npt.NDArray[np.bool_]:
    """Return which rows have a feature: bool, (rows,), of `finish_with_validity`."""
    bits = validity.get(key)
    if bits is None:
        return np.ones(row_count, np.bool_)
    return np.unpackbits(bits, count=row_count, bitorder="little").view(np.bool_)


def _array(memory: Memory, dtype: Any) -> npt.NDArray[Any]:
    return np.frombuffer(memory, dtype) if len(memory) else np.empty(0, dtype)  # type: ignore[call-overload]


# -- columns of users ------------------------------------------------------------------------------

_BYTES = (str, bytes, bytearray, memoryview)
_INTEGERS = (int, np.integer, np.bool_)
_NUMBERS = (*_INTEGERS, float, np.floating)
_ROWS = (list, tuple, np.ndarray, BytesArray)
_LIMIT = 2**63


def _as_column(column: Any) -> Column:
    """Convert an array of any library, or a sequence with a value or a list for each row.

    Lists of unequal length become a RaggedArray. Lists are checked value by value and passed to
    NumPy only if all values are numbers: NumPy would pad bytes, cut their trailing zeros, and
    convert numbers to text.
    """
    if isinstance(column, (BytesArray, RaggedArray)):
        return column
    if hasattr(column, "__array__"):
        array = as_array(column)
        if array.ndim == 0:
            raise TypeError("the column is a single value; expected one for each row")
        return _from_objects(array) if array.dtype.kind in "OSU" else array
    if isinstance(column, _BYTES) or not isinstance(column, Sequence):
        raise TypeError(
            f"the column is a {type(column).__name__}; expected an array, or a list with a value "
            "for each row"
        )
    return _from_sequence(column, np.arange(len(column)))


def _from_objects(array: npt.NDArray[Any]) -> Column:
    """Convert an array of str, bytes or lists."""
    values = array.ravel().tolist()
    types = set(map(type, values))
    if all(issubclass(kind, _BYTES) for kind in types):
        return BytesArray.from_values(values).reshape(*array.shape)
    rows = np.arange(array.size) // max(1, array.size // len(array))
    if array.ndim == 1 and all(issubclass(kind, _ROWS) for kind in types):
        return _from_rows(values, rows)
    raise _mismatch_error(values, rows, _BYTES)


def _from_sequence(values: Sequence[Any], rows: Int64Array) -> Column:
    """Convert values; `rows` is the row of the column for each of them."""
    types = set(map(type, values))
    if not types:
        return np.empty(0, np.float32)
    if all(issubclass(kind, _ROWS) for kind in types):
        return _from_rows(values, rows)
    if all(issubclass(kind, _BYTES) for kind in types):
        return BytesArray.from_values(values)
    if all(issubclass(kind, _INTEGERS) for kind in types):
        try:
            return np.fromiter(values, np.int64, len(values))
        except OverflowError:
            place = next(i for i, value in enumerate(values) if not -_LIMIT <= int(value) < _LIMIT)
            raise OverflowError(
                f"{values[place]} in row {rows[place]} does not fit int64"
            ) from None
    if all(issubclass(kind, _NUMBERS) for kind in types):
        return np.fromiter(values, np.float64, len(values))
    known = (kinds for kinds in (_ROWS, _BYTES, _NUMBERS) if isinstance(values[0], kinds))
    raise _mismatch_error(values, rows, next(known, ()))


def _from_rows(lists: Sequence[Any], rows: Int64Array) -> Column:
    """Convert a list or an array for each row: to more axes, or a RaggedArray."""
    flat: Any
    if all(isinstance(values, np.ndarray) and values.dtype.kind in "iufb" for values in lists):
        shapes = [values.shape for values in lists]
        flat = np.concatenate([as_values(values, None) for values in lists])
    else:
        lists = [values if isinstance(values, list) else _as_list(values) for values in lists]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        flat = _from_sequence(list(chain.from_iterable(lists)), np.repeat(rows, lengths))
        inner = () if isinstance(flat, RaggedArray) else flat.shape[1:]
        shapes = [(length, *inner) for length in lengths.tolist()]
    if len(set(shapes)) == 1 and not isinstance(flat, RaggedArray):
        return flat.reshape(len(lists), *shapes[0])  # type: ignore[no-any-return]
    if isinstance(flat, RaggedArray) or any(len(shape) != 1 for shape in shapes):
        raise ValueError("nested lists differ in length; only the outer lists, the rows, can")
    return RaggedArray(flat, np.cumsum([0, *(length for (length,) in shapes)]))


def _as_list(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray) and values.ndim == 0:
        return [values.item()]
    return list(values) if isinstance(values, tuple) else values.tolist()


def _mismatch_error(values: Sequence[Any], rows: Int64Array, kinds: tuple[type, ...]) -> TypeError:
    """Return the error for the first value that is not one of `kinds`."""
    place = next(i for i, value in enumerate(values) if not isinstance(value, kinds))
    value, first = values[place], values[0]
    others = f", others are {type(first).__name__}" if place else ""
    return TypeError(
        f"row {rows[place]} contains {value!r:.60} ({type(value).__name__}){others}; expected only "
        "ints and floats, or only str and bytes, or lists of these"
    )
