"""Formats and parses shard names such as `train-00003-of-00128.tfrecord`."""

from __future__ import annotations

import re
from string import Formatter
from typing import NamedTuple

from recordsmith.errors import OptionError, option
from recordsmith.stores import EXPORT_NOTE
from recordsmith.wire import Compression

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
    """Whether a file is a text index by its name."""
    return _TEXT_INDEX.fullmatch(name) is not None
