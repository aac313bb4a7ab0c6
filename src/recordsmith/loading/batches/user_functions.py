"""Calls the user's filter and maps, and checks what they return.

Their exceptions become a `FunctionError` with the record. The examples of a batch must have the
same entries, each of one shape and dtype. Entries that an example map returns unchanged are not
copied; the others are stacked to columns.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset import RecordLocation
from recordsmith.format.example import BytesArray, Column, RaggedArray
from recordsmith.loading.augment.checks import Augmentation
from recordsmith.support.buffers import offsets_from_lengths
from recordsmith.support.errors import FunctionError, OptionError, option

Example: TypeAlias = dict[str, Any]
Filter: TypeAlias = "Callable[[Example], Any] | Callable[[Example, np.random.Generator], Any]"
Map: TypeAlias = (
    "Callable[[Example], Mapping[str, Any]] "
    "| Callable[[Example, np.random.Generator], Mapping[str, Any]]"
)
Maps: TypeAlias = "Map | Sequence[Map]"
Locate: TypeAlias = Callable[[int], RecordLocation]
"""Returns the location of the record of a row."""

_NOTHING = object()


class UserFunctions(msgspec.Struct, frozen=True):
    """The user's functions: of an example or a batch alone, or of it and a generator."""

    filter: UserFunction | None = None
    map_examples: UserFunction | None = None
    map_batches: UserFunction | None = None

    @classmethod
    def checked(
        cls,
        filter: Filter | None = None,
        map_examples: Maps | None = None,
        map_batches: Maps | None = None,
    ) -> UserFunctions:
        """Check what was passed as `filter`, `map_examples` and `map_batches`."""
        return cls(
            filter=_user_function("filter", filter, "example"),
            map_examples=_user_map("map_examples", map_examples, "example"),
            map_batches=_user_map("map_batches", map_batches, "batch"),
        )


class UserFunction(msgspec.Struct, frozen=True):
    """A user's function, and whether it is called with a generator."""

    function: Callable[..., Any]
    takes_generator: bool

    def __call__(self, given: dict[str, Any], generator: Callable[[], np.random.Generator]) -> Any:
        """Call it with an example or a batch; `generator` creates the generator if needed."""
        return self.function(given, generator()) if self.takes_generator else self.function(given)

    def without_rows(self) -> UserFunction | None:
        """Return the part of it that may be called for a batch without rows.

        That is all up to a user's function, as this need not support such batches.
        """
        if not isinstance(self.function, _Chain):
            return self if isinstance(self.function, Augmentation) else None
        first = takewhile(lambda one: one.without_rows() is not None, self.function.functions)
        return msgspec.structs.replace(self, function=_Chain(tuple(first)))


class _Chain(msgspec.Struct, frozen=True):
    """Calls functions one after the other, with one generator that all of them draw from."""

    functions: tuple[UserFunction, ...]

    def __call__(self, given: Any, generator: np.random.Generator) -> Any:
        for function in self.functions:
            given = function(given, lambda: generator)
        return given


def _user_map(what: str, functions: Any, argument: str) -> UserFunction | None:
    if not isinstance(functions, (list, tuple)):
        return _user_function(what, functions, argument)
    checked = [_user_function(what, function, argument) for function in functions]
    chain = _Chain(tuple(function for function in checked if function is not None))
    return UserFunction(chain, takes_generator=True) if chain.functions else None


def _user_function(what: str, function: Any, argument: str) -> UserFunction | None:
    """Check a function, as far as its signature is known, and find whether it takes a generator.

    It does if its second parameter is required or is called `generator`. Others with a default
    are the function's own, as in `f(example, size=224)`. A function without a signature, such as
    some compiled ones, is called with one argument.
    """
    if function is None:
        return None
    if what == "map_examples" and isinstance(function, Augmentation):
        function = function.map_example
    expected = f"a function of ({argument}) or ({argument}, generator)"
    if not callable(function):
        raise OptionError(option=what, value=function, expected=expected)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return UserFunction(function, takes_generator=False)
    fits_one, fits_two = (_fits_arguments(signature, count) for count in (1, 2))
    if not (fits_one or fits_two):
        raise OptionError(
            f"{option(what)} has the parameters {signature}",
            option=what,
            value=function,
            expected=expected,
        )
    second = [*signature.parameters.values(), None, None][1]
    is_named = fits_two and second is not None and second.name == "generator"
    return UserFunction(function, takes_generator=is_named or not fits_one)


