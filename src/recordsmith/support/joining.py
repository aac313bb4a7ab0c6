"""Joins numbers that belong together, in pairs, to groups."""

from __future__ import annotations

from collections.abc import Iterable


def joined(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the lowest number of the group of each number in pairs; a pair is in one group."""
    lowest: dict[int, int] = {}

    def find(number: int) -> int:
        path = []
        while (above := lowest.setdefault(number, number)) != number:
            path.append(number)
            number = above
        lowest.update(dict.fromkeys(path, number))
        return number

    for a, b in pairs:
        a, b = find(a), find(b)  # noqa: PLW2901
        lowest[max(a, b)] = min(a, b)
    return {number: find(number) for number in [*lowest]}
