"""Features of classes: their numbers, and one-hot and multi-hot rows of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, Column, FeatureSpec, Kind, RaggedArray, Schema
from recordsmith.format.example.class_lists import CLASS_LISTS, positive_classes
from recordsmith.format.example.keys import CLASS_CONFIDENCE, CLASS_TEXT
from recordsmith.loading.features.feature import NUMBERS, BatchRows, ColumnRequest, ValueFeature
from recordsmith.loading.features.numbers import as_dtype, check_dtype, corrupt, number_type, row_of
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import count_number, whole_number
from recordsmith.support.words import count as counted
from recordsmith.support.words import suggest_names

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset

Stored = Literal["numbers", "vector"]
"""Records store the numbers or names of classes, or a 0 or 1 for each class."""

_ABSENT = b"\xff"  # the default of texts: it is not UTF-8
_UNKNOWN = -(2**63)
_MOST_CLASSES = 65_536  # of a row, unless declared: a file of class names may have a large number
_KINDS: tuple[Kind, ...] = (*NUMBERS, "bytes")
_NO_VECTOR = "is not a vector of classes"
_DECLARE = (
    f"Pass {option('stored', 'vector')} for a 0 or 1 for each class, or "
    f"{option('stored', 'numbers')} for the numbers of the classes."
)


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
        are_names = isinstance(names, (list, tuple)) and all(
            name is None or isinstance(name, str) for name in names
        )
        if names is not None and not are_names:
            raise OptionError(option="class_names", value=names, expected="a list of names")

    def of_datasets(self, datasets: Sequence[Dataset], specs: Mapping[str, FeatureSpec]) -> Self:
        """Return this feature with the numbers of the class names."""
        are_texts = specs[self.key].kind == "bytes"
        names, classes = self.class_names, getattr(self, "classes", None)
        own = dict.fromkeys(dataset.class_names for dataset in datasets)
        if not are_texts:
            own.pop(None, None)
        if len(own) > 1 and (names is None or not are_texts):
            raise OptionError(
                f"feature {self.key!r}: the datasets of the mix have different class names",
                option="class_names",
                remedy=f"Pass {option('class_names')} to look up the texts of all; give numbers "
                "the same classes with Edits(recode=...).",
            )
        if names is None:
            names = next(iter(own), None)
        if names is None and (classes is None or are_texts):
            raise OptionError(
                f"feature {self.key!r}: the dataset has no class names",
                option="class_names",
                remedy=f"Pass {option('class_names')}, a list of the names by number.",
            )
        count = len(names or ()) if classes is None else classes
        if isinstance(self, _Hot) and classes is None and count > _MOST_CLASSES:
            raise OptionError(
                f"feature {self.key!r}: the dataset has {count:,} classes",
                option="classes",
                remedy=f"Pass {option('classes')} if each row should be that long.",
            )
        numbers: dict[bytes, int] = {}
        for number, name in enumerate(names or ()):
            text = b"" if name is None else name.encode("utf-8", "surrogateescape")
            if name is not None and numbers.setdefault(text, number) != number:
                problem = f"two classes have the name {name!r}"
                raise OptionError(problem, option="class_names", value=names)
        feature = copy(self)
        object.__setattr__(feature, "names", numbers)
        object.__setattr__(feature, "count", count)
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
            (value,) = values.reshape(-1)[index : index + 1].tolist()
            expected = f"0 to {self.count - 1}"
            if isinstance(value, bytes):
                value = value[:80].decode("utf-8", "surrogateescape")
                names = [name.decode("utf-8", "surrogateescape") for name in self.names]
                expected = f"a class name; {suggest_names(value, names, 'there are none')}"
            row = row_of(column, index)
            raise corrupt(self.key, "has an unknown class", row, f"{value!r}", expected)
        return RaggedArray(numbers, column.row_splits) if values is not column else numbers


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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dtype(self.dtype)
        if self.default is not None:
            whole_number("default", self.default, -(2**31), 2**31 - 1)

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(_KINDS, self.shape, _default(self.shape, self.default))}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        numbers = self._numbers(rows.columns[self.key], self.default)
        return (as_dtype(self.key, numbers, self.dtype),)


@dataclass(frozen=True)
class _Hot(_Classes):
    """Rows of zeros and ones."""

    classes: int | None = None
    _: KW_ONLY
    dtype: str = "float32"
    stored: Stored | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dtype(self.dtype)
        if self.classes is not None:
            count_number("classes", self.classes)
        if self.stored is not None:
            check_word("stored", self.stored, get_args(Stored))
        if self.stored == "vector" and self.classes is None:
            raise OptionError(
                f"{option('stored', 'vector')} needs {option('classes')}",
                option="classes",
                remedy=f"Pass {option('classes')}, the length of the vectors.",
            )

    def _vectors(self, column: Any, fewest: int, most: int) -> Any:
        """Return stored vectors, (..., classes), after checking how many ones each has."""
        is_binary = _is_binary(column)
        if not is_binary.all():
            index = int(np.argmin(is_binary))
            value, row = column.reshape(-1)[index].item(), row_of(column, index)
            raise corrupt(self.key, _NO_VECTOR, row, f"{value!r}", "0 or 1")
        ones = column.sum(axis=-1)
        is_good = (ones >= fewest) & (ones <= most)
        if not is_good.all():
            index = int(np.argmin(is_good))
            found, row = counted(int(ones.flat[index]), "one"), row_of(ones, index)
            raise corrupt(self.key, "is not a vector of one class", row, found, "a single one")
        return as_dtype(self.key, column, self.dtype)


@dataclass(frozen=True)
class OneHot(_Hot):
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

    shape: tuple[int, ...] = ()
    _: KW_ONLY
    stored: Stored = "numbers"
    default: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.default is not None:
            most = None if self.classes is None else self.classes - 1
            whole_number("default", self.default, -1, most)

    def requests(self) -> dict[str, ColumnRequest]:
        if self.stored == "numbers":
            return {self.key: ColumnRequest(_KINDS, self.shape, _default(self.shape, self.default))}
        shape, default = (*self.shape, self.classes or 0), None
        if self.default is not None:
            row = np.arange(shape[-1]) == self.default
            default = np.broadcast_to(row, shape).astype(np.int64)
        return {self.key: ColumnRequest(NUMBERS, shape, default)}

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column: Any = rows.columns[self.key]
        if self.stored == "vector":
            return (self._vectors(column, 0 if self.default == -1 else 1, 1),)
        numbers = self._numbers(column, self.default)
        hot = np.zeros((*numbers.shape, self.count), number_type(self.dtype))
        at = np.nonzero(numbers >= 0)
        hot[(*at, numbers[at])] = 1
        return (hot,)


@dataclass(frozen=True)
class MultiHot(_Hot):
    """A row for each record, with a 1 at the number of each of its classes: (batch, classes).

    A record without the feature has a row of zeros, like one with an empty list; `Present` shows
    the difference. A class with the number 0 in `image/class/confidence` is absent: a zero.

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

    _: KW_ONLY
    has_confidence: bool = field(default=False, init=False, repr=False)

    def requests(self) -> dict[str, ColumnRequest]:
        kinds = NUMBERS if self.stored == "vector" else _KINDS
        more = {CLASS_CONFIDENCE: ColumnRequest(NUMBERS, "ragged")} if self.has_confidence else {}
        return {self.key: ColumnRequest(kinds, "ragged"), **more}

    def for_schema(self, schema: Schema) -> Self:
        known, texts = schema.features.get(self.key), schema.features.get(CLASS_TEXT)
        if known is not None and self.key in CLASS_LISTS and self.stored != "vector":
            has_confidence = CLASS_CONFIDENCE in schema.features
            if has_confidence or (texts is not None and known.max_length == texts.max_length):
                feature = replace(self, stored="numbers")
                object.__setattr__(feature, "has_confidence", has_confidence)
                return feature
        if known is None or known.kind not in NUMBERS or known.min_length != known.max_length:
            return self
        is_vector, count = known.max_length == self.classes, known.max_length
        is_wrong = self.stored == "vector" and count > 0 and not is_vector
        if is_vector if self.stored is None else is_wrong:
            raise OptionError(
                f"all records have {counted(count, 'value')} of {self.key!r}, for "
                f"{counted(self.classes or 0, 'class', 'classes')}",
                option="stored",
                value=self.stored,
                remedy=_DECLARE,
            )
        return self

    def values(self, rows: BatchRows) -> tuple[Column, ...]:
        column: Any = rows.columns[self.key]
        lengths = column.lengths
        (full,) = np.nonzero(lengths == self.count)
        if self.stored == "vector":
            is_bad = (lengths != self.count) & (lengths != 0)
            if is_bad.any():
                row = int(np.argmax(is_bad))
                found, expected = counted(lengths[row], "value"), f"{self.count} or none"
                raise corrupt(self.key, _NO_VECTOR, row, found, expected)
            vectors = np.zeros((len(lengths), self.count), column.values.dtype)
            vectors[full] = column.values.reshape(-1, self.count)
            return (self._vectors(vectors, 0, self.count),)
        if self.stored is None and len(full) and not isinstance(column.values, BytesArray):
            places = column.row_splits[full][:, np.newaxis] + np.arange(self.count)
            is_unclear = _is_binary(column.values[places]).all(axis=1)
            if is_unclear.any():
                found = f"{counted(self.count, 'number')}, 0 or 1, as many as there are classes"
                row = int(full[np.argmax(is_unclear)])
                raise corrupt(self.key, "is ambiguous", row, found, remedy=_DECLARE)
        confidence: Any = rows.columns.get(CLASS_CONFIDENCE)
        positive = positive_classes(column, confidence) if self.has_confidence else column
        hot = np.zeros((len(lengths), self.count), number_type(self.dtype))
        owners = np.repeat(np.arange(len(lengths)), positive.lengths)
        hot[owners, self._numbers(positive).values] = 1
        return (hot,)


def _default(shape: tuple[int, ...] | Literal["ragged"], number: int | None) -> Any:
    """Return the default for each kind of column; None without one."""
    if number is None:
        return None
    count = 1 if shape == "ragged" else math.prod(shape)
    return {kind: [_ABSENT if kind == "bytes" else number] * count for kind in _KINDS}


def _is_binary(values: Any) -> npt.NDArray[np.bool_]:
    is_good: npt.NDArray[np.bool_] = (values == 0) | (values == 1)
    return is_good
