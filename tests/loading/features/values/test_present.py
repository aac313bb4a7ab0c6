"""Which records have a feature, in the batches of a loader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs

ALL = list(range(37))


def has_age(number: int) -> bool:
    return number % 3 != 0


def has_tags(number: int) -> bool:
    return number % 5 < 3


def has_name(number: int) -> bool:
    return number % 2 == 0


FEATURES = {
    "id": rs.Scalar("id"),
    "age": rs.Scalar("age", default=-1),
    "has_age": rs.Present("age"),
    "tags": rs.Ragged("tags"),
    "has_tags": rs.Present("tags"),
    "has_name": rs.Present("name"),  # which no other feature reads
}
HAVE: dict[str, Callable[[int], bool]] = {
    "has_age": has_age,
    "has_tags": has_tags,
    "has_name": has_name,
}


@pytest.fixture
def dataset(tmp_path: Path) -> rs.Dataset:
    examples = []
    for number in ALL:
        example: dict[str, Any] = {"id": number}
        if has_age(number):
            example["age"] = number * 2
        if has_tags(number):
            example["tags"] = np.arange(number % 5)  # empty in every fifth record
        if has_name(number):
            example["name"] = f"name {number}"
        examples.append(example)
    return written(tmp_path, examples)


def check(batches: Any, expected: list[int] | None = None) -> list[int]:
    """Check the presence in batches by their ids; return the ids."""
    ids: list[int] = []
    for batch in batches:
        numbers = batch["id"].tolist()
        ids += numbers
        for name, has in HAVE.items():
            assert batch[name].dtype == np.bool_
            assert batch[name].tolist() == [has(number) for number in numbers]
        assert batch["age"].tolist() == [n * 2 if has_age(n) else -1 for n in numbers]
    assert expected is None or sorted(ids) == expected
    return ids


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"shuffle": True, "seed": 3, "threads": 0}, ALL),
        ({"shuffle": rs.BlockShuffle(4, 2), "threads": 3}, ALL),
        ({"filter": lambda example: bool(example["has_age"])}, [n for n in ALL if has_age(n)]),
        ({"map_examples": lambda example: example}, ALL),
        ({"map_batches": lambda batch: batch, "buckets": rs.BucketBySize()}, ALL),
    ],
    ids=["in-order", "shuffled", "blocks", "filter", "map_examples", "map_batches"],
)
def test_presence_is_that_of_the_keys(
    dataset: rs.Dataset, options: dict[str, Any], expected: list[int]
) -> None:
    check(rs.Loader(dataset, FEATURES, batch_size=8, **options), expected)


def test_a_key_that_no_record_has(dataset: rs.Dataset) -> None:
    with raises(rs.OptionError, option="features", value="agee"):
        rs.Loader(dataset, {"has": rs.Present("agee")}, batch_size=2)
    features = {"x": rs.Scalar("x", default=0), "has_x": rs.Present("x")}
    with pytest.warns(UserWarning, match="no record has 'x'"):
        loader = rs.Loader(dataset, features, batch_size=len(ALL))
    for batch in loader:
        assert not batch["has_x"].any()


def test_a_kind_does_not_matter(tmp_path: Path, reference: Any) -> None:
    """Of records that disagree on the kind, or have none."""
    r = reference
    payloads = [
        rs.encode_example({"x": 1}),
        rs.encode_example({"x": "text"}),
        r.example(r.entry(b"x", b"")),
        rs.encode_example({"y": 1}),
        rs.encode_example({"x": []}),
    ]
    dataset = written(tmp_path, payloads)
    features = {"y": rs.Scalar("y", default=0), "has": rs.Present("x")}
    (batch,) = rs.Loader(dataset, features, batch_size=9)
    assert batch["has"].tolist() == [True, True, True, False, True]
