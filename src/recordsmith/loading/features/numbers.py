"""Features of numbers: of a fixed shape, padded to one length, or ragged; positions, presence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, overload

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Column, FeatureSpec, Kind, RaggedArray
from recordsmith.format.example.serialized_tensor import tensor_type
from recordsmith.loading.features.feature import NUMBERS, BatchRows, ColumnRequest, ValueFeature
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, Defect, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import is_whole, whole_number
from recordsmith.support.words import count as counted

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset
    from recordsmith.loading.features.normalising import NormaliseLike, Scaling


_STAND_IN = 2**63 - 3
"""The default of a column of integers whose default is a float: no float type holds it."""


@dataclass(frozen=True)
class _Numbers(ValueFeature):
    """The same number of values from each record."""

    key: str
    _: KW_ONLY
    dtype: str | None = None
    default: Any = None
    normalise: NormaliseLike = None
    scaling: Scaling | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        is_whole_type = self.dtype is not None and number_type(self.dtype).kind in "biu"
        if self.normalise is not None and is_whole_type:
            raise OptionError(
                f"{option('normalise')} makes fractions, which {self.dtype} cannot hold",
                option="dtype",
                value=self.dtype,
                expected="a float type such as 'float32'",
                remedy=f"Leave {option('dtype')} out.",
            )
        check_default(self.default, self.dtype)

    def of_datasets(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> Self:
        """Return this feature with the statistics to normalise it with."""
        if self.normalise is None:
            return self
        from recordsmith.loading.features.normalising import Normalise

        how = self.normalise if isinstance(self.normalise, Normalise) else Normalise(self.normalise)
        shape = getattr(self, "shape", ())
        feature = copy(self)
        object.__setattr__(feature, "scaling", how.scaling(self.key, shape, datasets))
        return feature

    def scaling_digest(self) -> str | None:
        """Return a hash of the statistics; None without them."""
        return None if self.scaling is None else self.scaling.digest()

    def _request(self, shape: tuple[int, ...]) -> ColumnRequest:
        default = self.default
        if self._is_fraction:
            stand_in = np.full(np.shape(default), _STAND_IN).tolist()
            default = {"float": default, "int64": stand_in}
        return ColumnRequest(_kinds(self.dtype), shape, default)

    @property
    def _is_fraction(self) -> bool:
        """Whether the default is a float, which `dtype` can hold, but a column of integers not."""
        if self.default is None or self.dtype is None or self.normalise is not None:
            return False
        return np.asarray(self.default).dtype.kind == "f"

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column: Any = rows.columns[self.key]
        if self._is_fraction and column.dtype == np.int64:
            is_absent = column == _STAND_IN
            numbers = as_dtype(self.key, np.where(is_absent, 0, column), self.dtype)
            default = np.resize(np.asarray(self.default, numbers.dtype), column.shape[1:])
            np.copyto(numbers, default, where=is_absent)
            return (numbers,)
        if self.scaling is not None:
            has_axis = len(self.scaling.low) > 1
            column = self.scaling.apply(column if has_axis else column[..., np.newaxis])
            column = column if has_axis else column[..., 0]
        return (as_dtype(self.key, column, self.dtype),)


@dataclass(frozen=True)
class Tensor(_Numbers):
    """An array of numbers from each record: int64 or float32, (batch, *shape).

    Attributes:
        key: the key of the feature in the records.
        shape: of the values of a record, in C order: (13,), (3, 4).
        dtype: of the batch, such as "float16" or "int32". Default: as stored. A number that the
            dtype cannot hold is an error, but floats may lose precision in a narrower float type,
            such as "float16" or "bfloat16" (which needs the package ml_dtypes).
        default: the value for records without the feature, also a float such as NaN for integers
            that a float `dtype` converts.
        normalise: by the statistics of `normalisation`, to float32: `q99` maps the 1st and 99th
            percentile of each dimension to -1 and 1 and clips, `mean` subtracts the mean and
            divides by the deviation; or a `Normalise`. The last axis are the dimensions.

    Example:
        features = {"embedding": rs.Tensor("embedding", shape=(512,), dtype="float16")}
    """

    shape: tuple[int, ...]

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: self._request(self.shape)}


@dataclass(frozen=True)
class Scalar(_Numbers):
    """One number from each record: int64 or float32, (batch,). Attributes as in `Tensor`.

    Example:
        loader = rs.Loader(dataset, {"width": rs.Scalar("image/width")}, batch_size=8)
        print(next(iter(loader))["width"].dtype)  # int64
    """

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: self._request(())}


def number_type(dtype: Any) -> np.dtype[Any]:
    """Return the numeric dtype that `dtype` names."""
    with suppress(TypeError):
        found = tensor_type(dtype)
        if dtype is not None and (found.kind in "biuf" or found.name == "bfloat16"):
            return found
    remedy = "Install ml_dtypes for bfloat16." if dtype == "bfloat16" else ""
    raise OptionError(
        option="dtype", value=dtype, expected="a numeric dtype such as 'float32'", remedy=remedy
    )


def check_dtype(dtype: object) -> None:
    """Raise OptionError unless it is None or names a numeric dtype."""
    if dtype is not None:
        number_type(dtype)


def check_default(default: Any, dtype: str | None) -> None:
    """Raise OptionError unless `dtype` can hold a default, or one of them is None."""
    if dtype is None or default is None:
        return
    is_number = np.asarray(default).dtype.kind in "biuf"  # others are rejected later
    if is_number and not can_hold(number_type(dtype), default):
        raise OptionError(
            option="default", value=default, expected=f"a number that {dtype} can hold"
        )


@overload
def as_dtype(
    key: str, column: RaggedArray, dtype: str | None, *, name: str = ...
) -> RaggedArray: ...
@overload
def as_dtype(key: str, column: Any, dtype: str | None, *, name: str = ...) -> Any: ...
def as_dtype(key: str, column: Any, dtype: str | None, *, name: str = "dtype") -> Any:
    """Convert a column to another dtype; return the same column if it has that dtype.

    name: of the option that errors suggest to change.
    """
    if dtype is None:
        return column
    numbers: Any = column.values if isinstance(column, RaggedArray) else column
    # NumPy's own dtypes skip the checks, which would cost time for each batch
    converted = _converted(numbers, number_type(dtype) if dtype == "bfloat16" else np.dtype(dtype))
    if isinstance(converted, int):
        raise corrupt(
            key,
            f"has a number that {dtype} cannot hold",
            row_of(column, converted),
            repr(numbers.reshape(-1)[converted].item()),
            remedy=f"Pass another {option(name)}, or leave it out.",
        )
    if isinstance(column, RaggedArray):
        return RaggedArray(converted, column.row_splits)
    return converted


def corrupt(
    key: str,
    problem: str,
    row: int,
    found: str,
    expected: str = "",
    remedy: str = "",
    defect: Defect = Defect.FEATURE_VALUE,
) -> CorruptDataError:
    """Return the error of the values of a feature in one row."""
    problem = f"feature {key!r} {problem}"
    return CorruptDataError(
        defect, problem, found=found, expected=expected, remedy=remedy, feature=key, record=row
    )


def check_shape(shape: object, example: str) -> None:
    """Raise OptionError unless it is a tuple of lengths."""
    if not isinstance(shape, tuple) or not all(is_whole(side) and side >= 0 for side in shape):
        expected = f"a tuple of lengths such as {example}"
        raise OptionError(option="shape", value=shape, expected=expected)


def row_of(column: Any, value: int) -> int:
    """Return the row that has value number `value` of a column."""
    if isinstance(column, RaggedArray):
        return int(np.searchsorted(column.row_splits, value, side="right")) - 1
    shape: tuple[int, ...] = column.shape
    return value // math.prod(shape[1:])


def can_hold(dtype: np.dtype[Any], numbers: Any) -> bool:
    """Whether `as_dtype` can convert numbers to a dtype."""
    array = np.asarray(numbers)  # of objects, if one is too large for any dtype
    return array.dtype.kind in "biuf" and not isinstance(_converted(array, dtype), int)


def _converted(numbers: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any] | int:
    """Return the numbers in another dtype, or the index of the first one that it cannot hold.

    A float may lose precision in a narrower float type, but not become infinite.
    """
    kind, stored = dtype.kind, numbers.dtype
    fits: npt.NDArray[np.bool_] | None = None  # None: all do
    if kind == "b" and stored.kind != "b":
        fits = (numbers == 0) | (numbers == 1)
    elif kind in "iu" and not np.can_cast(stored, dtype):
        fits = _is_within(numbers, dtype)
        if stored.kind == "f":
            fits &= np.trunc(numbers) == numbers
    if fits is not None and not fits.all():
        return int(np.argmin(fits))
    with np.errstate(over="ignore"):
        converted: npt.NDArray[Any] = numbers.astype(dtype, copy=False)
    if kind in "fV":  # bfloat16 is of kind V
        if stored.kind in "iu":
            fits = _is_exact(numbers, converted)
        elif dtype.itemsize < stored.itemsize:
            fits = np.isfinite(converted)
            if not fits.all():
                fits |= ~np.isfinite(numbers)
    return converted if fits is None or fits.all() else int(np.argmin(fits))


def _is_within(numbers: npt.NDArray[Any], integers: np.dtype[Any]) -> npt.NDArray[np.bool_]:
    least, largest = np.iinfo(integers).min, np.iinfo(integers).max
    if numbers.dtype.kind == "f":  # these limits are powers of two, which floats hold
        return (numbers >= float(least)) & (numbers < float(largest + 1))
    return (numbers >= least) & (numbers <= largest)


def _is_exact(integers: npt.NDArray[Any], floats: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Return which integers equal the floats they were converted to; None if all do."""
    digits = 8 if floats.dtype.kind == "V" else np.finfo(floats.dtype).nmant + 1
    most = 1 << digits
    if np.all((integers >= -most) & (integers <= most)):
        return None
    wide = floats.astype(np.float64) if floats.dtype.itemsize < 8 else floats
    is_within = _is_within(wide, integers.dtype)
    is_exact: npt.NDArray[np.bool_] = (
        np.where(is_within, wide, 0).astype(integers.dtype) == integers
    )
    return is_within & is_exact


