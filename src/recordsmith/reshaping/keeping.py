"""Shards that stay as they are: each file that is read becomes one that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recordsmith.building import files_of_splits, is_no_file_name
from recordsmith.dataset import LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME
from recordsmith.reshaping.choosing import Pool
from recordsmith.reshaping.inputs import Inputs
from recordsmith.wire import Compression

_TAKEN = frozenset((LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME))


@dataclass(frozen=True)
class PlannedShard:
    """One new shard: what stands at the places start:stop of its split's order."""

    file: str
    split: str
    start: int
    stop: int


def shards_as_they_are(
    inputs: Inputs, pools: Mapping[str, Pool], compression: Compression, template: str
) -> tuple[PlannedShard, ...]:
    """One shard for each input, but none without records.

    They have the names of the inputs if these can all be kept; else new ones, from the template.
    """
    bounds = {
        split: [
            (pool.inputs[at], int(pool.starts[at]), int(pool.starts[at + 1]))
            for at in range(len(pool.inputs))
            if pool.starts[at] < pool.starts[at + 1]
        ]
        for split, pool in pools.items()
    }
    files = files_of_splits(
        {split: len(runs) for split, runs in bounds.items()}, compression, template
    )
    given = {
        split: [inputs.shards[number].path.name for number, _, _ in runs]
        for split, runs in bounds.items()
    }
    names = [name for of_split in given.values() for name in of_split]
    is_whole = sum(map(len, bounds.values())) == len(inputs.shards)
    is_alike = all(shard.compression == compression for shard in inputs.shards)
    if is_whole and is_alike and len(set(names)) == len(names) and not any(map(_is_unfit, names)):
        files = given
    return tuple(
        PlannedShard(file, split, start, stop)
        for split, runs in bounds.items()
        for file, (_, start, stop) in zip(files[split], runs, strict=True)
    )


def _is_unfit(name: str) -> bool:
    return name in _TAKEN or is_no_file_name(name)
