"""How are a user's functions called, and what do they answer?

What they raise becomes a `FunctionError` that says which record it was about. What they answer must
fit together: every example of a batch has the same entries, of one shape and dtype. An entry that
an example map hands back as it was given costs nothing; the others are put together to columns.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import RecordLocation
from recordsmith.errors import FunctionError, OptionError
from recordsmith.example import BytesArray, Column, RaggedArray

Example: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[Example], Any]
Map: TypeAlias = Callable[[dict[str, Any], np.random.Generator], Mapping[str, Any]]
Locate: TypeAlias = Callable[[int], RecordLocation]
"""row -> where its record lies."""

_NOTHING = object()


@dataclass(frozen=True)
class Changes:
    """What a user's functions do to examples and batches.

    filter: example -> whether it is kept; it sees the entries that are not pixels.
    map_examples: (example, generator) -> example; after its pixels are decoded.
    map_batches: (batch, generator) -> batch.
    """

    filter: Filter | None = None
    map_examples: Map | None = None
    map_batches: Map | None = None

    def __post_init__(self) -> None:
        _check_function("filter", self.filter, ("example",))
        _check_function("map_examples", self.map_examples, ("example", "generator"))
        _check_function("map_batches", self.map_batches, ("batch", "generator"))


def _check_function(what: str, function: object, arguments: tuple[str, ...]) -> None:
    """Whether it can be called with so many arguments, as far as that can be told."""
    if function is None:
        return
    words = f"expected a function of ({', '.join(arguments)})"
    if not callable(function):
        raise OptionError(f"{what} is {function!r:.60}; {words}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some that are compiled do not say
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise OptionError(f"{what} has the arguments {signature}; {words}: {error}") from None


# -- calling ---------------------------------------------------------------------------------------

_inside = threading.local()


@contextmanager
def calling(owner: object) -> Iterator[None]:
    """Mark that this thread is inside functions that belong to `owner`."""
    outer = getattr(_inside, "owner", None)
    _inside.owner = owner
    try:
        yield
    finally:
        _inside.owner = outer


def is_calling(owner: object) -> bool:
    """Whether this thread is inside functions that belong to `owner`."""
    return getattr(_inside, "owner", None) is owner


def accepts(function: Filter, example: Example, row: int, locate: Locate) -> bool:
    """What a filter says of an example."""
    try:
        answer = function(example)
        is_kept = bool(answer)
    except Exception as error:
        raise _raised("filter", error, locate(row)) from error
    if answer is None:
        raise _answered("filter", "None; expected True or False", locate(row))
    return is_kept


def mapped_batch(
    function: Map, batch: dict[str, Any], generator: np.random.Generator, which: str
) -> dict[str, Any]:
    """What a batch map made of a batch; `which` says in words which it is."""
    try:
        answer = function(batch, generator)
    except Exception as error:
        words = f"{which}: map_batches raised {type(error).__name__}: {error}"
        raise FunctionError(words) from error
    if not isinstance(answer, Mapping):
        raise FunctionError(f"{which}: map_batches answered {_kind(answer)}; expected a dict")
    lengths = {name: _length(entry) for name, entry in answer.items()}
    for name, length in lengths.items():
        if length is None:
            raise FunctionError(
                f"{which}: map_batches answered {_kind(answer[name])} for {name!r}; expected an "
                "array whose first axis counts the examples"
            )
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise FunctionError(
            f"{which}: map_batches answered entries of unequal length: {words}; expected arrays "
            "whose first axis counts the examples"
        )
    return dict(answer)


class MappedRows:
    """What an example map answered for the rows of a batch. Threads add different rows."""

    def __init__(self, function: Map, locate: Locate) -> None:
        self._function = function
        self._locate = locate
        self._answers: dict[int, Mapping[str, Any]] = {}
        self._changed: set[str] = set()

    def add(self, row: int, example: Example, generator: np.random.Generator) -> None:
        """Call the function with the example of a row."""
        given = dict(example)  # the function may change the example itself
        try:
            answer = self._function(example, generator)
        except Exception as error:
            raise _raised("map_examples", error, self._locate(row)) from error
        if not isinstance(answer, Mapping):
            words = f"{_kind(answer)}; expected a dict"
            raise _answered("map_examples", words, self._locate(row))
        self._answers[row] = answer
        for name, entry in answer.items():
            if entry is not given.get(name, _NOTHING):
                self._changed.add(name)

    def columns(self, given: Mapping[str, Column]) -> dict[str, Any]:
        """The answers as columns, in the order of the rows.

        `given`: the columns that the examples were taken of, with the rows that were added.
        """
        rows = sorted(self._answers)
        answers = [self._answers[row] for row in rows]
        first = answers[0]
        for row, answer in zip(rows, answers, strict=True):
            if answer.keys() != first.keys():
                names, firsts = (", ".join(map(repr, each)) for each in (answer, first))
                words = f"entries {names}, but {firsts} for {self._locate(rows[0])}"
                raise _answered("map_examples", words, self._locate(row))
        columns: dict[str, Any] = {}
        for name in first:
            if name in given and name not in self._changed:
                columns[name] = given[name]
                continue
            try:
                columns[name] = stack([answer[name] for answer in answers], given.get(name))
            except _MisfitError as misfit:
                words = f"{misfit.found} for {name!r}{misfit.expected}"
                if misfit.other_row is not None:
                    other = f"{misfit.other} for {self._locate(rows[misfit.other_row])}"
                    words = f"{misfit.found} for {name!r}, but {other}{misfit.expected}"
                where = self._locate(rows[misfit.row])
                raise _answered("map_examples", words, where) from None
        return columns


def _raised(what: str, error: Exception, where: RecordLocation) -> FunctionError:
    return _function_error(f"{what} raised {type(error).__name__}: {error}", where)


def _answered(what: str, words: str, where: RecordLocation) -> FunctionError:
    return _function_error(f"{what} answered {words}", where)


def _function_error(words: str, where: RecordLocation) -> FunctionError:
    return FunctionError(
        f"{where}: {words}", path=where.path, position=where.number, offset=where.offset
    )


def _kind(value: object) -> str:
    """A value in few words."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return f"{value!r:.50}"
    return f"a {type(value).__name__}"


