"""Small datasets for the tests of the loader, and how its batches are compared."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import recordsmith as rs
from recordsmith.dataset import ShardWriter


def write_shards(
    folder: Path,
    counts: Sequence[int],
    compressions: Sequence[str] = ("none",),
    *,
    first_id: int = 0,
    lengths: Sequence[int] = (0,),
) -> rs.Dataset:
    """Shards with so many records, each with its number as `id`, and bytes of some length."""
    folder.mkdir(parents=True, exist_ok=True)
    number = first_id
    for at, count in enumerate(counts):
        compression = compressions[at % len(compressions)]
        with ShardWriter(folder / f"{at:03}.tfrecord", compression=compression) as writer:
            for _ in range(count):
                data = b"x" * lengths[number % len(lengths)]
                writer.write_example({"id": number, "data": data})
                number += 1
    return rs.open([str(folder / f"{at:03}.tfrecord") for at in range(len(counts))])


def loader(dataset: Any, **options: Any) -> rs.Loader:
    """A loader of the ids, in the caller's thread unless told."""
    return rs.Loader(dataset, {"id": rs.Scalar("id")}, **{"threads": 0, **options})


def ids(batches: Iterator[dict[str, Any]] | rs.Loader) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def dealt(ranks: Sequence[list[list[int]]]) -> list[list[int]]:
    """The steps of all ranks together, each in the order of its places."""
    steps = []
    for step in zip(*ranks, strict=True):  # fails if ranks do not take the same number of steps
        longest = max(map(len, step))
        steps.append([rank[at] for at in range(longest) for rank in step if at < len(rank)])
    return steps


def read_by_changing_worlds(
    dataset: Any, worlds: Sequence[tuple[int, int, int]], **options: Any
) -> list[int]:
    """What worlds of (batch_size, world_size, steps), each going on where the last one ended, read
    together of the first epoch, in the order of its places.
    """
    state: Any = None
    read: list[int] = []
    for batch_size, world_size, step_count in worlds:
        states, ranks = [], []
        for rank in range(world_size):
            with loader(
                dataset, batch_size=batch_size, rank=rank, world_size=world_size, **options
            ) as one:
                if state is not None:
                    one.load_state_dict(state)
                steps = []
                for batch in one:
                    steps.append(batch["id"].tolist())
                    if len(steps) == step_count:
                        break
                ranks.append(steps)
                states.append(json.loads(json.dumps(one.state_dict())))
        assert all(other == states[0] for other in states)
        state = states[0]
        read += [number for step in dealt(ranks) for number in step]
        if state["epoch"] == 1:
            break
    return read