TooLong = Literal["error", "cut"]
"""For a row that is too long: raise an error, or keep its first values."""


@dataclass(frozen=True)
class Padded(ValueFeature):
    """Any number of values from each record, padded: int64 or float32, (batch, length).

    Adds `<name>_lengths`, int64, (batch,): the number of values of each record, 0 for records
    without the feature unless it has a default.

    Attributes:
        key: the key of the feature in the records.
        length: of all rows. Default: that of the longest row of the batch.
        fill: the padding.
        dtype: as in `Tensor`.
        too_long: for a row longer than `length`: an `error`, or `cut` the rest.
        default: the values for records without the feature, such as [0].

    Example:
        features = {"tags": rs.Padded("tags", length=8, fill=-1, too_long="cut")}
    """

    key: str
    length: int | None = None
    _: KW_ONLY
    fill: float = 0
    dtype: str | None = None
    too_long: TooLong = "error"
    default: Any = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        check_default(self.default, self.dtype)
        check_room(self.length, self.too_long)
        default_length = 0 if self.default is None else np.size(self.default)
        if self.length is not None and self.too_long == "error" and default_length > self.length:
            raise OptionError(
                option="default", value=self.default, expected=f"at most {self.length} values"
            )
        if not _stored_kinds(self.dtype, self.fill):
            raise OptionError(
                option="fill",
                value=self.fill,
                expected=f"a number that {self.dtype or 'float32'} can hold",
            )

    def requests(self) -> dict[str, ColumnRequest]:
        kinds = _stored_kinds(self.dtype, self.fill)
        return {self.key: ColumnRequest(kinds, "ragged", self.default)}

    def outputs(self, name: str) -> tuple[str, ...]:
        return name, f"{name}_lengths"

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column = rows.columns[self.key]
        assert isinstance(column, RaggedArray)
        lengths, width = column.lengths, self.length
        for error in too_long(self, self.key, lengths, "value"):
            raise error
        column = as_dtype(self.key, column, self.dtype)
        return pad(column.values, lengths, width, self.fill)