def _length(entry: Any) -> int | None:
    """How many examples an entry of a batch has; None if it has no axis."""
    if isinstance(entry, (str, bytes, Mapping)):
        return None
    try:
        return len(entry)
    except TypeError:
        return None


# -- putting together ------------------------------------------------------------------------------


class _MisfitError(Exception):
    """Two rows that do not go together, or one that goes with none."""

    def __init__(
        self, row: int, found: str, expected: str, other_row: int | None = None, other: str = ""
    ) -> None:
        super().__init__(found)
        self.row = row
        self.found = found
        self.expected = expected
        self.other_row = other_row
        self.other = other


def stack(values: Sequence[Any], given: Column | None = None) -> Column:
    """A column of one value for each row, of which there is at least one.

    Numbers and arrays of one shape and dtype become an array, in which numbers of Python take the
    dtype of the others. bytes become a BytesArray; str, as those of Text, an array of objects, and
    so do lists of str. Where `given`, the column before they were mapped, has rows of unequal
    length, it is a RaggedArray again.
    """
    if all(_is_text(value) for value in values):
        return _texts(values)
    rows = [_as_row(row, value) for row, value in enumerate(values)]
    first = rows[0]
    is_ragged = isinstance(given, RaggedArray) and all(len(value.shape) == 1 for value in rows)
    for row, value in enumerate(rows):
        if isinstance(value, BytesArray) is not isinstance(first, BytesArray):
            raise _MisfitError(row, _sort(value), "", 0, _sort(first))
        if value.shape != first.shape and not is_ragged:
            advice = ". The examples of a batch must be alike: crop, resize or pad them"
            raise _MisfitError(row, f"shape {value.shape}", advice, 0, f"shape {first.shape}")
    if isinstance(first, BytesArray):
        pieces: list[Any] = [piece for value in rows for piece in value.reshape(-1).tolist()]
        column = BytesArray.from_values(pieces)
        if is_ragged:
            return RaggedArray(column, _splits(rows))
        return column.reshape(len(rows), *first.shape)
    dtype = _dtype_of(rows, values)
    if is_ragged:
        return RaggedArray(np.concatenate(rows, dtype=dtype, casting="unsafe"), _splits(rows))
    # only numbers of Python are cast
    return np.stack(rows, dtype=dtype, casting="unsafe")


def _is_text(value: Any) -> bool:
    """Whether it is a str, or a list or an array of nothing else."""
    if isinstance(value, str):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "OU" and all(
            type(text) is str for text in value.ravel().tolist()
        )
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _texts(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    shapes = {value.shape for value in values if isinstance(value, np.ndarray)}
    is_alike = len(shapes) == 1 and all(isinstance(value, np.ndarray) for value in values)
    column = np.empty((len(values), *(shapes.pop() if is_alike else ())), object)
    for row, value in enumerate(values):
        column[row] = value
    return column


def _as_row(row: int, value: Any) -> npt.NDArray[Any] | BytesArray:
    if isinstance(value, BytesArray):
        return value
    if isinstance(value, (str, bytes)):
        return BytesArray.from_values([value]).reshape(())  # type: ignore[arg-type]
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (str, bytes)):
        try:
            return BytesArray.from_values(value)
        except OptionError as error:
            raise _MisfitError(row, f"a list whose {error}", "") from None
    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001 - whatever kind of object it is
        array = np.empty(0, object)
    if array.dtype.kind == "U":
        return BytesArray.from_values(array.ravel().tolist()).reshape(*array.shape)
    if array.dtype.kind not in "biufc":
        raise _MisfitError(row, _kind(value), "; expected a number, an array, str or bytes")
    return array


def _dtype_of(rows: Sequence[Any], values: Sequence[Any]) -> np.dtype[Any]:
    """The one dtype of all rows."""
    is_weak = [type(value) in (bool, int, float, complex) for value in values]
    first = is_weak.index(False) if False in is_weak else 0
    dtype = rows[first].dtype
    for row, value in enumerate(rows):
        fits = value.dtype == dtype
        if is_weak[row] and not is_weak[first]:
            fits = _fits(values[row], dtype)
        if not fits:
            advice = ". The examples of a batch must be alike: convert them with astype"
            raise _MisfitError(row, f"{value.dtype}", advice, first, f"{dtype}")
    return dtype  # type: ignore[no-any-return]


def _fits(number: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a number of Python can stand among those of a dtype."""
    if isinstance(number, int) and not isinstance(number, bool) and dtype.kind in "iu":
        return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)
    kinds = {bool: "b", int: "fc", float: "fc", complex: "c"}
    return dtype.kind in kinds[type(number)]


def _sort(value: Any) -> str:
    return "text or bytes" if isinstance(value, BytesArray) else "numbers"


def _splits(rows: Sequence[Any]) -> npt.NDArray[np.int64]:
    splits = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=splits[1:])
    return splits
