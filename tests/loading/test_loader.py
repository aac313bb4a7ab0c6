"""Batches are right, whatever the threads; restored loaders go on exactly; ranks share exactly."""

from __future__ import annotations

import itertools
import json
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..places import new_place
from ..raising import raises

pytestmark = pytest.mark.usefixtures("_nothing_stays")
ID = {"id": rs.Scalar("id")}


COUNTS = [20, 0, 30, 7]


@pytest.fixture(scope="module", params=["files", "memory"])
def dataset(
    request: pytest.FixtureRequest, numbered: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[rs.Dataset]:
    """57 records in four shards, one of them empty."""
    with new_place(request.param, tmp_path_factory.mktemp("loader")) as place:
        yield rs.open(numbered.write(place, COUNTS))


@pytest.fixture(scope="module")
def on_disk(numbered: Any, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    """The same, for other processes."""
    return rs.open(numbered.write(tmp_path_factory.mktemp("loader"), COUNTS))


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def jitter(example: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    return {**example, "jitter": generator.random()}


def noise(batch: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
    return {**batch, "noise": generator.random(len(batch["id"]))}


def is_odd(example: dict[str, Any]) -> bool:
    return bool(example["id"] % 2)


# -- batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [0, 1, 8])
def test_batches_hold_the_records_in_order(dataset: rs.Dataset, threads: int) -> None:
    loader = rs.Loader(
        dataset,
        {
            "id": rs.Scalar("id"),
            "score": rs.Scalar("score", dtype="float16"),
            "corner": rs.Tensor("corner", (2,)),
        },
        batch_size=10,
        threads=threads,
    )
    batches = list(loader)
    assert len(batches) == len(loader) == 6
    for start, batch in zip(range(0, 57, 10), batches, strict=True):
        numbers = np.arange(start, min(57, start + 10))
        np.testing.assert_array_equal(batch["id"], numbers)
        np.testing.assert_array_equal(batch["score"], numbers / 4)
        np.testing.assert_array_equal(batch["corner"], np.stack([numbers, -numbers], axis=1))
        assert [batch[name].dtype for name in batch] == [np.int64, np.float16, np.int64]


@pytest.mark.parametrize("shuffle", [False, True, rs.BlockShuffle(4, 3)])
def test_threads_and_prefetch_change_nothing(dataset: rs.Dataset, shuffle: Any) -> None:
    runs = [
        [
            [batch[name].tolist() for name in ("id", "jitter", "noise") if name in batch]
            for batch in rs.Loader(
                dataset, ID, batch_size=8, shuffle=shuffle, seed=3, epochs=3, threads=threads,
                prefetch=prefetch, filter=is_odd, map_examples=jitter, map_batches=noise,
            )
        ]
        for threads, prefetch in [(0, 2), (1, 0), (3, 1), (8, 9)]
    ]  # fmt: skip
    assert all(run == runs[0] for run in runs)
    epochs = np.array_split(np.array([len(batch[0]) for batch in runs[0]]), 3)
    assert [int(epoch.sum()) for epoch in epochs] == [28, 28, 28]
    jitters = [number for batch in runs[0] if batch[0] for number in batch[1]]
    assert len(set(jitters)) == len(jitters) == 3 * 28


# -- iterations ------------------------------------------------------------------------------------


def test_lengths_at_every_point(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=10, epochs=2, shuffle=True)
    assert len(loader) == 12
    iteration = iter(loader)
    for left in range(11, -1, -1):
        next(iteration)
        assert len(loader) == 12  # of the next one
        other = rs.Loader(dataset, ID, batch_size=10, epochs=2, shuffle=True)
        other.load_state_dict(loader.state_dict())
        assert len(other) == (left or 12)  # at the end the next iteration begins
        assert len(list(other)) == (left or 12)
        assert len(other) == 12
    assert next(iteration, None) is None
    half = rs.Loader(dataset, ID, batch_size=10, epochs=None)
    with pytest.raises(TypeError, match="endless"):
        len(half)


def test_after_breaking_off_the_next_epoch_begins(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=10, shuffle=True, threads=2)
    whole = rs.Loader(dataset, ID, batch_size=10, shuffle=True, epochs=3, threads=0)
    expected = ids(whole)
    for number, _ in enumerate(loader):
        if number == 1:
            break
    assert (loader.epoch, len(loader)) == (0, 6)
    assert ids(loader) == expected[6:12]
    assert loader.epoch == 2
    assert ids(loader) == expected[12:]


@pytest.mark.parametrize("threads", [0, 2])
def test_of_two_iterations_at_once_the_last_one_is_where_the_loader_is(
    dataset: rs.Dataset, threads: int
) -> None:
    """The older one reads its epoch to the end, and moves nothing."""
    loader = rs.Loader(dataset, ID, batch_size=10, shuffle=True, threads=threads)
    expected = ids(rs.Loader(dataset, ID, batch_size=10, shuffle=True, epochs=3, threads=0))
    older, newer = iter(loader), iter(loader)
    seen: list[list[Any]] = [[], []]
    for batches in zip(older, newer, strict=False):
        for found, batch in zip(seen, batches, strict=True):
            found.append(batch["id"].tolist())
        other = rs.Loader(dataset, ID, batch_size=10, shuffle=True, threads=0)
        other.load_state_dict(loader.state_dict())
        rest = ids(other)
        assert rest == expected[6 + len(seen[1]) : 12] or (
            rest == expected[12:] and loader.epoch == 2
        )
    assert seen == [expected[:6], expected[6:12]]
    assert next(newer, None) is None
    assert ids(loader) == expected[12:]


def test_a_state_that_was_loaded_is_not_moved_by_older_iterations(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=10, shuffle=True)
    expected = ids(rs.Loader(dataset, ID, batch_size=10, shuffle=True))
    older = iter(loader)
    next(older)
    state = loader.state_dict()
    next(older)
    loader.load_state_dict(state)
    assert [batch["id"].tolist() for batch in older] == expected[2:]
    older.undo()
    assert loader.state_dict() == state
    assert ids(loader) == expected[1:]


def test_an_iteration_begins_with_its_first_batch(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=10)
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    iter(loader)  # somebody looks whether it can be iterated over
    assert len(loader) == 5
    assert ids(loader)[0] == list(range(10, 20))


@pytest.mark.parametrize("what", ["filter", "map_examples", "map_batches"])
@pytest.mark.parametrize("threads", [0, 2])
def test_functions_do_not_iterate_over_their_loader(
    dataset: rs.Dataset, what: str, threads: int
) -> None:
    def iterates(given: Any, generator: Any = None) -> Any:
        return next(iter(loader))

    loader = rs.Loader(dataset, ID, batch_size=5, threads=threads, **{what: iterates})  # type: ignore[arg-type]
    with pytest.raises(rs.FunctionError, match="iterates over") as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, rs.OptionError)

    def looks_up(batch: dict[str, Any], generator: Any) -> dict[str, Any]:
        return {**batch, "other": np.concatenate([each["id"] for each in other])}

    other = rs.Loader(dataset[:5], ID, batch_size=5, threads=1)
    outer = rs.Loader(
        dataset, ID, batch_size=5, threads=threads, map_batches=looks_up, last_batch="drop"
    )
    assert next(iter(outer))["other"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("last_batch", ["keep", "drop"])
@pytest.mark.parametrize("worker_count", [1, 2, 5])
def test_workers_in_turn_are_the_loader_iteration_after_iteration(
    dataset: rs.Dataset, worker_count: int, last_batch: Any
) -> None:
    """Also those that have no step in an iteration, or not the last one."""
    options: Any = {
        "shuffle": True,
        "batch_size": 20,
        "epochs": 2,
        "last_batch": last_batch,
        "seed": 5,
    }
    alone = rs.Loader(dataset, ID, **options, map_examples=jitter)
    loader = rs.Loader(dataset, ID, **options, map_examples=jitter)
    loader.load_state_dict(alone.state_after(1))
    alone.load_state_dict(alone.state_after(1))
    workers = [loader.for_worker(number, worker_count) for number in range(worker_count)]
    for iteration in range(3):
        shares = [list(worker) for worker in workers]
        fresh = [
            list(loader.for_worker(number, worker_count, iteration=iteration, skipped_count=1))
            for number in range(worker_count)
        ]
        in_turn = [batch for turn in itertools.zip_longest(*shares) for batch in turn if batch]
        expected = list(alone)
        assert ids(in_turn) == ids(expected)
        assert [b["jitter"].tolist() for b in in_turn] == [b["jitter"].tolist() for b in expected]
        assert list(map(ids, fresh)) == [ids(share[1:]) for share in shares]


def test_what_a_loader_for_a_worker_is(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=4, threads=3, rank=1, world_size=2)
    assert (loader.batch_size, loader.rank, loader.world_size) == (4, 1, 2)
    worker = loader.for_worker(1, 3)
    next(iter(worker))
    assert worker.stats().thread_count == 3  # as was said
    assert loader.state_dict()["read"] == 0
    with raises(rs.OptionError, option="worker_count"):
        worker.for_worker(0, 2)
    with raises(rs.OptionError, option="worker"):
        loader.for_worker(3, 3)


def test_the_state_after_so_many_batches(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=20, shuffle=True)
    count = 0
    for _ in range(3):
        for _ in loader:
            count += 1
            assert loader.state_after(count) == loader.state_dict()
    other = rs.Loader(dataset, ID, batch_size=20, shuffle=True)
    other.load_state_dict(loader.state_after(4))
    assert other.state_after(0) == other.state_dict() == loader.state_after(4)
    for _ in other:
        pass
    assert other.state_after(2) == other.state_dict() == loader.state_after(6)
    with raises(rs.OptionError, option="batch_count"):
        loader.state_after(-1)


def test_a_loader_travels(on_disk: rs.Dataset) -> None:
    loader = rs.Loader(on_disk, ID, batch_size=10, shuffle=True, map_examples=jitter, threads=2)
    iteration = iter(loader)
    next(iteration)
    loader.load_state_dict(loader.state_dict())
    copy = pickle.loads(pickle.dumps(loader))
    with pytest.raises(rs.OptionError, match="cannot be pickled"):
        pickle.dumps(iteration)
    left, right = list(copy), list(loader)
    assert ids(left) == ids(right)
    assert [batch["jitter"].tolist() for batch in left] == [b["jitter"].tolist() for b in right]
    assert len(left) == 5


CHILD = """
import os, signal, sys, threading, warnings
import numpy as np
import recordsmith as rs
warnings.simplefilter("ignore")
on_disk = rs.open(sys.argv[1])
loader = rs.Loader(on_disk, {"id": rs.Scalar("id")}, batch_size=3, epochs=None, threads=3,
                   map_examples=lambda example, generator: example)
iteration = iter(loader)
"""


def python(script: str, dataset: rs.Dataset) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            CHILD + textwrap.dedent(script),
            str(dataset.shards[0].location.parent),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("good\n", "", 0)


@pytest.mark.posix
def test_forks_in_mid_iteration(on_disk: rs.Dataset) -> None:
    python(
        """
        for number in range(30):
            next(iteration)
            child = os.fork()
            if not child:
                signal.alarm(20)
                try:
                    next(iteration)
                except rs.OptionError as error:
                    assert "another process" in str(error)
                own = next(iter(loader))["id"]
                assert own.tolist() == [0, 1, 2], own
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        first = np.array([next(iteration)["id"][0] for _ in range(8)])
        assert first.tolist() == [33, 36, 39, 42, 45, 48, 51, 54], first
        print("good")
        """,
        on_disk,
    )


# -- resume ----------------------------------------------------------------------------------------


def flat(batches: Any) -> list[dict[str, Any]]:
    return [{name: column.tolist() for name, column in batch.items()} for batch in batches]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    ("shuffle", "world_size", "last_batch"),
    [(False, 1, "keep"), (True, 1, "keep"), (True, 3, "pad"), (rs.BlockShuffle(4, 2), 2, "drop")],
)
def test_restored_at_every_step(
    dataset: rs.Dataset, threads: int, shuffle: Any, world_size: int, last_batch: Any
) -> None:
    def make() -> rs.Loader:
        return rs.Loader(
            dataset, ID, batch_size=7, shuffle=shuffle, seed=5, epochs=3, threads=threads,
            prefetch=3, filter=is_odd, map_examples=jitter, map_batches=noise,
            rank=world_size - 1, world_size=world_size, last_batch=last_batch,
        )  # fmt: skip

    loader = make()
    states = [json.dumps(loader.state_dict())]
    undisturbed = []
    for batch in loader:
        undisturbed += flat([batch])
        states.append(json.dumps(loader.state_dict()))
    assert len(undisturbed) == len(loader) == 3 * {1: 9, 2: 4, 3: 3}[world_size]
    following = flat(loader)  # the next three epochs
    assert following != undisturbed or shuffle is False
    for step, state in enumerate(states):
        other = make()
        other.load_state_dict(json.loads(state))
        rest = undisturbed[step:] or following
        assert len(other) == len(rest)
        assert flat(other) == rest
        if step % 4 == 0:
            assert flat(other) == (following if step < len(undisturbed) else flat(loader))


def test_states_of_other_loaders(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ID, batch_size=7, shuffle=True)
    state = rs.Loader(dataset[:50], ID, batch_size=7, shuffle=True).state_dict()
    with pytest.raises(rs.OptionError) as caught:
        loader.load_state_dict(state)
    assert (caught.value.option, caught.value.value) == ("state", "50")
    with raises(rs.OptionError, option="state"):
        loader.load_state_dict(None)  # type: ignore[arg-type]
    assert len(ids(loader)) == 9  # they changed nothing


@pytest.mark.parametrize("threads", [0, 2])
def test_stats(dataset: rs.Dataset, threads: int) -> None:
    loader = rs.Loader(
        dataset, ID, batch_size=10, threads=threads, filter=is_odd, map_batches=noise
    )
    assert loader.stats().batch_count == 0
    iteration = iter(loader)
    next(iteration), next(iteration)
    stats = loader.stats()
    assert (stats.batch_count, stats.record_count, stats.rejected_count) == (2, 20, 10)
    assert len(list(iteration)) == 4
    stats = loader.stats()
    assert (stats.batch_count, stats.record_count, stats.rejected_count) == (6, 57, 29)
    assert stats.byte_count == sum(len(record) for record in dataset.records())
    assert stats.thread_count == threads
    parts = stats.first_batch_seconds + stats.waited_seconds + stats.between_seconds
    assert stats.elapsed_seconds == pytest.approx(parts)
    assert min(stats.reading_seconds, stats.decoding_seconds, stats.function_seconds) > 0
    assert stats.records_per_second == pytest.approx(57 / stats.elapsed_seconds)
    assert json.loads(json.dumps(stats.to_json()))["records"] == 57
    assert "6 batches, 57 records, 29 rejected" in str(stats)
    assert stats.bottleneck in str(stats)
    next(iter(loader))
    assert loader.stats().batch_count == 1  # of the last iteration


def test_a_loader_is_described_and_cannot_be_indexed(dataset: rs.Dataset) -> None:
    loader = rs.Loader(dataset, ["id"], batch_size=4, rank=1, world_size=2, last_batch="drop")
    count = len(dataset)
    assert repr(loader) == (
        f"Loader({count} records: id; batch_size=4, {count // 8} steps, rank 1 of 2, epoch 0)"
    )
    assert "endless" in repr(rs.Loader(dataset, ["id"], batch_size=4, epochs=None))
    with pytest.raises(rs.OptionError) as caught:
        loader[0]
    assert "recordsmith.torch.batches" in caught.value.remedy
    assert len(list(loader)) == len(loader)
