"""Assigns samples to splits and shards, as a pure function of the listing and the options.

Samples are ordered by a hash of seed and name: a shuffle that is the same on every machine and in
every Python version, and in which most samples keep their split when samples are added or removed.
Splits are consecutive runs of that order, shards are consecutive runs of a split.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from recordsmith.dataset.shares import check_shares
from recordsmith.errors import OptionError, SourceError
from recordsmith.packing.division import Division
from recordsmith.packing.sample_order import RUN_BYTES, OrderedSamples, read_samples
from recordsmith.packing.spilled_samples import Places
from recordsmith.sources import Listing, Sample
from recordsmith.wire import Compression


@dataclass(frozen=True)
class PackShard:
    """A shard: its file name, its split, and where its samples are in `Plan.samples`."""

    file: str
    split: str
    samples: Sequence[int]


@dataclass(frozen=True)
class Plan:
    """The plan of a job. Shards can be written independently, in any order, on any machine.

    fingerprint: a hash of the listing and the options.
    samples: all samples; those of the listing, or on disk, shard by shard.
    numbers: called with some numbers in `samples`; returns those in the listing.
    """

    shards: tuple[PackShard, ...]
    splits: tuple[str, ...]
    compression: Compression
    fingerprint: str
    samples: Sequence[Sample] = field(compare=False)
    numbers: Callable[[Places], Int64Array] = field(compare=False)


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
    run_bytes: int | None = None,
) -> Plan:
    """Plan a job before any sample is read; options as in `pack`.

    Args:
        other_options: whatever else determines the bytes of the shards, such as the kind of the
            source and the image options. It is part of the fingerprint.
        run_bytes: the memory for samples, `RUN_BYTES` by default; more are sorted on disk.

    Raises:
        OptionError: options conflict with each other or with the number of samples.
        SourceError: names of classes or splits cannot be written to files.
        FileAccessError: there is no space for temporary files.
    """
    _check_names(listing)
    if not isinstance(seed, int):
        raise OptionError(option="seed", value=seed, expected="an integer")
    check_shard_options(shards, shard_size_bytes, shard_names)
    if splits is not None:
        check_shares(splits)
    samples, digest = read_samples(
        listing, seed, shuffle=shuffle, run_bytes=RUN_BYTES if run_bytes is None else run_bytes
    )
    if splits is None and not listing.splits and listing.only_split is not None:
        splits = {listing.only_split: 1.0}
    division = Division(samples, listing.splits, splits, resplit, stratify=stratify)
    ordered = samples.arrange(division)
    counts = shard_counts(
        dict(zip(division.splits, ordered.counts, strict=True)),
        dict(zip(division.splits, ordered.size_bytes, strict=True)),
        shards,
        shard_size_bytes,
        noun="sample",
    )
    planned: list[PackShard] = []
    files_by_split = shard_files_by_split(counts, compression, shard_names)
    for number, (split, files) in enumerate(files_by_split.items()):
        bounds = shard_bounds(ordered.counts[number], len(files))
        planned += [
            PackShard(file, split, ordered.places(number, start, stop))
            for file, start, stop in zip(files, bounds[:-1], bounds[1:], strict=True)
        ]
    options = {"compression": compression, **(other_options or {})}
    fingerprint = _fingerprint(listing, digest, planned, ordered, options)
    return Plan(
        tuple(planned), division.splits, compression, fingerprint, ordered.samples, ordered.numbers
    )


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


def _fingerprint(
    listing: Listing,
    digest: bytes,
    planned: Sequence[PackShard],
    ordered: OrderedSamples,
    options: Mapping[str, Any],
) -> str:
    """Hash everything that determines the content of the shards, without reading samples."""
    found = hashlib.blake2b(digest_size=16)
    found.update(json.dumps([options, listing.class_names], sort_keys=True).encode())
    found.update(digest)
    for shard in planned:
        found.update(f"\n{shard.file}\n".encode("utf-8", "surrogateescape"))
        found.update(ordered.numbers(shard.samples).astype("<i8", copy=False).data)
    return found.hexdigest()
