"""Few words for many things, and for none."""

from __future__ import annotations

import pytest

from recordsmith.sources.problems import join_names, summarize_paths


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b, c and 1 more"),
        ([str(number) for number in range(2000)], "0, 1, 2 and 1,997 more"),
    ],
)
def test_some(names: list[str], expected: str) -> None:
    assert join_names(names) == expected
    assert join_names(iter(names)) == expected


def test_some_of_which_one_counts() -> None:
    assert join_names(["a", "b"], "or") == "a or b"


def test_tally() -> None:
    assert summarize_paths([]) == "no files"
    assert summarize_paths(["a.xml", "b"]) == "a.xml and b"
    paths = ["x/a.xml", "b.xml", "c", "d.txt", "e.xml"]
    assert summarize_paths(paths) == "5 files (3 .xml, 1 without suffix, 1 .txt), such as x/a.xml"
