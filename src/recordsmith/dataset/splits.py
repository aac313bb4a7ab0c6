"""Of which split is a shard, where no manifest tells it?

Told by the name of its file: what stands before the numbers (`mnist-test.tfrecord-00000-of-00001`),
or before what follows a word for a split, as that is a number or a part (`train00-2071.tfrec`,
`train_cats.tfrecord`). Where names say nothing, by the folders that files lie in, if these are
called like several splits (`train/`, `valid/`). Else each file is a split of its own name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from recordsmith.dataset.names import parse_shard_name

SPLIT_NAMES = frozenset(
    (
        *("train", "training", "trainval", "val", "valid", "validate", "validation"),
        *("dev", "eval", "evaluation", "test", "testing"),
    )
)
"""What people call splits, in lower case."""

_WORD = re.compile(r"[A-Za-z]+")


def is_split_name(name: str) -> bool:
    """Whether a folder or file of this name is a split, by what is usual."""
    return name.lower() in SPLIT_NAMES


def split_of(name: str) -> str:
    """The split that a file name speaks of."""
    numbered = parse_shard_name(name)
    if numbered is not None:
        return numbered.split
    stem = name.partition(".")[0] or name
    return stem[: _end_of_word(stem)] or stem


def is_split_told(name: str) -> bool:
    """Whether a file name has a word for a split in it, such as `flowers_train.tfrecord`."""
    return _end_of_word(split_of(name)) > 0


def tells_split(file_name: str, split: str) -> bool:
    """Whether a split is more than the name of its file: that is numbered, or called like one."""
    return parse_shard_name(file_name) is not None or is_split_told(split)


def splits_of_folders(paths: Iterable[Path]) -> dict[Path, str]:
    """folder -> split, of files whose names tell none; empty if their folders do not tell it."""
    folders = {path.parent for path in paths if not is_split_told(path.name)}
    splits = {folder: folder.absolute().name for folder in folders}
    names = set(splits.values())
    return splits if len(names) > 1 and all(map(is_split_name, names)) else {}


def _end_of_word(stem: str) -> int:
    """Where the last word for a split ends; 0 if there is none."""
    ends = [word.end() for word in _WORD.finditer(stem) if is_split_name(word.group())]
    return ends[-1] if ends else 0
