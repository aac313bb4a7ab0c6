"""Which class names are one class written in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.linting.class_check import _is_one_typo, similar_names


@pytest.mark.parametrize(
    ("one", "other", "is_likely"),
    [
        ("cat", "Cat", True),
        ("traffic light", "traffic_light", True),
        ("traffic-light", "TrafficLight", True),
        ("dog", "dogs", True),
        ("box", "boxes", True),
        ("cherry", "cherries", True),
        ("horse", "horses", True),
        ("banana", "bananna", True),
        ("motorcycle", "motorcylce", True),
        ("horse", "house", True),  # only as one has few images
        ("cat", "bat", None),
        ("class1", "class2", None),
        ("B", "b", None),
        ("glass", "glas", None),
        ("bus", "bush", None),
        ("n01440764", "n01443537", None),
        ("left", "right", None),
        ("person", "people", None),
        ("", " ", None),
    ],
)
def test_pairs_of_names(one: str, other: str, is_likely: bool | None) -> None:
    found = [likely for *_, likely in similar_names({one: 1000, other: 3})]
    assert found == ([] if is_likely is None else [is_likely])


def test_a_large_class_is_no_typo() -> None:
    assert [likely for *_, likely in similar_names({"horse": 900, "house": 800})] == [False]
    assert [likely for *_, likely in similar_names({"horse": 0, "house": 0})] == [False]


def test_many_names_are_compared_in_little_time() -> None:
    """Ten thousand names have fifty million pairs."""
    names = {f"{number:05d} of {number * 7919 % 10007}": 1 for number in range(10_000)}
    assert not list(similar_names(names))


def _reference(one: str, other: str) -> int:
    """Edit distance by its definition."""
    if not one or not other:
        return len(one) + len(other)
    least = min(
        _reference(one[1:], other) + 1,
        _reference(one, other[1:]) + 1,
        _reference(one[1:], other[1:]) + (one[0] != other[0]),
    )
    if len(one) > 1 and len(other) > 1 and one[:2] == other[1::-1]:
        least = min(least, _reference(one[2:], other[2:]) + 1)
    return least


@given(st.text("ab", max_size=5), st.text("ab", max_size=5))
def test_edit_distances(one: str, other: str) -> None:
    assert _is_one_typo(one, other) == (_reference(one, other) == 1)
