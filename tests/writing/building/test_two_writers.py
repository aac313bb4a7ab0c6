"""Without renaming, jobs that write to one folder at the same time do not mix what they write.

Chance decides at each call of the store which job goes on.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location, MemoryStore
from recordsmith.support.errors import CorruptDataError, FileAccessError, OptionError

from .disturbed_stores import DisturbedStore, DyingStore, Killed, Turns, content
from .test_killed_jobs import append, copied, ids, pack, prepared, remove, reshard, source

SEEDS = range(200)
FEW_SEEDS = SEEDS[:70]  # where each run of the tests has them


def first(store: MemoryStore, **options: Any) -> None:
    pack(store, **options)


def second(store: MemoryStore, **options: Any) -> None:
    """Another plan, with shards of the same names and others."""
    pack(store, first=1, shards={"train": 2, "val": 2}, seed=2, **options)


def over(job: Callable[..., None]) -> Callable[[MemoryStore], None]:
    return lambda store: job(store, overwrite=True)


def is_busy(result: Any) -> bool:
    """Whether a job noticed that others change what it writes."""
    return isinstance(result, FileAccessError) and result.errno in (
        errno.EBUSY,
        errno.ESTALE,
        errno.ENOENT,
    )


FIRST = content(prepared(first), "out")
SECOND = content(prepared(second), "out")


@pytest.mark.slow
@pytest.mark.parametrize("has_dataset", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_same_plan(overwrite: bool, has_dataset: bool) -> None:
    job = over(first) if overwrite else first
    for seed in SEEDS:
        store = prepared(over(second)) if has_dataset and overwrite else MemoryStore()
        results = Turns(seed).run(store, [job, job])
        assert results == [None, None], seed
        assert content(store, "out") == FIRST, seed


def test_other_plan_is_refused() -> None:
    for seed in FEW_SEEDS:
        store = MemoryStore()
        results = Turns(seed).run(store, [first, second])
        refused = [isinstance(result, OptionError) or is_busy(result) for result in results]
        assert sorted(refused) == [False, True], (seed, results)
        assert results[refused.index(False)] is None
        assert content(store, "out") == (SECOND if refused[0] else FIRST), seed


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [(first, over(second)), (over(first), over(second))])
@pytest.mark.parametrize("has_dataset", [False, True])
def test_other_plan_takes_over(jobs: Any, has_dataset: bool) -> None:
    for seed in SEEDS:
        store = prepared(first) if has_dataset else MemoryStore()
        results = Turns(seed).run(store, list(jobs))
        found = content(store, "out")
        winner = int(found["dataset.json"] == SECOND["dataset.json"])
        # the last object of a job that has not noticed yet may stay, but replaces none
        late = found.keys() - (FIRST, SECOND)[winner].keys()
        assert len(late) <= is_busy(results[1 - winner]), seed
        assert {key: found[key] for key in found.keys() - late} == (FIRST, SECOND)[winner], seed
        assert results[winner] is None, seed
        for result in results:
            assert result is None or is_busy(result) or isinstance(result, OptionError), seed


@pytest.mark.slow
def test_readers_see_whole_datasets() -> None:
    """While a dataset appears, and while records are added."""

    def read(store: MemoryStore) -> list[Any]:
        found = []
        for _ in range(6):
            try:
                found.append(ids(store))
            except FileAccessError:
                found.append(None)
        return found

    base = prepared(source, first)
    added = copied(base)
    append(added)
    for seed in SEEDS:
        store = MemoryStore()
        results = Turns(seed).run(store, [first, read])
        assert results[0] is None
        assert all(found in (None, ids(base)) for found in results[1]), seed
        store = copied(base)
        results = Turns(seed).run(store, [append, read])
        assert results[0] is None
        assert all(found in (None, ids(base), ids(added)) for found in results[1]), seed


@pytest.mark.slow
@pytest.mark.parametrize("other", ["remove", "recover", "nothing", "append"])
def test_beside_a_change_in_place(other: str) -> None:
    """At the end the dataset is the old or a new one, and what a job reports is true."""
    beside: dict[str, Callable[[MemoryStore], Any]] = {
        "remove": remove,
        "recover": lambda store: rs.recover(Location(store, "out")),
        "nothing": lambda store: rs.edit_in_place(Location(store, "out"), where="id >= 0"),
        "append": append,
    }
    base = prepared(source, pack)
    old = ids(base)
    removed, appended, both = copied(base), copied(base), copied(base)
    remove(removed)
    append(appended)
    remove(both)
    append(both)
    for seed in FEW_SEEDS:
        store = copied(base)
        results = Turns(seed).run(store, [remove, beside[other]])
        assert all(
            not isinstance(result, BaseException)
            or isinstance(result, OptionError | CorruptDataError)
            or is_busy(result)
            for result in results
        ), (seed, results)
        if ids(store) is None:  # begun, and stopped by the other
            rs.recover(Location(store, "out"))
        assert ids(store) in (old, ids(removed), ids(appended), ids(both)), seed
        if not isinstance(results[0], BaseException):
            assert ids(store) in (ids(removed), ids(both)), seed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_jobs_that_begin_while_a_folder_is_opened() -> None:
    """At any call of the reader, a job writes all or a part."""
    whole = ids(prepared(first))
    for changes in (*range(2, 16, 2), 1000):
        for number in count():
            store, calls = MemoryStore(), count()
            store.put("out/notes.txt", b"of the user")

            def call(_: str) -> None:
                if next(calls) == number:  # noqa: B023 - called in this round
                    with suppress(Killed):
                        first(DyingStore(store, changes))  # noqa: B023

            assert ids(DisturbedStore(store, call, call)) in (None, whole), (changes, number)
            if next(calls) <= number:
                break
        assert number > 4


def test_two_appends() -> None:
    """One after the other, or one of them is refused."""

    def append_other(store: MemoryStore) -> None:
        rs.append(Location(store, "other"), Location(store, "out"), threads=1)

    base = prepared(source, first, lambda store: pack(store, "other", first=200))
    outcomes = {}
    for name, steps in {
        (True, False): [append],
        (False, True): [append_other],
        (True, True): [append, append_other],
        (True, True, True): [append_other, append],
    }.items():
        store = copied(base)
        for step in steps:
            step(store)
        outcomes[name] = content(store, "out")
    for seed in FEW_SEEDS:
        store = copied(base)
        results = Turns(seed).run(store, [append, append_other])
        for result in results:
            assert (
                result is None
                or is_busy(result)
                or isinstance(result, (OptionError, CorruptDataError))
            ), (seed, result)
        ended = (results[0] is None, results[1] is None)
        found = content(store, "out")
        assert found in [outcomes[name] for name in outcomes if name[:2] == ended], (seed, results)


def test_append_and_overwrite() -> None:
    base = prepared(source, first)
    for seed in FEW_SEEDS:
        store = copied(base)
        results = Turns(seed).run(store, [append, over(second)])
        assert results[1] is None, (seed, results)
        assert (
            results[0] is None
            or is_busy(results[0])
            or isinstance(results[0], (OptionError, CorruptDataError))
        ), (seed, results)
        if results[0] is None and content(store, "out")["dataset.json"] != SECOND["dataset.json"]:
            after = copied(prepared(source, second))
            append(after)
            assert ids(store) == ids(after), seed
        else:
            found = content(store, "out")
            late = found.keys() - SECOND.keys()
            assert len(late) <= is_busy(results[0]), seed
            assert {key: found[key] for key in found.keys() - late} == SECOND, seed


def test_two_reshards_of_compressed_shards() -> None:
    base = prepared(lambda store: pack(store, "in", first=100, compression="gzip"))
    wanted = copied(base)
    reshard(wanted)
    for seed in SEEDS[:30]:
        store = copied(base)
        results = Turns(seed).run(store, [reshard, reshard])
        assert results == [None, None], seed
        assert content(store, "out") == content(wanted, "out"), seed
