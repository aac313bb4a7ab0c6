"""Assigns samples to splits and shards, as a pure function of the listing and the options.

Samples are ordered by a hash of seed and name: a shuffle that is the same on every machine and in
every Python version, and in which most samples keep their split when samples are added or removed.
Splits are consecutive runs of that order, shards are consecutive runs of a split. Without
shuffling, the order is that of the source; groups and stratified classes are divided separately.
Planning takes about 60 bytes for each sample in addition to its name and reference.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    ShardPlan,
    check_shard_options,
    check_shares,
    is_line,
    is_valid_file_name,
    keypoint_classes_to_json,
    plan_shards,
)
from recordsmith.sources import (
    Coding,
    Listing,
    RowNames,
    SampleTable,
    all_encoded,
    collect,
    divided_groups,
    encoded,
    join_names,
    samples_digest,
)
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.words import count
from recordsmith.writing.packing.division import class_deviations, divide, divide_folds
from recordsmith.writing.packing.pack_options import FOLD, PackOptions

_LOCATION_KEYS = ("folder", "file", "files")

_Hasher: TypeAlias = Callable[[str | bytes | memoryview], int]


@dataclass(frozen=True)
class ShardAssignment:
    """Which samples each shard gets. Shards can be written in any order, on any machine.

    fingerprint: a hash of the listing and the options.
    samples: of the listing; of a task, its own.
    orders: the numbers of the samples of each split, in order.
    listed: the numbers of the samples in the listing; None if these are their numbers here.
    deviations: where groups are stratified, for each split and fold the share of each class in it,
        by label, minus the share of the split.
    folds: the fold of each sample; None without folds.
    """

    shards: tuple[ShardPlan, ...]
    fingerprint: str
    samples: SampleTable = field(compare=False)
    orders: Mapping[str, Int64Array] = field(compare=False)
    listed: Int64Array | None = field(default=None, compare=False)
    deviations: Mapping[str, Mapping[int, float]] = field(default_factory=dict, compare=False)
    folds: Int64Array | None = field(default=None, compare=False)

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of all splits."""
        return tuple(self.orders)

    def numbers(self, shard: ShardPlan) -> Int64Array:
        """Return the numbers of the samples of a shard."""
        return self.orders[shard.split][shard.start : shard.stop]

    def number_in_listing(self, number: int) -> int:
        """Return the number of a sample in the listing."""
        return number if self.listed is None else int(self.listed[number])


def assign_shards(
    listing: Listing, options: PackOptions, source: Mapping[str, Any]
) -> ShardAssignment:
    """Assign the samples of a job to shards, before any sample is read.

    Args:
        source: its description. Where it is does not count, as that may differ between machines.
    """
    _check_names(listing)
    if not isinstance(options.seed, int):
        raise OptionError(option="seed", value=options.seed, expected="an integer")
    check_shard_options(options.shards, options.shard_size_bytes, options.shard_names)
    shares = None if isinstance(options.splits, str) else options.splits
    if shares is not None:
        check_shares(shares)
    samples = collect(listing.samples)
    number_of = _hasher(options.seed)
    hashes = _hashes(samples, number_of)
    shuffled = _ascending(hashes)
    groups = _group_hashes(samples.groups, hashes, number_of)
    orders = divide(
        shuffled if options.shuffle else np.arange(len(samples)),
        samples.strata,
        groups,
        _source_splits(listing, samples),
        shares,
        options.resplit,
        stratify=options.stratify,
        has_folds=options.folds is not None,
    )
    split_of = np.full(len(samples), -1, np.int64)
    for number, members in enumerate(orders.values()):
        split_of[members] = number
    for name in ("together", "groups", "group_pattern"):
        if getattr(options, name) is not None:
            _check_groups(samples.groups, split_of, [*orders], name)
    folds = None
    strata = samples.strata if options.stratify else None
    deviations: dict[str, dict[int, float]] = {}
    if strata is not None and groups is not None:
        deviations = class_deviations(strata, orders, shares or {})
    if options.folds is not None:
        folds = divide_folds(shuffled, strata, groups, split_of, options.folds)
        if strata is not None and groups is not None:
            of_fold = {
                f"{FOLD} {fold}": np.flatnonzero(folds == fold) for fold in range(options.folds)
            }
            equal = dict.fromkeys(of_fold, 1 / options.folds)
            deviations |= class_deviations(strata, of_fold, equal)
    compression = options.shard_compression
    shards = plan_shards(
        {split: len(numbers) for split, numbers in orders.items()},
        {split: int(samples.sizes[numbers].sum()) for split, numbers in orders.items()},
        options.shards,
        options.shard_size_bytes,
        compression,
        options.shard_names,
        noun="sample",
    )
    content = {
        "compression": compression,
        "source": {name: value for name, value in source.items() if name not in _LOCATION_KEYS},
        **options.options_of_records(),
    }
    numbers = {shard.file: orders[shard.split][shard.start : shard.stop] for shard in shards}
    digest = samples_digest(samples)
    if folds is not None:
        digest += hashlib.blake2b(folds.astype("<i8").data, digest_size=16).digest()
    fingerprint = _fingerprint(listing, digest, numbers, content)
    return ShardAssignment(
        shards, fingerprint, samples, orders, samples.listed, deviations=deviations, folds=folds
    )


