"""Features of classes: their numbers, and one-hot and multi-hot rows of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, FeatureSpec, Kind, RaggedArray, Schema
from recordsmith.loading.features.feature import NUMBERS, BatchRows, ColumnRequest, ValueFeature
from recordsmith.loading.features.numbers import as_dtype, check_dtype, number_type, row_of
from recordsmith.support.errors import CorruptDataError, Defect, OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import count_number, whole_number
from recordsmith.support.words import count as counted
from recordsmith.support.words import suggest_names

if TYPE_CHECKING:
    from typing_extensions import Self

    from recordsmith.dataset import Dataset

Stored = Literal["numbers", "vector"]
"""Records store the numbers or names of classes, or a 0 or 1 for each class."""

_ABSENT = b"\xff"  # the default of texts: it is not UTF-8
_UNKNOWN = -(2**63)
_MOST_CLASSES = 65_536  # of a row, unless declared: a file of class names may have a large number
_KINDS: tuple[Kind, ...] = ("int64", "float", "bytes")


@dataclass(frozen=True)
class _Classes(ValueFeature):
    """Classes of each record, stored as numbers or as names."""

    key: str
    _: KW_ONLY
    class_names: Sequence[str | None] | None = None
    names: dict[bytes, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    count: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = self.class_names
        if names is not None and (
            isinstance(names, (str, bytes))
            or not isinstance(names, Sequence)
            or not all(name is None or isinstance(name, str) for name in names)
        ):
            raise OptionError(option="class_names", value=names, expected="a list of names")
        check_dtype(getattr(self, "dtype", None))
        classes = getattr(self, "classes", None)
        if classes is not None:
            count_number("classes", classes)
        default = getattr(self, "default", None)
        if default is not None:
            whole_number("default", default, -(2**31), 2**31 - 1)

    def of_datasets(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> Self:
        """Return this feature with the numbers of the class names."""
        are_texts = specs[self.key].kind == "bytes"
        names: Sequence[str | None] | None = self.class_names
        own = dict.fromkeys(dataset.class_names for dataset in datasets)
        if not are_texts:
            own.pop(None, None)
        if len(own) > 1 and (names is None or not are_texts):
            raise OptionError(
                f"feature {self.key!r}: the datasets of the mix have different class names",
                option="class_names",
                remedy=f"Pass {option('class_names')}, in which the texts of all are looked up."
                if are_texts
                else "Give all datasets the same classes with Edits(recode=...), or load the "
                f"numbers as they are with Scalar({self.key!r}).",
            )
        if names is None:
            names = next(iter(own), None)
        count: int | None = getattr(self, "classes", None)
        if names is None and (count is None or are_texts):
            raise OptionError(
                f"feature {self.key!r}: the dataset has no class names",
                option="class_names",
                remedy=f"Pass {option('class_names')}, a list of the names by number.",
            )
        if hasattr(self, "classes") and count is None and len(names or ()) > _MOST_CLASSES:
            raise OptionError(
                f"feature {self.key!r}: the dataset has {len(names or ()):,} classes",
                option="classes",
                remedy=f"Pass {option('classes')} if each row should be that long.",
            )
        numbers = [(name, number) for number, name in enumerate(names or ()) if name is not None]
        often = Counter(name for name, _ in numbers).most_common(1)
        if often and often[0][1] > 1:
            raise OptionError(
                f"two classes have the name {often[0][0]!r}", option="class_names", value=names
            )
        feature = copy(self)
        encoded = {name.encode("utf-8", "surrogateescape"): number for name, number in numbers}
        object.__setattr__(feature, "names", encoded)
        object.__setattr__(feature, "count", len(names or ()) if count is None else count)
        return feature

    def _numbers(self, column: Any, default: int | None = None) -> Any:
        """Return the numbers of the classes of a column, int64, of its shape."""
        values = column.values if isinstance(column, RaggedArray) else column
        if isinstance(values, BytesArray):
            known = self.names
            if default is not None:
                known = {b"": default, **known, _ABSENT: default}
            texts = values.reshape(-1).tolist()
            numbers = np.fromiter((known.get(text, _UNKNOWN) for text in texts), np.int64)
            numbers = numbers.reshape(values.shape)
        else:
            as_whole = as_dtype(self.key, column, "int64")
            numbers = as_whole.values if isinstance(column, RaggedArray) else as_whole
        is_bad = (numbers < 0) | (numbers >= self.count)
        if default is not None:
            is_bad &= numbers != default
        if is_bad.any():
            index = int(np.argmax(is_bad))
            raise self._unknown(values.reshape(-1)[index], row_of(column, index))
        return RaggedArray(numbers, column.row_splits) if values is not column else numbers

    def _unknown(self, value: Any, row: int) -> CorruptDataError:
        expected, found = f"0 to {self.count - 1}", f"{value}"
        if isinstance(value, bytes):
            text = value[:80].decode("utf-8", "surrogateescape")
            names = [name.decode("utf-8", "surrogateescape") for name in self.names]
            expected = f"a class name; {suggest_names(text, names, 'there are none')}"
            found = repr(text)
        return CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {self.key!r} has an unknown class",
            found=found,
            expected=expected,
            feature=self.key,
            record=row,
        )


@dataclass(frozen=True)
class Label(_Classes):
    """The numbers of classes, by their names in the dataset: int64, (batch, *shape).

    Records store the names, which are looked up, or the numbers, which are checked. An unknown
    class is an error. The datasets of a mix must have the same class names; if they differ, texts
    are looked up in `class_names`, and numbers are refused.

    Attributes:
        key: the key of the feature in the records: text or whole numbers.
        shape: of the classes of a record: () for one, (n,) for n, "ragged" for any number, which
            gives a RaggedArray.
        class_names: the names by number, None for a number without a name. Default: those of the
            dataset.
        default: the number for records without the feature, such as -1; also accepted where
            records store it, and for empty texts, with which `Episodes` pads.
        dtype: of the numbers, such as "int32".

    Example:
        features = {"label": rs.Label("image/class/text")}
        batch = next(iter(rs.Loader(dataset, features, batch_size=8)))
        print([dataset.class_names[label] for label in batch["label"]])
    """

    shape: tuple[int, ...] | Literal["ragged"] = ()
    _: KW_ONLY
    default: int | None = None
    dtype: str = "int64"

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(_KINDS, self.shape, _default(self.shape, self.default))}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        numbers = self._numbers(rows.columns[self.key], self.default)
        return (as_dtype(self.key, numbers, self.dtype),)


@dataclass(frozen=True)
class OneHot(_Classes):
    """A row for each class of a record, with a 1 at its number: float32, (batch, *shape, classes).

    Attributes:
        key: the key of the feature in the records: whole numbers, text, or vectors.
        classes: the number of classes. Default: that of the class names.
        shape: of the classes of a record: () for one, (n,) for n.
        dtype: of the rows, such as "int64" or "bool".
        stored: `numbers` for the numbers or names of the classes, or `vector` for rows of
            zeros and a 1, which are checked; they need `classes`.
        class_names: as in `Label`, for records that store names.
        default: the number of the class of records without the feature; -1 for a row of zeros,
            also accepted where records store it.

    Example:
        features = {"target": rs.OneHot("image/class/label", classes=5)}
        print(next(iter(rs.Loader(dataset, features, batch_size=8)))["target"].shape)  # (8, 5)
    """

    classes: int | None = None
    shape: tuple[int, ...] = ()
    _: KW_ONLY
    dtype: str = "float32"
    stored: Stored = "numbers"
    default: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_stored(self.stored, self.classes)
        most = None if self.classes is None else self.classes - 1
        if self.default is not None:
            whole_number("default", self.default, -1, most)

    def requests(self) -> dict[str, ColumnRequest]:
        if self.stored == "numbers":
            return {self.key: ColumnRequest(_KINDS, self.shape, _default(self.shape, self.default))}
        default = None
        if self.default is not None:
            row = np.arange(self.classes or 0) == self.default
            default = np.broadcast_to(row, (*self.shape, len(row))).astype(np.int64)
        return {self.key: ColumnRequest(NUMBERS, (*self.shape, self.classes or 0), default)}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column: Any = rows.columns[self.key]
        if self.stored == "numbers":
            numbers = self._numbers(column, self.default)
            hot = np.zeros((numbers.size, self.count), number_type(self.dtype))
            (at,) = np.nonzero(numbers.reshape(-1) >= 0)
            hot[at, numbers.reshape(-1)[at]] = 1
            return (hot.reshape(*numbers.shape, self.count),)
        ones = zeros_and_ones(self.key, column).sum(axis=-1)
        is_good = (ones == 1) | ((ones == 0) & (self.default == -1))
        if not is_good.all():
            index = int(np.argmin(is_good))
            raise _not_a_vector(
                self.key, counted(ones.flat[index], "one"), "a single one", row_of(ones, index)
            )
        return (as_dtype(self.key, column, self.dtype),)


@dataclass(frozen=True)
class MultiHot(_Classes):
    """A row for each record, with a 1 at the number of each of its classes: (batch, classes).

    A record without the feature has a row of zeros.

    Attributes:
        key: the key of the feature in the records: lists of whole numbers or texts, or vectors.
        classes: the number of classes. Default: that of the class names.
        dtype: of the rows: float32 by default.
        stored: `numbers` for the numbers or names of the classes, `vector` for a 0 or 1 for each
            class, which needs `classes`. Default: numbers or names, but a list that could be
            either, of `classes` numbers that are all 0 or 1, is an error.
        class_names: as in `Label`, for records that store names.

    Example:
        features = {"tags": rs.MultiHot("image/object/class/label", classes=20)}
    """

    classes: int | None = None
    _: KW_ONLY
    dtype: str = "float32"
    stored: Stored | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stored is not None:
            check_stored(self.stored, self.classes)

    def requests(self) -> dict[str, ColumnRequest]:
        kinds = NUMBERS if self.stored == "vector" else _KINDS
        return {self.key: ColumnRequest(kinds, "ragged")}

    def for_schema(self, schema: Schema) -> Self:
        known = schema.columns.get(self.key)
        if known is not None and known.kind in NUMBERS and self.stored != "numbers":
            lengths = known.min_length, known.max_length
            if self.stored is None and lengths == (self.classes,) * 2:
                raise OptionError(
                    f"all records have {counted(lengths[0], 'value')} of {self.key!r}, one for "
                    "each class",
                    option="stored",
                    remedy=_DECLARE,
                )
            if self.stored and lengths[0] == lengths[1] != self.classes and lengths[0]:
                raise OptionError(
                    f"all records have {counted(lengths[0], 'value')} of {self.key!r}",
                    option="classes",
                    value=self.classes,
                    expected=f"{lengths[0]} for vectors",
                )
        return self

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column = rows.columns[self.key]
        assert isinstance(column, RaggedArray)
        lengths = column.lengths
        hot = np.zeros((len(lengths), self.count), number_type(self.dtype))
        is_full = lengths == self.count
        if self.stored == "vector":
            is_good = is_full | (lengths == 0)
            if not is_good.all():
                row = int(np.argmin(is_good))
                expected = counted(self.count, "value")
                raise _not_a_vector(self.key, counted(lengths[row], "value"), expected, row)
            zeros_and_ones(self.key, column)
            values: Any = as_dtype(self.key, column, self.dtype).values
            hot[is_full] = values.reshape(-1, self.count)
            return (hot,)
        if self.stored is None and is_full.any() and not isinstance(column.values, BytesArray):
            (full,) = np.nonzero(is_full)
            places = column.row_splits[full][:, np.newaxis] + np.arange(self.count)
            is_unclear = _is_binary(column.values[places]).all(axis=1)
            if is_unclear.any():
                raise CorruptDataError(
                    Defect.FEATURE_VALUE,
                    f"feature {self.key!r} is ambiguous",
                    found=f"{counted(self.count, 'number')} that are all 0 or 1, as many as there "
                    "are classes",
                    remedy=_DECLARE,
                    feature=self.key,
                    record=int(full[np.argmax(is_unclear)]),
                )
        numbers = self._numbers(column)
        hot[np.repeat(np.arange(len(lengths)), lengths), numbers.values] = 1
        return (hot,)


def _default(shape: tuple[int, ...] | Literal["ragged"], number: int | None) -> Any:
    """Return the default for each kind of column; None without one."""
    if number is None:
        return None
    kinds: dict[Kind, Any] = {"int64": number, "float": number, "bytes": _ABSENT}
    count = math.prod(shape) if shape != "ragged" else 1
    return {kind: [one] * count if shape else one for kind, one in kinds.items()}


_DECLARE = (
    f"Pass {option('stored', 'vector')} for a 0 or 1 for each class, or "
    f"{option('stored', 'numbers')} for the numbers of the classes."
)


def check_stored(stored: object, classes: int | None) -> None:
    """Check `stored`, which needs `classes` for vectors."""
    check_word("stored", stored, get_args(Stored))
    if stored == "vector" and classes is None:
        raise OptionError(
            f"{option('stored', 'vector')} needs {option('classes')}",
            option="classes",
            remedy=f"Pass {option('classes')}, the length of the vectors.",
        )


def zeros_and_ones(key: str, column: Any) -> npt.NDArray[Any]:
    """Return the values of a column; CorruptDataError if one is neither 0 nor 1."""
    values: Any = column.values if isinstance(column, RaggedArray) else column
    is_good = _is_binary(values).reshape(-1)
    if not is_good.all():
        index = int(np.argmin(is_good))
        value = values.reshape(-1)[index].item()
        raise _not_a_vector(key, f"{value!r}", "0 or 1", row_of(column, index))
    numbers: npt.NDArray[Any] = values
    return numbers


def _is_binary(values: Any) -> npt.NDArray[np.bool_]:
    is_good: npt.NDArray[np.bool_] = (values == 0) | (values == 1)
    return is_good


def _not_a_vector(key: str, found: str, expected: str, row: int) -> CorruptDataError:
    return CorruptDataError(
        Defect.FEATURE_VALUE,
        f"feature {key!r} is not a vector of classes",
        found=found,
        expected=expected,
        feature=key,
        record=row,
    )
