"""What folders and files of splits are usually called, and in which order splits come."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from recordsmith.dataset import Shard, parse_shard_name
from recordsmith.dataset.names import split_of

SPLIT_NAMES = frozenset(
    ("train", "training", "trainval", "val", "valid", "validation", "dev", "test", "testing")
)
"""In lower case."""


def is_split_name(name: str) -> bool:
    """Whether a folder or file of this name is a split, by what is usual."""
    return name.lower() in SPLIT_NAMES


JOINED = "train"
"""The split of files whose names tell none."""


def splits_of_shards(shards: Sequence[Shard]) -> list[str]:
    """The split of each shard. Where there are several files whose names tell none, such as
    `part1` and `part2`, these are in one.

    What the others tell holds all the same: who put all into one split would mix those that test
    into those that train.
    """
    untold = {shard.split for shard in shards if not _tells_split(shard)}
    return [
        JOINED if len(untold) > 1 and not _tells_split(shard) else shard.split for shard in shards
    ]


def _tells_split(shard: Shard) -> bool:
    """Whether its manifest or its name says of which split a shard is."""
    return shard.entry is not None or name_tells_split(shard.path.name)


def name_tells_split(name: str) -> bool:
    """Whether a file is called as those of a split are: numbered, or like a split."""
    return parse_shard_name(name) is not None or is_split_name(split_of(name))


def are_split_names(names: Iterable[str]) -> bool:
    """Whether all of these are what people call splits; False if there are none."""
    lowered = {name.lower() for name in names}
    return bool(lowered) and lowered <= SPLIT_NAMES


def in_split_order(names: Iterable[str]) -> tuple[str, ...]:
    """What trains first (`train`, `train2017`), what validates, what tests, then others by name."""
    starts = ("train", "val", "dev", "test")

    def rank(name: str) -> tuple[int, str]:
        lower = name.lower()
        return next((n for n, start in enumerate(starts) if lower.startswith(start)), 9), name

    return tuple(sorted(set(names), key=rank))


def split_lists(paths: Iterable[str]) -> dict[str, str]:
    """The `.txt` files that are called like splits: split -> path, in order.

    PASCAL VOC's `trainval` has what `train` and `val` have together, so it counts only without
    them.
    """
    found = {
        stem: path
        for path in paths
        for stem, suffix in [posixpath.splitext(posixpath.basename(path))]
        if suffix.lower() == ".txt" and is_split_name(stem)
    }
    if {"train", "val"} <= found.keys():
        found.pop("trainval", None)
    return {split: found[split] for split in in_split_order(found)}


def split_in(path: str) -> str | None:
    """The first folder of a path that is called like a split."""
    return next(filter(is_split_name, path.split("/")[:-1]), None)


def splits_by_folder(paths: Iterable[str]) -> dict[str, str]:
    """path -> split, if each lies in a folder called like one, and there are several splits."""
    splits = {path: split_in(path) for path in paths}
    named = {path: split for path, split in splits.items() if split is not None}
    return named if len(named) == len(splits) and len(set(named.values())) > 1 else {}
