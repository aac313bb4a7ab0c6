"""Collects the problems of a job or a sample: the first ones, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_PROBLEMS = 100
"""How many problems of a job are listed: the first ones. All are counted."""

_NAMED_PLACES = 3


class Problems:
    """The first problems of a job or a sample, and how many there are in all.

    Equal problems of several records are one line: "record 0, record 3 and 23 more: no size".

    count: of all.
    lines: at most MAX_PROBLEMS.
    """

    def __init__(self, problems: Iterable[str] = ()) -> None:
        self.count = 0
        self.lines: list[_Line] = []
        self._repeatable: dict[str, _Line] = {}
        if problems:
            self.extend(problems)

    @property
    def first(self) -> list[str]:
        """The first ones, each as a text."""
        return [line.text() for line in self.lines]

    def unlisted_count(self, most: int = MAX_PROBLEMS) -> int:
        """How many problems are in none of the first `most` lines."""
        return self.count - sum(line.count for line in self.lines[:most])

    def __iter__(self) -> Iterator[str]:
        return iter(self.first)

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, problem: str, place: str = "") -> None:
        """Count one more problem, and list it if it is among the first.

        Args:
            problem: what is wrong.
            place: where, such as "record 3"; equal problems of several places are one line.
        """
        self.count += 1
        self._add(problem, [place] if place else [], 1)

    def extend(self, problems: Iterable[str], count: int | None = None) -> None:
        """Add several problems; `count` if there are more than these."""
        before = self.count
        if isinstance(problems, Problems):
            count = problems.count
            for line in problems.lines:
                self._add(line.problem, line.places, line.count)
        else:
            for problem in problems:
                self.add(problem)
        if count is not None:
            self.count = before + count

    def _add(self, problem: str, places: list[str], count: int) -> None:
        line = self._repeatable.get(problem) if places else None
        if line is None:
            if len(self.lines) == MAX_PROBLEMS:
                return
            line = _Line(problem)
            self.lines.append(line)
            if places:
                self._repeatable[problem] = line
        line.places += places[: _NAMED_PLACES - len(line.places)]
        line.count += count


class _Line:
    """A problem, the first places that have it, and how often it occurs."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.places: list[str] = []
        self.count = 0

    def text(self) -> str:
        if not self.places:
            return self.problem  # which may have fields
        more = self.count - len(self.places)
        return f"{', '.join(self.places)}{f' and {more:,} more' if more else ''}: {self.problem}"
