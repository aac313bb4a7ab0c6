"""Short descriptions of many names, and of none."""

from __future__ import annotations

import pytest

from recordsmith.sources.problems import (
    count_notice,
    join_names,
    join_problems,
    summarize_paths,
)


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
    assert summarize_paths(["a.xml", "b", "c"]) == "a.xml, b and c"
    paths = ["x/a.xml", "b.xml", "c", "d.txt", "e.xml"]
    assert summarize_paths(paths) == "5 files (3 .xml, 1 without suffix, 1 .txt), such as x/a.xml"


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ([], []),
        (["a"], ["1 hidden file skipped: a"]),
        ([*"abc"], ["3 hidden files skipped: a, b and c"]),
        (
            [*"abc", "d.txt"],
            ["4 hidden files skipped (3 without suffix, 1 .txt): a, b, c and 1 more"],
        ),
    ],
)
def test_notice(paths: list[str], expected: list[str]) -> None:
    assert count_notice(paths, "hidden file", "skipped") == expected


def test_problems_in_one_sentence() -> None:
    every = [f"problem {number}" for number in range(22)]
    assert join_problems(every[:20]) == "; ".join(every[:20])
    assert join_problems(every) == "; ".join(every[:20]) + "; and 2 more"
