"""Shard names: `train-00003-of-00128.tfrecord`, and what can be read from them."""

from __future__ import annotations

import re
from typing import NamedTuple

from recordsmith.wire import Compression

_SUFFIXES: dict[Compression, str] = {
    "none": ".tfrecord",
    "gzip": ".tfrecord.gz",
    "zlib": ".tfrecord.zlib",
}
_NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{5,})-of-(?P<count>\d{5,})(?P<suffix>\.[\w.]+)?")
_TAIL_NUMBERED = re.compile(
    r"(?P<stem>.+)\.(?:tfrecords?|record)-(?P<number>\d{5,})-of-(?P<count>\d{5,})"
)


class ShardNumber(NamedTuple):
    """What a numbered shard name says: which shard of how many, of which split."""

    split: str
    number: int
    shard_count: int


def shard_name(split: str, number: int, count: int, compression: Compression = "none") -> str:
    """The file name of shard `number` of `count`."""
    return f"{split}-{number:05d}-of-{count:05d}{_SUFFIXES[compression]}"


def parse_shard_name(name: str) -> ShardNumber | None:
    """The reverse, for the usual spellings of the suffix; None if the name has no numbers."""
    match = _TAIL_NUMBERED.fullmatch(name) or _NUMBERED.fullmatch(name)
    if match is None:
        return None
    return ShardNumber(match["stem"], int(match["number"]), int(match["count"]))


def split_of(name: str) -> str:
    """The split that a file name speaks of: what stands before the numbers, or before the dot."""
    numbered = parse_shard_name(name)
    return numbered.split if numbered else name.partition(".")[0] or name