def _fits_arguments(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


# -- calling ---------------------------------------------------------------------------------------

_inside = threading.local()


@contextmanager
def calling(owner: object) -> Iterator[None]:
    """Mark that this thread is inside functions of `owner`."""
    outer = getattr(_inside, "owner", None)
    _inside.owner = owner
    try:
        yield
    finally:
        _inside.owner = outer


def is_calling(owner: object) -> bool:
    """Whether this thread is inside functions of `owner`."""
    return getattr(_inside, "owner", None) is owner


def accepts(
    function: UserFunction,
    example: Example,
    generator: Callable[[], np.random.Generator],
    row: int,
    locate: Locate,
) -> bool:
    """Whether a filter keeps an example."""
    try:
        result = function(example, generator)
        is_kept = bool(result)
    except Exception as error:
        raise _error("filter", _raising(error), locate(row)) from error
    if result is None:
        raise _error("filter", "returned None; expected True or False", locate(row))
    return is_kept


def mapped_batch(
    function: UserFunction,
    batch: dict[str, Any],
    generator: Callable[[], np.random.Generator],
    which: str,
) -> dict[str, Any]:
    """Call a batch map and check its result; `which` describes the batch for errors."""

    def error(problem: str) -> FunctionError:
        return FunctionError(f"{which}: map_batches {problem}", function="map_batches")

    try:
        result = function(batch, generator)
    except Exception as raised:
        raise error(_raising(raised)) from raised
    if not isinstance(result, Mapping):
        raise error(f"returned {_kind(result)}; expected a dict")
    lengths = {name: _length(entry) for name, entry in result.items()}
    expected = "expected an array whose first axis counts the examples"
    for name, length in lengths.items():
        if length is None:
            raise error(f"returned {_kind(result[name])} for {name!r}; {expected}")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise error(f"returned entries of different lengths: {listed}; {expected}")
    return dict(result)


class MappedRows:
    """The results of an example map for the rows of a batch. Threads add different rows."""

    def __init__(self, function: UserFunction, locate: Locate) -> None:
        self._function = function
        self._locate = locate
        self._results: dict[int, Mapping[str, Any]] = {}
        self._changed: set[str] = set()

    def add(self, row: int, example: Example, generator: Callable[[], np.random.Generator]) -> None:
        """Call the function with the example of a row."""
        given = dict(example)  # the function may change the example itself
        try:
            result = self._function(example, generator)
        except Exception as error:
            raise _error("map_examples", _raising(error), self._locate(row)) from error
        if not isinstance(result, Mapping):
            problem = f"returned {_kind(result)}; expected a dict"
            raise _error("map_examples", problem, self._locate(row))
        self._results[row] = result
        for name, entry in result.items():
            if entry is not given.get(name, _NOTHING):
                self._changed.add(name)

    def columns(self, given: Mapping[str, Column]) -> dict[str, Any]:
        """Return the results as columns, row by row; `given` are the columns of the examples."""
        rows = sorted(self._results)
        results = [self._results[row] for row in rows]
        first = results[0]
        for row, result in zip(rows, results, strict=True):
            if result.keys() != first.keys():
                names, firsts = (", ".join(map(repr, each)) for each in (result, first))
                problem = f"returned the entries {names}, but {firsts} for the first example"
                raise _error("map_examples", problem, self._locate(row))
        columns: dict[str, Any] = {}
        for name in first:
            if name in given and name not in self._changed:
                columns[name] = given[name]
                continue
            try:
                columns[name] = stack([result[name] for result in results], given.get(name))
            except _MismatchError as error:
                where = self._locate(rows[error.row])
                problem = f"returned for {name!r} {error.problem}"
                raise _error("map_examples", problem, where, error.remedy) from None
        return columns


def _raising(error: Exception) -> str:
    return f"raised {type(error).__name__}: {error}"


def _error(what: str, problem: str, where: RecordLocation, remedy: str = "") -> FunctionError:
    return FunctionError(
        f"{where}: {what} {problem}",
        function=what,
        path=str(where.path),
        record=where.number,
        offset=where.offset,
        remedy=remedy,
    )


def _kind(value: object) -> str:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return f"{value!r:.50}"
    return f"a {type(value).__name__}"


def _length(entry: Any) -> int | None:
    """Return how many examples an entry of a batch has; None if it has no axis."""
    if isinstance(entry, (str, bytes, Mapping)):
        return None
    try:
        return len(entry)
    except TypeError:
        return None


# -- putting together ------------------------------------------------------------------------------


class _MismatchError(Exception):
    """A row that is not usable, or that does not match the first one."""

    def __init__(self, row: int, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.row = row
        self.problem = problem
        self.remedy = remedy


def stack(values: Sequence[Any], given: Column | None = None) -> Column:
    """Stack the values of at least one row to a column.

    Numbers and arrays of one shape and dtype become an array, bytes a BytesArray, str and lists of
    str an array of objects. If `given`, the column before the map, is ragged, so is the result.
    """
    if all(_is_text(value) for value in values):
        return _texts(values)
    if isinstance(given, RaggedArray) and all(isinstance(row, RaggedArray) for row in values):
        inner = [one for row in values for one in row]
        column = stack(inner, given.values) if inner else given.values[:0]
        return RaggedArray(column, offsets_from_lengths([len(row) for row in values]))
    rows = [_as_row(row, value) for row, value in enumerate(values)]
    first = rows[0]
    axis_count = len(getattr(given.values, "shape", ())) if isinstance(given, RaggedArray) else 0
    is_ragged = axis_count > 0 and all(
        len(value.shape) == axis_count and value.shape[1:] == first.shape[1:] for value in rows
    )
    first_kind = _kind_of_row(first, is_ragged)
    for row, value in enumerate(rows):
        if (kind := _kind_of_row(value, is_ragged)) != first_kind:
            raise _MismatchError(
                row,
                f"{_described(kind)}, but {_described(first_kind)} for the first example",
                "Crop, resize or pad the examples of a batch to one shape, and convert them to one "
                "dtype with astype.",
            )
    splits = offsets_from_lengths([len(row) for row in rows]) if is_ragged else None
    if isinstance(first, BytesArray):
        pieces: list[Any] = [piece for value in rows for piece in value.reshape(-1).tolist()]
        column = BytesArray.from_values(pieces)
        if splits is not None:
            return RaggedArray(column.reshape(splits[-1], *first.shape[1:]), splits)
        return column.reshape(len(rows), *first.shape)
    arrays: Any = rows
    return np.stack(arrays) if splits is None else RaggedArray(np.concatenate(arrays), splits)


def _is_text(value: Any) -> bool:
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
            raise _MismatchError(row, f"a list: {error}") from None
    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001 - objects may raise anything
        array = np.empty(0, object)
    if array.dtype.kind == "U":
        return BytesArray.from_values(array.ravel().tolist()).reshape(*array.shape)
    if array.dtype.kind not in "biufc":
        raise _MismatchError(row, f"{_kind(value)}; expected a number, an array, str or bytes")
    return array


def _kind_of_row(value: npt.NDArray[Any] | BytesArray, is_ragged: bool) -> tuple[Any, ...]:
    """Return what must be equal in all rows: whether it is text, dtype, and shape unless ragged."""
    kind = (True, "text or bytes") if isinstance(value, BytesArray) else (False, value.dtype)
    return kind if is_ragged else (*kind, value.shape)


def _described(kind: tuple[Any, ...]) -> str:
    return " of shape ".join(map(str, kind[1:]))
