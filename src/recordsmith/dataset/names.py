"""Shard names: `train-00003-of-00128.tfrecord`, and what can be read from them."""

from __future__ import annotations

import re
from string import Formatter
from typing import NamedTuple

from recordsmith.errors import OptionError
from recordsmith.wire import Compression

_SUFFIXES: dict[Compression, str] = {
    "none": ".tfrecord",
    "gzip": ".tfrecord.gz",
    "zlib": ".tfrecord.zlib",
}
RECORD_SUFFIXES = (".tfrecord", ".tfrecords", ".tfrec", ".record", ".records")
"""What people call files of records; the first is ours."""

_SUFFIX = rf"(?:{'|'.join(map(re.escape, RECORD_SUFFIXES))})"
_HAS_SUFFIX = re.compile(rf"{_SUFFIX}(?:\.\w+)?(?:-\d+-of-\d+)?$")
_ENDS_NUMBERED = re.compile(r"-\d{5,}-of-\d{5,}$")
_NUMBERED = re.compile(
    r"(?P<stem>.+)[-_](?P<number>\d{5,})-of-(?P<count>\d{5,})(?P<suffix>\.[\w.]+)?"
)
_TAIL_NUMBERED = re.compile(rf"(?P<stem>.+){_SUFFIX}-(?P<number>\d{{5,}})-of-(?P<count>\d{{5,}})")

_WIDTH = re.compile(r"0?\d{0,2}[ds]?")


TEXT_INDEX_SUFFIX = ".idx"
"""Of the text files beside shards that say where records begin, for other readers."""

_TEXT_INDEX = re.compile(r".+\.(?:idx|tfindex)")


PARTIAL_SUFFIX, DONE_SUFFIX = ".partial", ".done"
"""Of what a job keeps in its internal folder: a shard that waits for its name, and its note."""


class ShardNumber(NamedTuple):
    """What a numbered shard name says: which shard of how many, of which split."""

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
        template: of the name, with {split}, {shard} (counted from 0) and {shards} in it, such as
            `flowers_{split}_{shard:05d}-of-{shards:05d}`. A name without a suffix gets the usual.

    Raises:
        OptionError: the template is none.
    """
    try:
        _check_template(template)
        name = template.format(split=split, shard=number, shards=count)
    except (LookupError, ValueError, AttributeError) as error:
        raise OptionError(
            f"shard_names is {template!r}, which is no template ({error}); expected {{split}}, "
            f"{{shard}} and {{shards}} in it, as in {DEFAULT_TEMPLATE!r}"
        ) from None
    suffix = _SUFFIXES[compression]
    return name if _HAS_SUFFIX.search(name) else name + suffix


def _check_template(template: str) -> None:
    """Plain fields only, as a template may come out of a file.

    Raises:
        ValueError: there are others.
    """
    for _, field, width, conversion in Formatter().parse(template):
        if field is None:
            continue
        if field not in ("split", "shard", "shards") or conversion is not None:
            raise ValueError(f"{{{field}}} is no field")
        if not _WIDTH.fullmatch(width or ""):
            raise ValueError(f"{width!r} is no width")


def parse_shard_name(name: str) -> ShardNumber | None:
    """The reverse, for the usual spellings of the suffix; None if the name has no numbers."""
    match = _TAIL_NUMBERED.fullmatch(name) or _NUMBERED.fullmatch(name)
    if match is None:
        return None
    return ShardNumber(match["stem"], int(match["number"]), int(match["count"]))


def is_shard_name(name: str) -> bool:
    """Whether a file is called as shards are, such as all that `shard_name` names."""
    return _HAS_SUFFIX.search(name) is not None or parse_shard_name(name) is not None


def passes_for_shard(name: str) -> bool:
    """Whether a file of this name is taken for records where its bytes do not tell."""
    is_called_so = _HAS_SUFFIX.search(name) or _ENDS_NUMBERED.search(name)
    return is_called_so is not None and not is_text_index_name(name)


def is_text_index_name(name: str) -> bool:
    """Whether a file of this name says where records begin, and holds none."""
    return _TEXT_INDEX.fullmatch(name) is not None
