"""Assigns samples to splits and shards, as a pure function of the listing and the options.

Samples are ordered by a hash of seed and name: a shuffle that is the same on every machine and in
every Python version, and in which most samples keep their split when samples are added or removed.
Splits are consecutive runs of that order, shards are consecutive runs of a split. A plan takes 16
bytes per sample.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.building import (
    ShardCounts,
    check_shard_options,
    is_valid_file_name,
    shard_bounds,
    shard_counts,
    shard_files_by_split,
)
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.dataset.shares import check_shares, share_counts
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources import Listing
from recordsmith.sources.numbered import RowNames, collect
from recordsmith.sources.problems import join_names
from recordsmith.wire import Compression

_AT_ONCE = 1024


class SampleColumns:
    """The samples of a listing as columns.

    hashes: uint64; a pseudorandom number for each name, from seed and name only.
    sizes: int64, in bytes.
    labels: int32; -1 without a label; None if the listing has no labels.
    splits: int64; the index of the split in the listing; empty if the listing has no splits.
    groups: uint64; a pseudorandom number for each group, and for each sample without one; None if
        no sample belongs to a group.
    digest: a hash of all names, sizes and labels.
    """

    def __init__(self, listing: Listing, seed: int) -> None:
        samples = collect(listing.samples)
        number_of = _Hasher(seed).number
        digest = hashlib.blake2b(digest_size=16)
        names = samples.names
        if isinstance(names, RowNames):
            self.hashes = names.hashes(number_of)
            digest.update(repr(names.counts).encode())
        else:
            self.hashes = np.fromiter(map(number_of, names), np.uint64, len(names))
            _add_names(digest, names)
        self.sizes = samples.sizes
        self.labels = samples.labels
        digest.update(self.sizes.astype("<i8", copy=False).data)
        if self.labels is not None:
            digest.update(self.labels.astype("<i4", copy=False).data)
        self.digest = digest.digest()
        self.splits: Int64Array = np.zeros(0, np.int64)
        if listing.splits:
            assert samples.splits is not None
            places = {split: place for place, split in enumerate(listing.splits)}
            table = np.array([places[split] for split in samples.splits[0]], np.int64)
            self.splits = table[samples.splits[1]]
        self.groups: npt.NDArray[np.uint64] | None = None
        if samples.groups is not None and (samples.groups[1] >= 0).any():
            values, numbers = samples.groups
            of_value = np.fromiter(map(number_of, values), np.uint64, len(values))
            self.groups = np.where(numbers >= 0, of_value[numbers], ~self.hashes)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def has_groups(self) -> bool:
        return self.groups is not None


def _add_names(digest: Any, names: Iterable[str]) -> None:
    remaining = iter(names)
    while some := list(islice(remaining, _AT_ONCE)):
        digest.update("".join(f"{name}\0" for name in some).encode("utf-8", "surrogateescape"))


class _Hasher:
    def __init__(self, seed: int) -> None:
        salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
        self._keyed = hashlib.blake2b(digest_size=16, key=salt)

    def number(self, name: str) -> int:
        digest = self._keyed.copy()
        digest.update(name.encode("utf-8", "surrogateescape"))
        return int.from_bytes(digest.digest()[:8], "big")


_Members = TypeVar("_Members", bound=Sequence[int] | Int64Array)


@dataclass(frozen=True)
class PackShard:
    """A shard: its file name, its split, and the numbers of its samples in the listing."""

    file: str
    split: str
    samples: array[int]


@dataclass(frozen=True)
class Plan:
    """The plan of a job. Shards can be written independently, in any order, on any machine.

    fingerprint: a hash of the listing and the options.
    """

    shards: tuple[PackShard, ...]
    splits: tuple[str, ...]
    compression: Compression
    fingerprint: str


def make_plan(
    listing: Listing,
    *,
    splits: Mapping[str, float] | None = None,
    resplit: str | Sequence[str] | None = None,
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    seed: int = 0,
    stratify: bool = False,
    shuffle: bool = True,
    compression: Compression = "none",
    shard_names: str = DEFAULT_TEMPLATE,
    other_options: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a job before any sample is read; options as in `pack`.

    Args:
        other_options: whatever else determines the bytes of the shards, such as the kind of the
            source and the image options. It is part of the fingerprint.

    Raises:
        OptionError: options conflict with each other or with the number of samples.
        SourceError: names of classes or splits cannot be written to files.
    """
    _check_names(listing)
    if not isinstance(seed, int):
        raise OptionError(option="seed", value=seed, expected="an integer")
    check_shard_options(shards, shard_size_bytes, shard_names)
    shares = {"train": 1.0} if splits is None else splits
    check_shares(shares)
    survey = SampleColumns(listing, seed)
    order = _order(survey, shuffle=shuffle)
    parts = _source_splits(listing.splits, survey, order)
    divided = splits_to_divide(tuple(parts), splits, resplit, stratify=stratify)
    if divided or not parts:
        places = [listing.splits.index(split) for split in divided]
        members = order[np.isin(survey.splits[order], places)] if divided else order
        drawn = _random_splits(survey, members, shares, stratify=stratify)
        first = tuple(parts).index(divided[0]) if divided else 0
        kept = [(split, part) for split, part in parts.items() if split not in divided]
        parts = dict([*kept[:first], *drawn.items(), *kept[first:]])
    counts = shard_counts(
        {split: len(members) for split, members in parts.items()},
        {split: int(survey.sizes[members].sum()) for split, members in parts.items()},
        shards,
        shard_size_bytes,
        noun="sample",
    )
    planned: list[PackShard] = []
    for split, files in shard_files_by_split(counts, compression, shard_names).items():
        bounds = shard_bounds(len(parts[split]), len(files))
        planned += [
            PackShard(file, split, _as_array(parts[split][start:stop]))
            for file, start, stop in zip(files, bounds[:-1], bounds[1:], strict=True)
        ]
    options = {"compression": compression, **(other_options or {})}
    fingerprint = _fingerprint(listing, survey, planned, options)
    return Plan(tuple(planned), tuple(parts), compression, fingerprint)


