"""How many records and shards does each split have, and what are the shards called? Arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from recordsmith.dataset import DEFAULT_TEMPLATE, shard_name
from recordsmith.errors import OptionError
from recordsmith.wire import Compression

DEFAULT_SHARD_SIZE_BYTES = 256_000_000
Shards: TypeAlias = int | Mapping[str, int]

_EXAMPLE = "{'train': 0.7, 'validation': 0.3}"
_FORBIDDEN = frozenset("/\\\0:*?[]\n\r")


def check_shares(splits: Mapping[str, float]) -> None:
    """
    Raises:
        OptionError: they are no shares by name that add up to 1.
    """
    if not isinstance(splits, Mapping):
        raise OptionError(f"splits is {splits!r}; expected shares by name, such as {_EXAMPLE}")
    if not splits:
        raise OptionError(f"splits is empty; give shares by name, such as {_EXAMPLE}")
    for name, share in splits.items():
        if not isinstance(name, str) or isinstance(share, str):
            raise OptionError(f"splits has {name!r}: {share!r}; expected a name and a number")
        if not 0 < share <= 1:
            raise OptionError(f"split {name!r} has the share {share:g}; expected 0 < share <= 1")
    total = math.fsum(splits.values())
    if abs(total - 1) > 1e-6:
        raise OptionError(f"the shares of the splits add up to {total:g}; expected 1, or 100%")


def exact_share(share: float) -> Fraction:
    """A share as it is written: 0.29 of 100 is 29."""
    return Fraction(share).limit_denominator(10**9)


def share_counts(count: int, splits: Mapping[str, float]) -> dict[str, int]:
    """How many of `count` each split has: its share, rounded so that they add up."""
    shares = [exact_share(share) for share in splits.values()]
    exact = [count * share / sum(shares) for share in shares]
    counts = [math.floor(length) for length in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: counts[i] - exact[i])
    for place in by_remainder[: count - sum(counts)]:
        counts[place] += 1
    return dict(zip(splits, counts, strict=True))


def check_shard_options(
    shards: Shards | None, shard_size_bytes: int | None, shard_names: object
) -> None:
    """
    Raises:
        OptionError: they contradict each other, or cannot be meant.
    """
    if shards is not None and shard_size_bytes is not None:
        raise OptionError("give shards or shard_size_bytes, not both")
    if shard_size_bytes is not None and (
        not isinstance(shard_size_bytes, int) or shard_size_bytes < 1
    ):
        raise OptionError(f"shard_size_bytes is {shard_size_bytes!r}; expected bytes, at least 1")
    if not isinstance(shard_names, str):
        raise OptionError(f"shard_names is {shard_names!r}; expected a template of names")


def shard_counts(
    records: Mapping[str, int],
    sizes: Mapping[str, int],
    shards: Shards | None,
    shard_size_bytes: int | None,
    *,
    noun: str = "record",
) -> dict[str, int]:
    """How many shards each split has.

    Args:
        records, sizes: of each split; sizes in bytes.
        shards, shard_size_bytes: as the caller wants it.
        noun: what one of them is called.

    Raises:
        OptionError: a number of shards is none, is missing, or is larger than that of the records.
    """
    numbers = shards if isinstance(shards, Mapping) else dict.fromkeys(records, shards)
    for split, number in numbers.items():
        if split not in records:
            raise OptionError(f"shards names {split!r}, which is none of {', '.join(records)}")
        if number is not None and (not isinstance(number, int) or number < 1):
            raise OptionError(f"the number of shards is {number!r}; expected 1 or more")
    counts = {}
    for split, count in records.items():
        if split not in numbers:
            raise OptionError(f"shards has no number for split {split!r}")
        wanted = numbers[split]
        if wanted is None:
            size = shard_size_bytes or DEFAULT_SHARD_SIZE_BYTES
            wanted = min(count, max(1, -(-sizes[split] // size)))
        if wanted > count:
            raise OptionError(
                f"split {split!r} is too small for {wanted} shards: it has one {noun} for each of "
                f"at most {count}"
            )
        counts[split] = wanted
    return counts


def bounds_of(count: int, shard_count: int) -> list[int]:
    """Where each shard of a split begins among its records, and the end."""
    return [count * number // shard_count for number in range(shard_count + 1)]


def files_of_splits(
    counts: Mapping[str, int], compression: Compression, template: str = DEFAULT_TEMPLATE
) -> dict[str, list[str]]:
    """The names of the shards of each split; `counts` says how many it has.

    Raises:
        OptionError: a split or the template makes names that no file can have, or has twice.
    """
    for split in counts:
        if is_no_file_name(split):
            raise OptionError(f"split name {split!r} cannot be part of a file name")
    files = {
        split: [shard_name(split, number, count, compression, template) for number in range(count)]
        for split, count in counts.items()
    }
    names = [file for of_split in files.values() for file in of_split]
    for file in names:
        if is_no_file_name(file):
            raise OptionError(f"shard_names is {template!r}; {file!r} cannot be the name of a file")
    if len(set(names)) < len(names):
        raise OptionError(
            f"shard_names is {template!r}, which gives several shards one name; expected it to "
            "have {split}, {shard} and {shards}, as in " + repr(DEFAULT_TEMPLATE)
        )
    return files


def is_no_file_name(name: str) -> bool:
    """Whether a file of this name would be hidden, lie elsewhere, or not be allowed somewhere."""
    return not name or name.startswith(".") or not _FORBIDDEN.isdisjoint(name)