_ALWAYS_PADDED, _MOST_PADDING = 1 << 26, 4096
"""How many values a padded array may always have, and beyond it for each that is stored."""


def _kinds(dtype: str | None) -> tuple[Kind, ...]:
    """Return the kinds of numbers; first the one to read where no record shows its kind."""
    is_float = dtype is not None and number_type(dtype).kind in "fV"
    return ("float", "int64") if is_float else NUMBERS


def pad(
    values: Any, lengths: Int64Array, width: int | None, fill: float
) -> tuple[npt.NDArray[Any], Int64Array]:
    """Pad or cut rows, whose values are end to end, to one width; None for that of the longest.

    Returns (rows, width, ...), of the values' dtype, and int64, (rows,): the number of values kept.
    """
    if width is None:
        width = int(lengths.max(initial=0))
    size = len(lengths) * width * math.prod(values.shape[1:])
    most = max(_ALWAYS_PADDED, _MOST_PADDING * (values.size + len(lengths)))
    if size > most:
        raise CorruptDataError(
            Defect.FEATURE_SHAPE,
            "a row is too long to pad all others of its batch like it",
            found=f"{size:,} values in all, of which {values.size:,} are stored",
            expected=f"at most {most:,}",
            remedy=f"Pass a smaller {option('length')} and {option('too_long', 'cut')}, or load "
            "ragged rows.",
            record=int(np.argmax(lengths)),
        )
    padded = np.full((len(lengths), width, *values.shape[1:]), fill, values.dtype)
    kept = np.minimum(lengths, width)
    if (kept < lengths).any():
        starts = np.cumsum(lengths) - lengths
        values = values[np.arange(len(values)) - np.repeat(starts, lengths) < width]
    padded[np.arange(width) < kept[:, np.newaxis]] = values
    return padded, kept