def _check_names(listing: Listing) -> None:
    """Validate class names, which become lines of `labels.txt`, and split names (file names)."""
    problems = [
        f"the name of class {label} has a line break or is not Unicode: {name!r:.80}"
        for label, name in enumerate(listing.class_names or ())
        if name is not None and not is_line(name)
    ]
    problems += [
        f"the source's split {split!r:.80} cannot be part of a file name"
        for split in listing.splits
        if not is_valid_file_name(split)
    ]
    if problems:
        raise SourceError("; ".join(problems[:3]), problems, remedy="Rename it in the source.")


def _check_groups(
    groups: Coding | None, split_of: Int64Array, splits: list[str], name: str
) -> None:
    """Raise OptionError if kept splits divide a group of an option."""
    divided = [
        f"{group!r} ({', '.join(splits[split_of[number]] for number in samples)})"
        for group, samples in divided_groups(groups, split_of)
    ]
    if divided:
        raise OptionError(
            f"{count(len(divided), 'group is', 'groups are')} in several of the splits that are "
            f"kept: {join_names(divided)}",
            option=name,
            remedy=f"Divide the samples again with {option('splits')} and "
            f"{option('resplit', splits)}, or leave out the groups.",
        )


def _hasher(seed: int) -> _Hasher:
    """Return a function that makes a pseudorandom number from a name."""
    salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    keyed = hashlib.blake2b(digest_size=16, key=salt)

    def number_of(name: str | bytes | memoryview) -> int:
        digest = keyed.copy()
        digest.update(encoded(name) if isinstance(name, str) else name)
        return int.from_bytes(digest.digest()[:8], "big")

    return number_of


def _hashes(samples: SampleTable, number_of: _Hasher) -> npt.NDArray[np.uint64]:
    """Return a number for each sample, from the seed and its name only."""
    names = samples.names
    if isinstance(names, RowNames):
        return names.hashes(number_of)
    return np.fromiter(map(number_of, all_encoded(names)), np.uint64, len(names))


def _group_hashes(
    groups: Coding | None, hashes: npt.NDArray[np.uint64], number_of: _Hasher
) -> npt.NDArray[np.uint64] | None:
    """Return a number for the group of each sample, and for each without one; None without any."""
    if groups is None or not (groups[1] >= 0).any():
        return None
    names, group_of = groups
    of_groups = np.fromiter(map(number_of, names), np.uint64, len(names))
    return np.where(group_of >= 0, of_groups[group_of], ~hashes)


def _source_splits(listing: Listing, samples: SampleTable) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which samples each split of the source has."""
    splits = listing.splits
    if not splits:
        only = listing.only_split
        return {} if only is None else {only: np.ones(len(samples), bool)}
    assert samples.splits is not None
    names, split_of = samples.splits
    return {
        split: split_of == names.index(split) if split in names else np.zeros(len(split_of), bool)
        for split in splits
    }


def _ascending(hashes: npt.NDArray[np.uint64]) -> Int64Array:
    """The numbers of samples in ascending order of hashes; equal ones in that of the listing."""
    order = np.argsort(hashes)  # in half the time of a stable one
    ordered = hashes[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(hashes, kind="stable")
    return order.astype(np.int64, copy=False)


def _fingerprint(
    listing: Listing, digest: bytes, shards: Mapping[str, Int64Array], content: Mapping[str, Any]
) -> str:
    """Hash everything that determines the content of the shards, without reading samples.

    Args:
        shards: the numbers of the samples of each shard, by file.
    """
    whole = hashlib.blake2b(digest_size=16)
    keypoints = keypoint_classes_to_json(listing.keypoint_classes)
    known = [content, listing.class_names, *([keypoints] if keypoints else [])]
    whole.update(json.dumps(known, sort_keys=True).encode())
    whole.update(digest)
    for file, numbers in shards.items():
        whole.update(f"\n{file}\n".encode("utf-8", "surrogateescape"))
        whole.update(np.ascontiguousarray(numbers, "<i8").data)
    return whole.hexdigest()
