"""Which rows of a batch are this process's, and into how many parts are they cut?"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import jax
from jax.sharding import NamedSharding, Sharding

from recordsmith.errors import OptionError
from recordsmith.loading.suitable import Rank

Shardings: TypeAlias = Sharding | Mapping[str, Sharding | None] | None
"""One for all entries of numbers; or one for each entry that is named."""


def this_rank(sharding: Shardings = None) -> Rank:
    """Which process this is, of how many: `Loader(..., **this_rank())`.

    Args:
        sharding: that of the batches, where processes share rows, as those do which only cut the
            model: they have one rank, and read the same.
    """
    splits = splits_of(sharding)
    if splits:
        return Rank(rank=splits[0].rank, world_size=splits[0].world_size)
    return Rank(rank=jax.process_index(), world_size=jax.process_count())


class Split(NamedTuple):
    """How a sharding cuts the first axis.

    part_count: how many parts the rows of this process are cut into.
    rank, world_size: which rows this process has, of how many groups of processes that have
        different ones.
    """

    part_count: int
    rank: int
    world_size: int

    @property
    def words(self) -> str:
        if self.world_size == 1:
            return f"{self.part_count} devices share the rows of a batch"
        return f"{self.world_size} processes share the rows of a batch"


def splits_of(shardings: Shardings) -> list[Split]:
    """How each sharding cuts the rows."""
    if shardings is None:
        return []
    if isinstance(shardings, Sharding):
        return [split_of(shardings)]
    expected = "expected a jax.sharding.Sharding, or a dict of them by the names of entries"
    if not isinstance(shardings, Mapping):
        raise OptionError(f"the sharding is {shardings!r:.60}; {expected}")
    for name, sharding in shardings.items():
        if sharding is not None and not isinstance(sharding, Sharding):
            raise OptionError(f"the sharding of {name!r} is {sharding!r:.60}; {expected}")
    splits = [split_of(sharding) for sharding in shardings.values() if sharding is not None]
    if len({(split.rank, split.world_size) for split in splits}) > 1:
        raise OptionError(
            "the shardings of different entries share out the rows among the processes "
            "differently, but a process has one batch: cut the first axis alike in all of them"
        )
    return splits


@functools.lru_cache(maxsize=64)
def split_of(sharding: Sharding) -> Split:
    try:
        parts: dict[int, set[int]] = {}  # process -> the parts that its devices hold
        for device, index in sharding.devices_indices_map(_part_counts(sharding)).items():
            parts.setdefault(device.process_index, set()).add(index[0].start or 0)
    except (KeyError, ValueError) as error:
        raise OptionError(
            f"the sharding is {sharding!r:.200}, which tells no devices for rows: {error}"
        ) from error
    groups = list(dict.fromkeys(frozenset(parts[process]) for process in sorted(parts)))
    own = parts.get(jax.process_index())
    if own is None:
        raise OptionError(f"the sharding has no device of process {jax.process_index()}")
    if sum(map(len, groups)) > len(frozenset().union(*groups)):
        raise OptionError(
            "the sharding gives processes rows of which each has some in common with another, but "
            "not all: order the devices of the mesh so that processes have the same rows or others"
        )
    return Split(len(own), groups.index(frozenset(own)), len(groups))


def _part_counts(sharding: Sharding) -> tuple[int, ...]:
    """A shape with one row for each part, along all axes that are cut."""
    if not isinstance(sharding, NamedSharding):
        return (len(sharding.device_set),)
    sizes = sharding.mesh.shape
    cut = [names if isinstance(names, tuple) else (names,) for names in sharding.spec] or [()]
    return tuple(math.prod(sizes[name] for name in names if name is not None) for names in cut)
