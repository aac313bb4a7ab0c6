"""Infers the splits of shards without a manifest.

From the file name: the part before the numbers (`mnist-test.tfrecord-00000-of-00001`), or up to a
split word (`train00-2071.tfrec`, `train_cats.tfrecord`). Otherwise from the folders, if they have
names of different splits (`train/`, `valid/`). Otherwise each file is its own split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recordsmith.dataset.names import parse_shard_name
from recordsmith.stores import Location

_STANDARD = {
    "train": ("train", "training"),
    "trainval": ("trainval",),
    "val": ("val", "valid", "validate", "validation", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
SPLIT_NAMES = frozenset(name for names in _STANDARD.values() for name in names)
"""Common names of splits, in lower case."""

_WORD = re.compile(r"[A-Za-z]+")


def is_split_name(name: str) -> bool:
    """Whether a name is a common name of a split."""
    return name.lower() in SPLIT_NAMES


def standard_name(split: str) -> str | None:
    """Return train, trainval, val or test for a common name of a split, also with a number.

    Example:
        >>> standard_name("Validation"), standard_name("test2017"), standard_name("flowers")
        ('val', 'test', None)
    """
    word = split.lower().rstrip("0123456789")
    return next((name for name, words in _STANDARD.items() if word in words), None)


def split_of(name: str) -> str:
    """The split of a file, according to its name."""
    numbered = parse_shard_name(name)
    if numbered is not None:
        return numbered.split
    stem = name.partition(".")[0] or name
    return stem[: _end_of_word(stem)] or stem


def has_split_word(name: str) -> bool:
    """Whether a file name contains a split word, such as `flowers_train.tfrecord`."""
    return split_word(name) is not None


def split_word(name: str) -> str | None:
    """The last split word in a file name: `test` in `flowers_test.tfrecord`."""
    words = [word.group() for word in _WORD.finditer(split_of(name))]
    return next(filter(is_split_name, reversed(words)), None)


def tells_split(file_name: str, split: str) -> bool:
    """Whether a split is more than a file name: the file is numbered, or has a split word."""
    return parse_shard_name(file_name) is not None or has_split_word(split)


def splits_of_folders(files: Iterable[Location]) -> dict[str, str]:
    """Map folders to splits, for files without a split word; empty if folders are ambiguous."""
    folders = {file.parent for file in files if not has_split_word(file.name)}
    splits = {str(folder): folder.name for folder in folders}
    names = set(splits.values())
    return splits if len(names) > 1 and all(map(is_split_name, names)) else {}


def _end_of_word(stem: str) -> int:
    """The end of the last split word; 0 without one."""
    ends = [word.end() for word in _WORD.finditer(stem) if is_split_name(word.group())]
    return ends[-1] if ends else 0


def is_split_slice(split: object) -> bool:
    """Whether a split may be more than a name: a part of a split, or several."""
    return isinstance(split, str) and any(mark in split for mark in "[+")