def _as_array(numbers: Int64Array) -> array[int]:
    """Convert to an array of Python, which yields Python integers faster than NumPy."""
    found = array("q")
    found.frombytes(np.ascontiguousarray(numbers).view(np.uint8).data)
    return found


def _check_names(listing: Listing) -> None:
    """Validate class names, which become lines of `labels.txt`, and split names (file names)."""
    problems = [
        f"the name of class {label} has a line break: {name!r:.80}"
        for label, name in enumerate(listing.class_names or ())
        if name is not None and ("\n" in name or name.endswith("\r"))
    ]
    problems += [
        f"the source's split {split!r:.80} cannot be part of a file name"
        for split in listing.splits
        if not is_valid_file_name(split)
    ]
    if problems:
        raise SourceError("; ".join(problems[:3]), problems, remedy="Rename it in the source.")


def _order(survey: SampleColumns, *, shuffle: bool) -> Int64Array:
    """The numbers of all samples, ordered by hash or as listed."""
    if not shuffle:
        return np.arange(len(survey), dtype=np.int64)
    return np.argsort(survey.hashes, kind="stable").astype(np.int64, copy=False)


def _source_splits(
    splits: Sequence[str], survey: SampleColumns, order: Int64Array
) -> dict[str, Int64Array]:
    """The samples of each split that the source defines, in order, without empty splits."""
    if not splits:
        return {}
    numbers = survey.splits[order]
    parts = {split: order[numbers == number] for number, split in enumerate(splits)}
    return {split: members for split, members in parts.items() if len(members)}


def splits_to_divide(
    given: Sequence[str],
    splits: Mapping[str, float] | None,
    resplit: str | Sequence[str] | None,
    *,
    stratify: bool = False,
) -> tuple[str, ...]:
    """Which splits of the source are divided, in its order; the others are kept.

    Args:
        given: the splits of the source that have samples.

    Raises:
        OptionError: the options contradict each other or the splits of the source.
    """
    if resplit is None and (splits is None or not given):
        if stratify and given:
            raise OptionError(
                f"{option('stratify')} has no effect on the source's own splits: "
                f"{join_names(given)}",
                option="stratify",
                value=True,
                remedy=f"Leave it out, or divide splits with {option('splits')} and "
                f"{option('resplit', [given[0]])}.",
            )
        return ()
    if resplit is None:
        if len(given) == 1:
            return tuple(given)
        raise OptionError(
            f"the source has its own splits: {join_names(given)}",
            option="splits",
            value=splits,
            remedy=f"Leave out {option('splits')} to keep them, pass "
            f"{option('resplit', [given[0]])} to divide only that split, or "
            f"{option('resplit', list(given))} to divide all samples together, which may move "
            "test samples into training.",
        )
    wanted = [resplit] if isinstance(resplit, str) else list(resplit)
    if splits is None or not wanted:
        raise OptionError(
            f"{option('resplit')} divides splits of the source into those of {option('splits')}; "
            f"both need names",
            option="resplit",
            value=resplit,
            remedy=f"Pass shares with {option('splits')}, or leave out {option('resplit')}.",
        )
    for name in wanted:
        if name not in given:
            raise OptionError(
                option="resplit",
                value=name,
                expected=f"one of {join_names(given)}" if given else "a source with splits",
            )
    for name in given:
        if name in splits and name not in wanted:
            raise OptionError(
                f"the source's split {name!r} is kept, and a new split has the same name",
                option="splits",
                value=name,
                remedy=f"Choose another name, or add {name!r} to {option('resplit')}.",
            )
    return tuple(name for name in given if name in wanted)


