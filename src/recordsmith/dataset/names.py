"""Formats and parses shard names such as `train-00003-of-00128.tfrecord`; infers splits from names.

The split of a shard without a manifest is the part of its name before the numbers
(`mnist-test.tfrecord-00000-of-00001`), or up to a split word (`train00-2071.tfrec`,
`train_cats.tfrecord`). Otherwise it is the folder, if folders have names of different splits
(`train/`, `valid/`). Otherwise each file is its own split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from string import Formatter
from typing import NamedTuple

from recordsmith.format.wire import Compression
from recordsmith.stores import EXPORT_NOTE, Location
from recordsmith.support.errors import OptionError, option

TFDS_INFO_NAME = "dataset_info.json"
TFDS_FEATURES_NAME = "features.json"
"""Documents in a folder of TensorFlow Datasets."""

INTERNAL_FOLDER = ".recordsmith"
"""Next to the shards: indexes and unfinished shards. Globs skip it."""

INTERNAL_NAMES = frozenset((INTERNAL_FOLDER, EXPORT_NOTE))

_SUFFIXES: dict[Compression, str] = {
    "none": ".tfrecord",
    "gzip": ".tfrecord.gz",
    "zlib": ".tfrecord.zlib",
}
RECORD_SUFFIXES = (".tfrecord", ".tfrecords", ".tfrec", ".record", ".records")
"""Common suffixes of TFRecord files; shards are written with the first."""

_SUFFIX = rf"(?:{'|'.join(map(re.escape, RECORD_SUFFIXES))})"
_HAS_SUFFIX = re.compile(rf"{_SUFFIX}(?:\.\w+)?(?:-\d+-of-\d+)?$")
_ENDS_NUMBERED = re.compile(r"-\d{5,}-of-\d{5,}$")
_NUMBERED = re.compile(
    r"(?P<stem>.+)[-_](?P<number>\d{5,})-of-(?P<count>\d{5,})(?P<suffix>\.[\w.]+)?"
)
_TAIL_NUMBERED = re.compile(rf"(?P<stem>.+){_SUFFIX}-(?P<number>\d{{5,}})-of-(?P<count>\d{{5,}})")

_PART = re.compile(rf"(?P<split>.+)-\d{{5,}}-[0-9a-f]{{16}}-\d{{3,}}{_SUFFIX}(?:\.\w+)?")

_WIDTH = re.compile(r"0?\d{0,2}[ds]?")


TEXT_INDEX_SUFFIX = ".idx"
"""The suffix of text indexes next to shards, for other readers."""

_TEXT_INDEX = re.compile(r".+\.(?:idx|tfindex)")


SIDE_SUFFIXES = (".index", ".columns")
"""The suffixes of what is kept of a shard in the internal folder."""

PARTIAL_SUFFIX, DONE_SUFFIX = ".partial", ".done"
"""The suffixes of unpublished shards and of their notes in the internal folder."""


class ShardNumber(NamedTuple):
    """The parts of a numbered shard name."""

    split: str
    number: int
    shard_count: int


DEFAULT_TEMPLATE = "{split}-{shard:05d}-of-{shards:05d}"


def shard_name(
    split: str,
    number: int,
    count: int,
    compression: Compression = "none",
    template: str = DEFAULT_TEMPLATE,
) -> str:
    """The file name of shard `number` of `count`.

    Args:
        template: a template with {split}, {shard} (counted from 0) and {shards}, such as
            `flowers_{split}_{shard:05d}-of-{shards:05d}`. A suffix is added if it is missing.
    """
    try:
        _check_template(template)
        name = template.format(split=split, shard=number, shards=count)
    except (LookupError, ValueError, AttributeError) as error:
        raise OptionError(
            f"{option('shard_names')} is not a valid template ({error})",
            option="shard_names",
            value=template,
            expected=f"{{split}}, {{shard}} and {{shards}}, as in {DEFAULT_TEMPLATE!r}",
        ) from None
    suffix = _SUFFIXES[compression]
    return name if _HAS_SUFFIX.search(name) else name + suffix


def part_name(
    split: str, part: int, attempt: str, number: int, compression: Compression = "none"
) -> str:
    """The file name of a shard of a part, if the number of all shards is not known yet."""
    return f"{split}-{part:05d}-{attempt}-{number:03d}{_SUFFIXES[compression]}"


def split_of_part(name: str) -> str | None:
    """The split of a name that `part_name` returned; None for other names."""
    match = _PART.fullmatch(name)
    return match["split"] if match else None


def _check_template(template: str) -> None:
    """Allow plain fields only, because a template may come from a file."""
    for _, field, width, conversion in Formatter().parse(template):
        if field is None:
            continue
        if field not in ("split", "shard", "shards") or conversion is not None:
            raise ValueError(f"unknown field {{{field}}}")
        if not _WIDTH.fullmatch(width or ""):
            raise ValueError(f"unsupported width {width!r}")


@lru_cache(1 << 14)
def parse_shard_name(name: str) -> ShardNumber | None:
    """Parse a shard name; None if the name has no numbers."""
    match = _TAIL_NUMBERED.fullmatch(name) or _NUMBERED.fullmatch(name)
    if match is None:
        return None
    return ShardNumber(match["stem"], int(match["number"]), int(match["count"]))


def is_shard_name(name: str) -> bool:
    """Whether a file has a name like a shard, such as those of `shard_name`."""
    return _HAS_SUFFIX.search(name) is not None or parse_shard_name(name) is not None


def looks_like_shard(name: str) -> bool:
    """Whether a file counts as records by its name, if its bytes are inconclusive."""
    matches = _HAS_SUFFIX.search(name) or _ENDS_NUMBERED.search(name)
    return matches is not None and not is_text_index_name(name)


def is_text_index_name(name: str) -> bool:
    return _TEXT_INDEX.fullmatch(name) is not None


# -- splits ----------------------------------------------------------------------------------------

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
    return _last_split_word(split_of(name))


@lru_cache(1 << 10)  # thousands of shards are in few splits
def _last_split_word(split: str) -> str | None:
    words = [word.group() for word in _WORD.finditer(split)]
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
    ends = [word.end() for word in _WORD.finditer(stem) if is_split_name(word.group())]
    return ends[-1] if ends else 0


def is_split_slice(split: object) -> bool:
    """Whether a split may be more than a name: a part of a split, or several."""
    return isinstance(split, str) and any(mark in split for mark in "[+")