def _stored_kinds(dtype: str | None, fill: object) -> tuple[Kind, ...]:
    """Return the kinds of features that can be padded with this number."""
    if not isinstance(fill, Real):
        return ()
    if dtype is not None:
        return _kinds(dtype) if can_hold(number_type(dtype), fill) else ()
    stored = {"int64": "int64", "float": "float32"}
    return tuple(kind for kind in NUMBERS if can_hold(np.dtype(stored[kind]), fill))


def check_room(length: object, policy: object) -> None:
    """Check `length` and `too_long` of a padded feature."""
    if length is not None:
        whole_number("length", length, 0)
    check_word("too_long", policy, get_args(TooLong))
    if length is None and policy == "cut":
        raise OptionError(
            f"{option('too_long', 'cut')} needs {option('length')}",
            option="length",
            remedy=f"Pass {option('length')}.",
        )


def too_long(
    feature: Any, key: str, lengths: Int64Array, noun: str, plural: str | None = None
) -> Iterator[CorruptDataError]:
    """Yield an error for each row that is longer than a feature's `length`, unless it is cut."""
    if not isinstance(feature.length, int) or feature.too_long == "cut":
        return
    for row in np.flatnonzero(lengths > feature.length).tolist():
        yield CorruptDataError(
            Defect.FEATURE_SHAPE,
            f"feature {key!r} has too many {plural or f'{noun}s'}",
            found=counted(int(lengths[row]), noun, plural),
            expected=f"at most {feature.length}",
            remedy=f"Pass {option('too_long', 'cut')} to keep the first ones.",
            feature=key,
            record=row,
        )


@dataclass(frozen=True)
class Ragged(ValueFeature):
    """Any number of values from each record: a RaggedArray of int64 or float32.

    A record without the feature has an empty row, or the default.

    Attributes:
        key: the key of the feature in the records.
        dtype: as in `Tensor`.
        default: the values for records without the feature, such as [0].

    Example:
        features = {"scores": rs.Ragged("scores", dtype="float32")}
    """

    key: str
    _: KW_ONLY
    dtype: str | None = None
    default: Any = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        check_default(self.default, self.dtype)

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(_kinds(self.dtype), "ragged", self.default)}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        return (as_dtype(self.key, rows.columns[self.key], self.dtype),)


@dataclass(frozen=True)
class Present(ValueFeature):
    """Whether each record has a feature: bool, (batch,).

    True also for an empty list, a feature list without steps and a feature without a kind. Next to
    a feature with a default, it shows where the default is:
    `{"age": Scalar("age", default=0), "has_age": Present("age")}`.

    Attributes:
        key: the key of the feature in the records.

    Example:
        loader = rs.Loader(dataset, {"has_text": rs.Present("image/class/text")}, batch_size=8)
        print(next(iter(loader))["has_text"])
    """

    key: str

    def requests(self) -> dict[str, None]:
        return {self.key: None}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        return (rows.presence[self.key],)


@dataclass(frozen=True)
class Position(ValueFeature):
    """The position of each record in the loader's dataset: int64, (batch,).

    `dataset[position]` is the record, in whatever order it was loaded.

    Example:
        loader = rs.Loader(dataset, {"at": rs.Position()}, batch_size=8, shuffle=True)
        print(next(iter(loader))["at"])
    """

    def requests(self) -> dict[str, ColumnRequest]:
        return {}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        return (rows.positions.copy(),)
