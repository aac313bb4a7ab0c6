"""Recognize folders and files named like splits, and order splits."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from recordsmith.dataset import Shard, is_split_name, tells_split
from recordsmith.stores import Location
from recordsmith.support.words import count

_MAX_FOLDERS = 1000  # whose names are compared
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

JOINED = "train"
"""The split of files without a split in their names."""


def shard_splits(shards: Sequence[Shard]) -> list[str]:
    """The split of each shard; several files without a split in their names share one.

    The splits of the others are kept, so that test records do not get into training.
    """
    unnamed = {shard.split for shard in shards if not _names_split(shard)}
    return [
        JOINED if len(unnamed) > 1 and not _names_split(shard) else shard.split for shard in shards
    ]


def joined_notice(shards: Sequence[Shard], splits: Sequence[str]) -> list[str]:
    """A notice on shards that were put into one split; `splits` has the split of each."""
    joined = [s for s, split in zip(shards, splits, strict=True) if s.split != split]
    if not joined:
        return []
    files = count(len(joined), "file")
    return [f"{files} without a split in the name packed as split {JOINED}"]


def _names_split(shard: Shard) -> bool:
    return shard.entry is not None or tells_split(shard.location.name, shard.split)


def only_split(names: Iterable[str | None], root: Location | None) -> str | None:
    """The split of a source that has only one and is not for training, such as a test set."""
    for name in (*names, None if root is None else root.identity.rpartition("/")[2]):
        if name and is_split_name(name):
            return None if name.lower().startswith("train") else name
    return None


def is_like_split(name: str) -> bool:
    """Whether a name is that of a split, also with a number: `test1`, `train2017`."""
    return is_split_name(name.rstrip("0123456789"))


def sort_splits(names: Iterable[str]) -> tuple[str, ...]:
    """Splits in order: training (`train`, `train2017`), validation, test, then others by name."""
    starts = ("train", "val", "dev", "test")

    def rank(name: str) -> tuple[int, str]:
        lower = name.lower()
        return next((n for n, start in enumerate(starts) if lower.startswith(start)), 9), name

    return tuple(sorted(set(names), key=rank))


def split_lists(paths: Iterable[str]) -> dict[str, str]:
    """The `.txt` files named like splits: split -> path, in order.

    PASCAL VOC's `trainval` is the union of `train` and `val`, so it is used only without them.
    """
    found = {
        stem: path
        for path in paths
        for stem, suffix in [posixpath.splitext(posixpath.basename(path))]
        if suffix.lower() == ".txt" and is_split_name(stem)
    }
    if {"train", "val"} <= found.keys():
        found.pop("trainval", None)
    return {split: found[split] for split in sort_splits(found)}


def folder_splits(names: Iterable[str]) -> dict[str, str]:
    """The folders next to each other that are splits: name of the folder -> split.

    They are named like splits; or they differ in nothing but a split word, and have at least two
    different ones: `train_images` and `test_images`, but not `bullet_train` and `steam_train`.
    """
    listed = list(names)
    like = [name for name in listed if is_like_split(name)]
    if any(map(is_split_name, like)):
        return {name: name for name in like}
    several = [group for group in _split_groups(listed).values() if len(set(group.values())) > 1]
    return several[0] if len(several) == 1 else {}


def split_classes(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The split and the class of each folder, if all names have both: train_cats, test_dogs."""
    listed = list(names)
    groups = _split_groups(listed)
    splits = {frozenset(group.values()) for group in groups.values()}
    is_whole = sum(map(len, groups.values())) == len(listed)
    if not is_whole or len(groups) < 2 or len(splits) > 1 or len(splits.pop()) < 2:
        return {}
    return {
        name: (split, "_".join(filter(None, (part.strip("_-. ") for part in rest.split("*")))))
        for rest, group in groups.items()
        for name, split in group.items()
    }


def _split_groups(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The names with one split word, by the rest of the name: name -> split."""
    groups: dict[str, dict[str, str]] = {}
    for name in names[:_MAX_FOLDERS]:
        words = [match for match in _WORD.finditer(name) if is_split_name(match.group())]
        if len(words) == 1:
            (word,) = words
            rest = f"{name[: word.start()]}*{name[word.end() :]}"
            groups.setdefault(rest, {})[name] = word.group().lower()
    without_years: dict[str, dict[str, str]] = {}
    for rest, group in groups.items():
        without_years.setdefault(re.sub(r"\*\d+", "*", rest), {}).update(group)
    are_distinct = all(len({*g.values()}) == len(g) for g in without_years.values())
    return without_years if are_distinct else groups


def find_split(path: str) -> str | None:
    """The first folder of a path that is named like a split."""
    return next(filter(is_split_name, path.split("/")[:-1]), None)


def splits_by_folder(paths: Iterable[str]) -> dict[str, str]:
    """path -> split, if each path has a folder that is a split, see `folder_splits`."""
    splits = {path: find_split(path) for path in paths}
    named = {path: split for path, split in splits.items() if split is not None}
    if len(named) == len(splits):
        return named
    parts = {path: path.split("/")[:-1] for path in splits}
    for depth in range(min(map(len, parts.values()))):
        split_of = folder_splits(dict.fromkeys(folders[depth] for folders in parts.values()))
        if all(folders[depth] in split_of for folders in parts.values()):
            return {path: split_of[folders[depth]] for path, folders in parts.items()}
    return {}
