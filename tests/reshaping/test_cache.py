"""Values that were needed lately: made once while they are remembered, and few of them are."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from recordsmith.reshaping.inputs.cache import LruCache


def test_the_oldest_is_forgotten_when_it_gets_too_much() -> None:
    made = []

    def make(number: int) -> str:
        made.append(number)
        return "x" * number

    recent: LruCache[str] = LruCache(lambda _, value: len(value), 10)
    for number in (3, 4, 3, 5, 3):  # 4 goes when 5 comes: 12 together
        assert recent.get(number, make) == "x" * number
    assert made == [3, 4, 5]
    recent.get(4, make)  # now 5 goes
    recent.get(3, make)
    assert made == [3, 4, 5, 4]
    assert recent.get(50, make) == "x" * 50  # larger than all may be, and there all the same
    recent.get(50, make)
    assert made == [3, 4, 5, 4, 50]


def test_never_more_than_a_few() -> None:
    recent: LruCache[int] = LruCache(lambda *_: 0, 10)
    for number in range(1000):
        recent.get(number, int)
    again = []
    for number in range(1000):
        recent.get(number, again.append)  # type: ignore[arg-type,func-returns-value]
    assert len(again) >= 900


def test_values_are_made_in_parallel_and_one_per_number_is_kept() -> None:
    recent: LruCache[list[int]] = LruCache(lambda _, value: len(value), 3)
    both = threading.Barrier(2, timeout=20)

    def make(number: int) -> list[int]:
        both.wait()  # until another thread makes one, too
        return [number]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda number: recent.get(number, make), (1, 2))) == [[1], [2]]
        one, other = pool.map(lambda number: recent.get(number, make), (3, 3))
    assert one is other
    assert [recent.get(number, lambda _: [0]) for number in (1, 2, 3)] == [[1], [2], [3]]
