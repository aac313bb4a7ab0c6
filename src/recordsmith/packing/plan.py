"""Which sample goes to which split and shard, in which order? A pure function of the listing.

Samples are ordered by a hash of seed and name: a shuffle that any machine and any version of
Python repeats, and in which most samples keep their split when others come or go. Splits are
consecutive runs of that order (of each class, when stratified), shards consecutive runs of a split.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from recordsmith.dataset import shard_name
from recordsmith.errors import OptionError
from recordsmith.sources import Listing, Sample
from recordsmith.wire import Compression

DEFAULT_SHARD_SIZE_BYTES = 256_000_000
_EXAMPLE = "{'train': 0.7, 'validation': 0.3}"
Shards: TypeAlias = int | Mapping[str, int]


@dataclass(frozen=True)
class PlannedShard:
    """One shard: its file name, its split, and its samples by number in the listing."""

    file: str
    split: str
    samples: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The whole job. Each shard can be written on its own, in any order, by any machine.

    fingerprint: equal for equal listings and options, and only for them.
    """

    shards: tuple[PlannedShard, ...]
    splits: tuple[str, ...]
    compression: Compression
    fingerprint: str

    def shards_of(self, split: str) -> list[PlannedShard]:
        """The shards of one split, in order."""
        return [shard for shard in self.shards if shard.split == split]


def make_plan(
    listing: Listing,
    *,
    splits: Mapping[str, float],
    shards: Shards | None,
    shard_size_bytes: int | None,
    seed: int,
    stratify: bool,
    compression: Compression,
    kind: str,
) -> Plan:
    """Decide everything before anything is read; arguments as in `pack`, `kind` of the source.

    Raises:
        OptionError: options contradict each other or the number of samples.
    """
    _check_splits(splits)
    _check_shards(shards, splits)
    if not isinstance(seed, int):
        raise OptionError(f"seed is {seed!r}; expected an integer")
    if shards is not None and shard_size_bytes is not None:
        raise OptionError("give shards or shard_size_bytes, not both")
    if shard_size_bytes is not None and shard_size_bytes < 1:
        raise OptionError(f"shard_size_bytes is {shard_size_bytes}, expected at least 1")
    order = _shuffled(listing.samples, seed)
    if stratify:
        labels: dict[int | None, list[int]] = {}
        for number in order:
            labels.setdefault(listing.samples[number].label, []).append(number)
        runs = [_cut(members, splits) for members in labels.values()]
        rank = {number: place for place, number in enumerate(order)}
        parts = {
            split: sorted((n for run in runs for n in run[split]), key=rank.__getitem__)
            for split in splits
        }
    else:
        parts = _cut(order, splits)
    planned: list[PlannedShard] = []
    for split, members in parts.items():
        if not members:
            every = " of every class" if stratify else ""
            raise OptionError(
                f"split {split!r} would be empty: {splits[split]:g}{every} of "
                f"{len(listing.samples)} samples is none; give it a larger share"
            )
        count = _shard_count(split, members, listing.samples, shards, shard_size_bytes)
        bounds = [len(members) * number // count for number in range(count + 1)]
        planned += [
            PlannedShard(
                shard_name(split, number, count, compression),
                split,
                tuple(members[bounds[number] : bounds[number + 1]]),
            )
            for number in range(count)
        ]
    fingerprint = _fingerprint(listing, planned, {"compression": compression, "kind": kind})
    return Plan(tuple(planned), tuple(splits), compression, fingerprint)


def _check_shards(shards: Shards | None, splits: Mapping[str, float]) -> None:
    numbers = shards if isinstance(shards, Mapping) else dict.fromkeys(splits, shards)
    for split, number in numbers.items():
        if split not in splits:
            raise OptionError(f"shards names {split!r}, which is none of {', '.join(splits)}")
        if number is not None and (not isinstance(number, int) or number < 1):
            raise OptionError(f"the number of shards is {number!r}; expected 1 or more")


def _check_splits(splits: Mapping[str, float]) -> None:
    if not isinstance(splits, Mapping):
        raise OptionError(f"splits is {splits!r}; expected shares by name, such as {_EXAMPLE}")
    if not splits:
        raise OptionError(f"splits is empty; give shares by name, such as {_EXAMPLE}")
    for name, share in splits.items():
        if not isinstance(name, str) or isinstance(share, str):
            raise OptionError(f"splits has {name!r}: {share!r}; expected a name and a number")
        if not name or name.startswith(".") or set(name) & set("/\\\0:*?[]"):
            raise OptionError(f"split name {name!r} cannot be part of a file name")
        if not 0 < share <= 1:
            raise OptionError(f"split {name!r} has the share {share:g}; expected 0 < share <= 1")
    total = math.fsum(splits.values())
    if abs(total - 1) > 1e-6:
        raise OptionError(f"the shares of the splits add up to {total:g}; expected 1, or 100%")


def _shuffled(samples: Sequence[Sample], seed: int) -> list[int]:
    """Numbers of the samples, ordered by hash."""
    salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    keys = [
        hashlib.blake2b(os.fsencode(sample.name), digest_size=16, key=salt).digest()
        for sample in samples
    ]
    return sorted(range(len(samples)), key=keys.__getitem__)


def _cut(members: Sequence[int], splits: Mapping[str, float]) -> dict[str, list[int]]:
    """Consecutive runs whose lengths are the shares, rounded so that they add up."""
    shares = [Fraction(share).limit_denominator(10**9) for share in splits.values()]
    exact = [len(members) * share / sum(shares) for share in shares]
    lengths = [math.floor(length) for length in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: lengths[i] - exact[i])
    for place in by_remainder[: len(members) - sum(lengths)]:
        lengths[place] += 1
    parts, start = {}, 0
    for split, length in zip(splits, lengths, strict=True):
        parts[split] = list(members[start : start + length])
        start += length
    return parts


def _shard_count(
    split: str,
    members: Sequence[int],
    samples: Sequence[Sample],
    shards: Shards | None,
    shard_size_bytes: int | None,
) -> int:
    if shards is None:
        size = sum(samples[number].size_bytes for number in members)
        return min(len(members), max(1, -(-size // (shard_size_bytes or DEFAULT_SHARD_SIZE_BYTES))))
    if isinstance(shards, Mapping):
        if split not in shards:
            raise OptionError(f"shards has no number for split {split!r}")
        shards = shards[split]
    if shards > len(members):
        raise OptionError(
            f"split {split!r} is too small for {shards} shards: it has one sample for each of at "
            f"most {len(members)}"
        )
    return shards


def _fingerprint(
    listing: Listing, planned: Sequence[PlannedShard], options: Mapping[str, Any]
) -> str:
    """A hash over everything that decides what the shards will hold, short of reading it."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([options, listing.class_names], sort_keys=True).encode())
    for shard in planned:
        digest.update(f"\n{shard.file}".encode("utf-8", "surrogateescape"))
        for number in shard.samples:
            sample = listing.samples[number]
            line = f"\n{sample.name}\0{sample.size_bytes}\0{sample.label}"
            digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
