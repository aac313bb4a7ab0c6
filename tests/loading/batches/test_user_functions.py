"""Users' functions get what they should; what they do wrongly is told with its place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.format.example import BytesArray, RaggedArray
from recordsmith.loading.batches.user_functions import UserFunctions, _MismatchError, stack

from ...raising import places, raises

pytestmark = pytest.mark.usefixtures("_nothing_stays")
THREADS = [0, 3]


@pytest.fixture(scope="module")
def dataset(numbered: Any, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return rs.open(numbered.write(tmp_path_factory.mktemp("functions"), [10, 20]))


@pytest.fixture
def make(dataset: rs.Dataset, numbered: Any) -> Callable[..., rs.Loader]:
    """A loader of batches of 5."""
    features = {
        "id": rs.Scalar("id"), "corner": rs.Tensor("corner", (2,)), "image": numbered.Painted(),
    }  # fmt: skip
    return lambda **options: rs.Loader(dataset, features, batch_size=5, **options)


# -- what they get ---------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
def test_what_functions_get(make: Any, threads: int) -> None:
    seen: dict[str, list[Any]] = {"filter": [], "map_examples": [], "map_batches": []}

    def is_kept(example: dict[str, Any]) -> bool:
        assert list(example) == ["id", "corner"]  # no pixels
        seen["filter"].append(int(example["id"]))
        return bool(example["id"] % 3)

    def one(example: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        assert set(example) == {"id", "corner", "image"}
        assert (example["image"] == example["id"]).all()
        assert example["corner"].tolist() == [example["id"], -example["id"]]
        seen["map_examples"].append((int(example["id"]), generator.random()))
        return example

    def many(batch: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        assert list(batch) == ["id", "corner", "image"]
        seen["map_batches"].append((batch["id"].tolist(), generator.random()))
        return batch

    batches = list(
        make(threads=threads, filter=is_kept, map_examples=one, map_batches=many, shuffle=True)
    )
    kept = [batch["id"].tolist() for batch in batches]
    assert sorted(seen["filter"]) == list(range(30))
    assert sorted(number for batch in kept for number in batch) == [
        number for number in range(30) if number % 3
    ]
    assert sorted(number for number, _ in seen["map_examples"]) == sorted(
        number for batch in kept for number in batch
    )
    assert sorted(numbers for numbers, _ in seen["map_batches"]) == sorted(kept)
    drawn = [number for name in ("map_examples", "map_batches") for _, number in seen[name]]
    assert len(set(drawn)) == len(drawn)  # no two have the same random numbers


@pytest.mark.parametrize("threads", THREADS)
def test_what_is_handed_back_is_not_copied(make: Any, threads: int) -> None:
    given = []

    def maps(example: dict[str, Any], generator: Any) -> dict[str, Any]:
        given.append(example["image"].ctypes.data)
        example["image"] += 0.5  # changed in place
        return {"corner": example["corner"], "image": example["image"], "id": -example["id"]}

    for batch in make(threads=threads, map_examples=maps):
        assert list(batch) == ["corner", "image", "id"]  # in the order of the answers
        assert (batch["image"] == 0.5 - batch["id"][:, None, None]).all()
        rows = {batch["image"][row].ctypes.data for row in range(5)}
        assert rows <= set(given)


# -- what they raise -------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("what", ["filter", "map_examples"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_what_raises_names_its_example(
    make: Any, dataset: rs.Dataset, threads: int, what: str, shuffle: bool
) -> None:
    def fails(example: dict[str, Any], *_: Any) -> Any:
        if example["id"] in (17, 18, 23):
            raise ZeroDivisionError(f"bad {example['id']}")
        return example

    errors = []
    for count in THREADS:
        with pytest.raises(rs.FunctionError) as caught:
            list(make(threads=count, shuffle=shuffle, seed=4, **{what: fails}))
        errors.append(str(caught.value))
    error = caught.value
    number = int(str(error)[-2:])
    where = records_of(dataset).locate_record(number)
    assert str(error) == f"{where}: {what} raised ZeroDivisionError: bad {number}"
    assert (error.path, error.record, error.offset) == (str(where.path), *tuple(where)[1:])
    assert error.function == what
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert errors[0] == errors[1]  # the same one, with any threads
    assert shuffle or number == 17


@pytest.mark.parametrize("threads", THREADS)
def test_what_raises_names_its_batch(make: Any, threads: int) -> None:
    def fails(batch: dict[str, Any], generator: Any) -> Any:
        raise KeyError("labels")

    loader = make(threads=threads, map_batches=fails)
    with raises(rs.FunctionError, function="map_batches", match="KeyError: 'labels'$") as caught:
        list(loader)
    assert places([str(caught.value)]) == ["epoch 0, places 0 to 4"]
    assert isinstance(caught.value.__cause__, KeyError)
    frames = [entry.name for entry in caught.traceback]
    assert frames[-1] == "mapped_batch"


def test_functions_are_not_skipped(make: Any) -> None:
    def fails(example: Any, generator: Any) -> Any:
        raise rs.CorruptDataError(rs.Defect.UNREADABLE_IMAGE, "mine")

    with pytest.raises(rs.FunctionError, match="CorruptDataError: unreadable-image: mine"):
        list(make(map_examples=fails, skip_errors=100))


# -- what they answer ------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"filter": lambda *_: None}, "record 0, byte 0: filter returned None; expected True or"),
        ({"filter": lambda e: e["corner"]}, "filter raised ValueError: The truth value"),
        ({"map_examples": lambda *_: None}, "record 0, byte 0: map_examples returned None; exp"),
        ({"map_examples": lambda e, _: [e]}, "map_examples returned a list; expected a dict"),
        (
            {"map_examples": lambda e, _: {"a": 1} if e["id"] == 2 else {"b": 1}},
            "record 2, byte .*: map_examples returned the entries 'a', but 'b' for the first",
        ),
        (
            {"map_examples": lambda e, _: {"a": np.zeros((int(e["id"] != 3), 2))}},
            (
                r"record 3,.* returned for 'a' float64 of shape \(0, 2\), but float64 of shape "
                r"\(1, 2\) for the first example\. Crop, resize or pad"
            ),
        ),
        (
            {"map_examples": lambda e, _: {"a": e["id"] if e["id"] < 4 else 1.5}},
            r"record 4,.* returned for 'a' float64 of shape \(\), but int64 of .*astype",
        ),
        (
            {"map_examples": lambda e, _: {"a": "text" if e["id"] else 1.5}},
            "record 1,.* returned for 'a' text or bytes of shape .*, but float64 of shape",
        ),
        ({"map_examples": lambda *_: {"a": None}}, "returned for 'a' None; expected a number"),
        ({"map_examples": lambda *_: {"a": {}}}, "returned for 'a' a dict; expected a number"),
        ({"map_examples": lambda *_: {"a": [[1], [2, 3]]}}, "returned for 'a' a list; expected"),
        ({"map_batches": lambda *_: None}, "places 0 to 4: map_batches returned None; expected"),
        ({"map_batches": lambda *_: {"a": 3}}, "map_batches returned 3 for 'a'; expected an arr"),
        ({"map_batches": lambda *_: {"a": "xyz"}}, "map_batches returned 'xyz' for 'a'; expecte"),
        (
            {"map_batches": lambda b, _: {"a": b["id"], "b": b["id"][1:]}},
            "map_batches returned entries of different lengths: 'a' 5, 'b' 4; expected",
        ),
        (
            {"map_batches": lambda *_: {"a": np.float32(3)}},
            "map_batches returned a float32 for 'a'",
        ),
    ],
)
def test_answers_that_cannot_be_used(
    make: Any, threads: int, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(rs.FunctionError, match=words):
        list(make(threads=threads, **options))


# -- putting together ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], np.array([1, 2], np.int64)),
        ([1.5, 2.0], np.array([1.5, 2.0])),
        ([True, False], np.array([True, False])),
        ([np.float32(1), 2.5], None),
        ([np.zeros(2, np.uint8), np.ones(2, np.uint8)], np.array([[0, 0], [1, 1]], np.uint8)),
        ([[1, 2], (3, 4)], np.array([[1, 2], [3, 4]])),
        ([np.zeros((0, 3)), np.zeros((0, 3))], np.zeros((2, 0, 3))),
        ([1j, 2.0], None),
        ([1, 2.5], None),
        ([np.int64(3), True], None),
        ([np.float32(1), np.float64(1)], None),
        ([np.array([object()])], None),
    ],
)
def test_stacks_of_numbers(values: list[Any], expected: Any) -> None:
    if expected is None:
        with pytest.raises(_MismatchError):
            stack(values)
        return
    stacked = stack(values)
    assert isinstance(stacked, np.ndarray)
    assert stacked.dtype == expected.dtype
    np.testing.assert_array_equal(stacked, expected)
    assert stacked.flags.writeable


@pytest.mark.parametrize(
    ("values", "shape", "expected"),
    [
        (["a", b"b\0", "ü"], (3,), [b"a", b"b\0", "ü".encode()]),
        ([["a", b"b\0"], ["", "d"]], (2, 2), [[b"a", b"b\0"], [b"", b"d"]]),
        ([BytesArray.from_values(["a", "b"])[1:], ["c"]], (2, 1), [[b"b"], [b"c"]]),
    ],
)
def test_stacks_of_bytes(values: list[Any], shape: tuple[int, ...], expected: Any) -> None:
    stacked = stack(values)
    assert isinstance(stacked, BytesArray)
    assert stacked.shape == shape
    assert stacked.tolist() == expected


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (["a", "ü", ""], (3,)),
        ([["a"], [], ["b", "c"]], (3,)),
        ([np.array(["a", "b"], object), np.array(["c", "d"], object)], (2, 2)),
        ([np.array(["a", "bc"])], (1, 2)),
    ],
)
def test_stacks_of_text(values: list[Any], shape: tuple[int, ...]) -> None:
    stacked = stack(values)
    assert isinstance(stacked, np.ndarray)
    assert stacked.dtype == object
    assert stacked.shape == shape
    assert stacked.tolist() == [
        value if isinstance(value, str) else list(value) for value in values
    ]


def test_what_was_ragged_stays_so() -> None:
    given = RaggedArray(np.arange(3), np.array([0, 1, 3]))
    stacked: Any = stack([[1, 2], np.array([3, 4])], given)
    assert isinstance(stacked, RaggedArray)
    assert stacked.tolist() == [[1, 2], [3, 4]]
    stacked = stack([BytesArray.from_values(["a"]), BytesArray.from_values([])], given)
    assert isinstance(stacked, RaggedArray)
    assert stacked.tolist() == [[b"a"], []]
    padded: Any = stack([np.zeros((2, 4)), np.zeros((2, 4))], given)
    assert padded.shape == (2, 2, 4)


def test_stacks_hold_the_example_that_does_not_fit(dataset: rs.Dataset, tmp_path: Path) -> None:
    """Places are those of the records, also where rows were left out before."""
    loader = rs.Loader(
        dataset, {"id": rs.Scalar("id")}, batch_size=30, filter=lambda e: e["id"] > 9,
        map_examples=lambda e, _: {"a": [0] * (1 + (e["id"] == 25))},
    )  # fmt: skip
    with pytest.raises(rs.FunctionError) as caught:
        list(loader)
    assert str(caught.value).startswith(str(records_of(dataset).locate_record(25)))
    assert "int64 of shape (2,), but int64 of shape (1,) for the first example" in str(caught.value)


# -- functions of one argument or two --------------------------------------------------------------


class _Caller:
    def __call__(self, example: Any) -> Any:
        return example


def _both(*both: Any) -> Any:
    return both[0]


@pytest.mark.parametrize(
    ("function", "takes_generator"),
    [
        (lambda example: example, False),
        (lambda example, generator: example, True),
        (lambda example, rng: example, True),
        (lambda example, size=3: example, False),
        (lambda example, generator=None: example, True),
        (lambda example, *, size=3: example, False),
        (_both, False),
        (dict, False),
        (operator.itemgetter("id"), False),
        (partial(lambda size, example: example, 3), False),
        (partial(lambda size, example, generator: example, 3), True),
        (partial(lambda example, generator: example, generator=None), False),
        (_Caller(), False),
        (_Caller().__call__, False),
    ],
)
@pytest.mark.parametrize("what", ["filter", "map_examples", "map_batches"])
def test_functions_with_and_without_a_generator(
    what: str, function: Any, takes_generator: bool
) -> None:
    checked = getattr(UserFunctions.checked(**{what: function}), what)
    assert checked.takes_generator is takes_generator


@pytest.mark.parametrize(
    "function", [lambda: 1, lambda a, b, c: a, lambda *, example: example, lambda a, *, b: a, 5]
)
@pytest.mark.parametrize("what", ["filter", "map_examples", "map_batches"])
def test_functions_that_cannot_be_called(what: str, function: Any) -> None:
    with pytest.raises(rs.OptionError) as caught:
        UserFunctions.checked(**{what: function})
    assert (caught.value.option, caught.value.value) == (what, f"{function!r:.80}")
    assert "generator" in caught.value.expected
