"""Short descriptions of many names, and of none."""

from __future__ import annotations

import pytest

from recordsmith.sources import join_names, join_problems
from recordsmith.sources.problems import count_notice, summarize_paths

PATHS = ["x/a.xml", "b.xml", "c", "d.txt", "e.xml"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (join_names([]), ""),
        (join_names(["a"]), "a"),
        (join_names(iter("abc")), "a, b and c"),
        (join_names(["a", "b"], "or"), "a or b"),
        (join_names(str(number) for number in range(2000)), "0, 1, 2 and 1,997 more"),
        (summarize_paths([]), "no files"),
        (summarize_paths(PATHS[1:4]), "b.xml, c and d.txt"),
        (
            summarize_paths(PATHS),
            "5 files (3 .xml, 1 without suffix, 1 .txt), such as x/a.xml",
        ),
        (count_notice([], "hidden file", "skipped"), []),
        (count_notice(["a"], "hidden file", "skipped"), ["1 hidden file skipped: a"]),
        (
            count_notice([*"abc", "d.txt"], "hidden file", "skipped"),
            ["4 hidden files skipped (3 without suffix, 1 .txt): a, b, c and 1 more"],
        ),
        (join_problems(f"p{n}" for n in range(2)), "p0; p1"),
    ],
)
def test_texts(text: object, expected: object) -> None:
    assert text == expected


def test_problems_beyond_the_first_are_counted() -> None:
    every = [f"problem {number}" for number in range(22)]
    assert join_problems(every) == "; ".join(every[:20]) + "; and 2 more"
