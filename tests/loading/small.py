"""Small datasets for the tests of the loader, and how its batches are compared."""

from __future__ import annotations

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