def _random_splits(
    survey: SampleColumns,
    order: Int64Array,
    shares: Mapping[str, float],
    *,
    stratify: bool,
) -> dict[str, Int64Array]:
    """Divide the samples in `order` by share.

    Raises:
        OptionError: a split would be empty, or the options conflict.
    """
    parts = _divide(survey, order, shares, stratify=stratify)
    every = " of every class" if stratify else ""
    for split, members in parts.items():
        if not len(members):
            whole = "; groups are never divided" if survey.has_groups else ""
            raise OptionError(
                f"split {split!r} would be empty: its share is {shares[split]:g}{every} of "
                f"{len(order)} samples{whole}",
                option="splits",
                value=split,
                remedy="Give it a larger share.",
            )
    return parts


def _divide(
    survey: SampleColumns,
    order: Int64Array,
    shares: Mapping[str, float],
    *,
    stratify: bool,
) -> dict[str, Int64Array]:
    if not (stratify or survey.has_groups):
        return _cut(order, shares)
    if stratify and survey.has_groups:
        raise OptionError(
            f"{option('stratify')} cannot be used with a source that has groups: groups are never "
            "divided, so the class balance of the splits cannot be chosen",
            option="stratify",
            value=True,
            remedy="Use only one of them.",
        )
    rank = np.empty(len(survey), np.int64)
    rank[order] = np.arange(len(order))
    if stratify:
        labels = np.zeros(len(order)) if survey.labels is None else survey.labels[order]
        runs = [_cut(order[labels == label], shares) for label in np.unique(labels)]
        parts = {split: np.concatenate([run[split] for run in runs]) for split in shares}
    else:
        assert survey.groups is not None
        numbers = np.sort(order)
        in_groups = _cut_groups(survey.groups[numbers], shares)
        parts = {split: numbers[members] for split, members in in_groups.items()}
    return {split: members[np.argsort(rank[members])] for split, members in parts.items()}


def _cut_groups(
    hashes: npt.NDArray[np.uint64], shares: Mapping[str, float]
) -> dict[str, Int64Array]:
    """Order groups by hash, and put each group into the split where its middle falls."""
    order = np.argsort(hashes, kind="stable").astype(np.int64, copy=False)
    _, starts, lengths = np.unique(hashes[order], return_index=True, return_counts=True)
    bounds = np.cumsum([len(part) for part in _cut(order, shares).values()])
    numbers = np.minimum(
        np.searchsorted(bounds, starts + lengths / 2, side="right"), len(bounds) - 1
    )
    of_sample = np.repeat(numbers, lengths)
    return {split: order[of_sample == number] for number, split in enumerate(shares)}


def _cut(members: _Members, splits: Mapping[str, float]) -> dict[str, _Members]:
    """Cut into consecutive runs by share."""
    parts: dict[str, Any] = {}
    start = 0
    for split, length in share_counts(len(members), splits).items():
        parts[split] = members[start : start + length]
        start += length
    return parts


def _fingerprint(
    listing: Listing,
    survey: SampleColumns,
    planned: Sequence[PackShard],
    options: Mapping[str, Any],
) -> str:
    """Hash everything that determines the content of the shards, without reading samples."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([options, listing.class_names], sort_keys=True).encode())
    digest.update(survey.digest)
    for shard in planned:
        digest.update(f"\n{shard.file}\n".encode("utf-8", "surrogateescape"))
        digest.update(np.asarray(shard.samples, "<i8").tobytes())
    return digest.hexdigest()
