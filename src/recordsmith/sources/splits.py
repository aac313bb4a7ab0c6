"""What folders and files of splits are usually called, and in which order splits come."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from recordsmith.dataset import Shard, is_split_name, tells_split
from recordsmith.words import count

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


def joined_notice(shards: Sequence[Shard], splits: Sequence[str]) -> list[str]:
    """What to say of those that were put into one; `splits` is that of each."""
    joined = [s for s, split in zip(shards, splits, strict=True) if s.split != split]
    if not joined:
        return []
    files = count(len(joined), "file")
    return [f"the names of {files} tell no splits, so all of their records are in one: {JOINED}"]


def _tells_split(shard: Shard) -> bool:
    """Whether its manifest, its name or its folder says of which split a shard is."""
    return shard.entry is not None or tells_split(shard.path.name, shard.split)


def are_split_names(names: Iterable[str]) -> bool:
    """Whether all of these are what people call splits; False if there are none."""
    listed = list(names)
    return bool(listed) and all(map(is_split_name, listed))


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
