"""Plans shards: how many each split has, their names, and which records each gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from recordsmith.dataset.names import DEFAULT_TEMPLATE, shard_name
from recordsmith.format.wire import Compression
from recordsmith.support.errors import OptionError, option

DEFAULT_SHARD_SIZE_BYTES = 256_000_000
ShardCounts: TypeAlias = int | Mapping[str, int]

_FORBIDDEN = frozenset("/\\\0:*?[]\n\r")


@dataclass(frozen=True)
class ShardPlan:
    """A shard to write: the samples or records start:stop in the order of its split."""

    file: str
    split: str
    start: int
    stop: int

    @property
    def sample_count(self) -> int:
        return self.stop - self.start


def check_shard_options(
    shards: ShardCounts | None, shard_size_bytes: int | None, shard_names: object
) -> None:
    if shards is not None and shard_size_bytes is not None:
        raise OptionError(
            f"{option('shards')} and {option('shard_size_bytes')} exclude each other",
            option="shards",
            remedy="Pass only one of them.",
        )
    if shard_size_bytes is not None and (
        not isinstance(shard_size_bytes, int) or shard_size_bytes < 1
    ):
        raise OptionError(
            option="shard_size_bytes", value=shard_size_bytes, expected="a positive integer"
        )
    if not isinstance(shard_names, str):
        raise OptionError(
            option="shard_names", value=shard_names, expected=f"a template like {DEFAULT_TEMPLATE}"
        )


def shard_counts(
    records: Mapping[str, int],
    sizes: Mapping[str, int],
    shards: ShardCounts | None,
    shard_size_bytes: int | None,
    *,
    noun: str = "record",
) -> dict[str, int]:
    """Compute the number of shards of each split from its records and their size in bytes."""
    numbers = shards if isinstance(shards, Mapping) else dict.fromkeys(records, shards)
    for split, number in numbers.items():
        if split not in records:
            raise OptionError(
                f"{option('shards')} has the unknown split {split!r}",
                option="shards",
                value=split,
                expected=f"some of {', '.join(records)}",
            )
        if number is not None and (not isinstance(number, int) or number < 1):
            raise OptionError(option="shards", value=number, expected="a positive integer")
    counts = {}
    for split, count in records.items():
        if split not in numbers:
            raise OptionError(
                f"{option('shards')} has no number for split {split!r}",
                option="shards",
                value=shards,
                expected="a number for every split",
            )
        count_of_split = numbers[split]
        if count_of_split is None:
            size = shard_size_bytes or DEFAULT_SHARD_SIZE_BYTES
            count_of_split = min(count, max(1, -(-sizes[split] // size)))
        if count_of_split > count:
            raise OptionError(
                f"split {split!r} has {count} {noun if count == 1 else f'{noun}s'}, too few for "
                f"{count_of_split} shards",
                option="shards",
                value=count_of_split,
                expected=f"at most {count}",
            )
        counts[split] = count_of_split
    return counts


def plan_shards(
    counts: Mapping[str, int],
    sizes: Mapping[str, int],
    shards: ShardCounts | None,
    shard_size_bytes: int | None,
    compression: Compression,
    template: str,
    *,
    noun: str = "record",
) -> tuple[ShardPlan, ...]:
    """Divide the records of each split into shards; args as of `shard_counts`."""
    numbers = shard_counts(counts, sizes, shards, shard_size_bytes, noun=noun)
    return tuple(
        ShardPlan(file, split, start, stop)
        for split, files in shard_files_by_split(numbers, compression, template).items()
        for file, (start, stop) in zip(
            files, pairwise(shard_bounds(counts[split], len(files))), strict=True
        )
    )


def shard_bounds(count: int, shard_count: int) -> list[int]:
    """The number of the first record of each shard of a split, and the number of records."""
    return [count * number // shard_count for number in range(shard_count + 1)]


def shard_files_by_split(
    counts: Mapping[str, int], compression: Compression, template: str = DEFAULT_TEMPLATE
) -> dict[str, list[str]]:
    """The names of the shards of each split, from their numbers."""
    for split in counts:
        if not is_valid_file_name(split):
            raise OptionError(
                f"split name {split!r} cannot be part of a file name", option="splits", value=split
            )
    files = {
        split: [shard_name(split, number, count, compression, template) for number in range(count)]
        for split, count in counts.items()
    }
    names = [file for of_split in files.values() for file in of_split]
    for file in names:
        if not is_valid_file_name(file):
            raise OptionError(
                f"{option('shard_names')} gives the invalid file name {file!r}",
                option="shard_names",
                value=template,
            )
    if len(set(names)) < len(names):
        raise OptionError(
            f"{option('shard_names')} {template!r} gives several shards the same name",
            option="shard_names",
            value=template,
            expected="{split}, {shard} and {shards}, as in " + repr(DEFAULT_TEMPLATE),
        )
    return files


def is_valid_file_name(name: str) -> bool:
    """Whether a name is visible, stays in its folder, and is valid on all systems."""
    return bool(name) and not name.startswith(".") and _FORBIDDEN.isdisjoint(name)
