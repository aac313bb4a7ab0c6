"""Finds which rows of a batch each process has, and into how many parts they are split."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import jax
from jax.sharding import NamedSharding, Sharding

from recordsmith.loading import Rank
from recordsmith.support.errors import OptionError, option

Shardings: TypeAlias = Sharding | Mapping[str, Sharding | None] | None
"""One for all numeric entries, or a dict of one for each entry by name."""


def this_rank(sharding: Shardings = None) -> Rank:
    """Return rank and world_size of this process: `Loader(..., **this_rank())`.

    Args:
        sharding: of the batches. Processes that have the same rows, such as with model
            parallelism, have the same rank.

    Example:
        loader = rs.Loader(dataset, batch_size=8, shuffle=True, **recordsmith.jax.this_rank())
    """
    splits = splits_of(sharding)
    if splits:
        return Rank(rank=splits[0].rank, world_size=splits[0].world_size)
    return Rank(rank=jax.process_index(), world_size=jax.process_count())


class RowSplit(NamedTuple):
    """How a sharding splits the first axis.

    part_count: how many parts the rows of this process are split into.
    rank, world_size: the rank of this process's group, and the number of groups with different
        rows.
    """

    part_count: int
    rank: int
    world_size: int

    @property
    def description(self) -> str:
        if self.world_size == 1:
            return f"{self.part_count} devices share the rows of a batch"
        return f"{self.world_size} processes share the rows of a batch"


def splits_of(shardings: Shardings) -> list[RowSplit]:
    if shardings is None:
        return []
    if isinstance(shardings, Sharding):
        return [split_of(shardings)]
    expected = "a jax.sharding.Sharding, or a dict of them by the names of entries"
    if not isinstance(shardings, Mapping):
        raise OptionError(option="sharding", value=shardings, expected=expected)
    for name, sharding in shardings.items():
        if sharding is not None and not isinstance(sharding, Sharding):
            raise OptionError(
                f"{option('sharding')} has {sharding!r:.60} for {name!r}",
                option="sharding",
                value=sharding,
                expected=expected,
            )
    splits = [split_of(sharding) for sharding in shardings.values() if sharding is not None]
    if len({(split.rank, split.world_size) for split in splits}) > 1:
        raise OptionError(
            f"the entries of {option('sharding')} divide the rows differently among the processes",
            option="sharding",
            remedy="RowSplit the first axis the same way in all of them.",
        )
    return splits


@functools.lru_cache(maxsize=64)
def split_of(sharding: Sharding) -> RowSplit:
    try:
        parts: dict[int, set[int]] = {}  # process -> the parts that its devices hold
        for device, index in sharding.devices_indices_map(_part_counts(sharding)).items():
            parts.setdefault(device.process_index, set()).add(index[0].start or 0)
    except (KeyError, ValueError) as error:
        raise OptionError(
            f"{option('sharding')} {sharding!r:.200} does not assign rows to devices: {error}",
            option="sharding",
        ) from error
    groups = list(dict.fromkeys(frozenset(parts[process]) for process in sorted(parts)))
    own = parts.get(jax.process_index())
    if own is None:
        raise OptionError(
            f"{option('sharding')} has no device of process {jax.process_index()}",
            option="sharding",
        )
    if sum(map(len, groups)) > len(frozenset().union(*groups)):
        raise OptionError(
            f"{option('sharding')} gives two processes rows that overlap only partly",
            option="sharding",
            remedy="Order the devices of the mesh so that processes have either the same rows or "
            "disjoint ones.",
        )
    return RowSplit(len(own), groups.index(frozenset(own)), len(groups))


def _part_counts(sharding: Sharding) -> tuple[int, ...]:
    """Return a shape with one row for each part, along all axes that are split."""
    if not isinstance(sharding, NamedSharding):
        return (len(sharding.device_set),)
    sizes = sharding.mesh.shape
    cut = [names if isinstance(names, tuple) else (names,) for names in sharding.spec] or [()]
    return tuple(math.prod(sizes[name] for name in names if name is not None) for names in cut)
