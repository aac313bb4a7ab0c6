"""The first problems are listed, and all are counted; an error has both."""

from __future__ import annotations

import pickle

import pytest

from recordsmith.support.errors import SourceError
from recordsmith.support.problems import MAX_PROBLEMS, Problems


@pytest.mark.parametrize("count", [0, 1, MAX_PROBLEMS, MAX_PROBLEMS + 1, 5 * MAX_PROBLEMS])
def test_the_first_problems_are_kept_and_all_are_counted(count: int) -> None:
    every = [str(number) for number in range(count)]
    in_parts, last = Problems(every[: count // 2]), Problems(every[count // 2 :])
    in_parts.extend(last)
    for problems in (Problems(every), in_parts):
        assert list(problems) == problems.first == every[:MAX_PROBLEMS]
        assert (problems.count, bool(problems)) == (count, count > 0)
    error = SourceError("words", in_parts)
    assert error.problems == (tuple(every[:MAX_PROBLEMS]) or ("words",))
    assert error.problem_count == max(1, count)
    assert pickle.loads(pickle.dumps(error)).problem_count == error.problem_count


def test_problems_that_were_counted_elsewhere() -> None:
    problems = Problems(["a"])
    problems.extend(["b", "c"], 1000)
    assert (problems.first, problems.count) == (["a", "b", "c"], 1001)
