"""The samples of a listing in the order of a plan: in memory, or on disk once they outgrow it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.packing.division import DivisibleSamples, Division
from recordsmith.packing.sample_keys import ListingDigest, SampleKeys
from recordsmith.packing.spilled_samples import Places, SpilledTable
from recordsmith.sources import Listing, Sample
from recordsmith.sources.numbered import RelistedSamples, sample_tables

RUN_BYTES = 256 << 20
"""Samples that take more memory are sorted on disk: this much is sorted in memory at a time."""


class OrderedSamples(Protocol):
    """All samples; those of a split are in the order of the plan.

    samples: are accessed by the values of `places`.
    counts, size_bytes: of each split.
    """

    counts: list[int]
    size_bytes: list[int]

    @property
    def samples(self) -> Sequence[Sample]: ...

    def places(self, split: int, start: int, stop: int) -> Sequence[int]:
        """Return where some samples of a split are in `samples`."""
        ...

    def numbers(self, places: Places) -> Int64Array:
        """Return the numbers that some samples have in the listing."""
        ...


class OrderableSamples(DivisibleSamples, Protocol):
    """A table whose samples can be put into an order."""

    def arrange(self, division: Division) -> OrderedSamples:
        """Put the samples of each split into the order of the plan; to be called once."""
        ...


def read_samples(
    listing: Listing, seed: int, *, shuffle: bool, run_bytes: int
) -> tuple[OrderableSamples, bytes]:
    """Read a listing once; return its samples, and a hash of them.

    Args:
        shuffle: whether the order is that of a hash of seed and name, or that of the listing.
        run_bytes: the memory that samples may take.
    """
    digest = ListingDigest()
    spilled: SpilledTable | None = None
    for samples, is_last in sample_tables(listing.samples, run_bytes):
        digest.add(samples)
        keys = SampleKeys(samples, listing.splits, seed)
        if is_last and spilled is None:
            return _TableInMemory(listing, keys, shuffle=shuffle), digest.digest()
        spilled = spilled or SpilledTable(len(listing.splits), run_bytes, shuffle=shuffle)
        spilled.add(keys)
        del samples, keys  # before the next ones are collected
    assert spilled is not None
    return spilled, digest.digest()


class _TableInMemory:
    """All samples: planning takes 28 bytes each."""

    def __init__(self, listing: Listing, keys: SampleKeys, *, shuffle: bool) -> None:
        is_streamed = isinstance(listing.samples, RelistedSamples)
        self._samples = keys.samples if is_streamed else listing.samples
        self._keys = keys
        self._shuffle = shuffle
        self.has_groups = keys.groups is not None
        self.split_counts: Int64Array = np.zeros(0, np.int64)
        if keys.splits is not None:
            self.split_counts = np.bincount(keys.splits, minlength=len(listing.splits))

    def __len__(self) -> int:
        return len(self._keys.samples)

    def portions(self) -> Iterator[_Portion]:
        yield _Portion(self._keys, np.arange(len(self)))

    def arrange(self, division: Division) -> _OrderedInMemory:
        order = (
            _ascending(self._keys.hashes).astype(np.int64, copy=False)
            if self._shuffle
            else np.arange(len(self))
        )
        members = [order]
        if len(division.splits) > 1:
            parts = division.parts(_Portion(self._keys, order))
            members = [order[parts == part] for part in range(len(division.splits))]
        sizes = self._keys.samples.sizes
        return _OrderedInMemory(
            self._samples,
            [len(numbers) for numbers in members],
            [int(sizes[numbers].sum()) for numbers in members],
            members,
        )


def _ascending(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """The places of hashes in ascending order; equal ones in the order of the listing."""
    order = np.argsort(hashes)  # in half the time of a stable one
    ordered = hashes[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(hashes, kind="stable")
    return order


@dataclass(frozen=True)
class _Portion:
    """Samples by number."""

    keys: SampleKeys
    numbers: Int64Array

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        keys = self.keys
        column = {"label": keys.labels, "split": keys.splits, "group": keys.groups}[name]
        assert column is not None
        found: npt.NDArray[Any] = column[self.numbers]
        return found


@dataclass
class _OrderedInMemory:
    """Samples of a listing that can be accessed by number."""

    samples: Sequence[Sample]
    counts: list[int]
    size_bytes: list[int]
    members: list[Int64Array]

    def places(self, split: int, start: int, stop: int) -> array[int]:
        found = array("q")  # yields Python integers faster than NumPy
        numbers = self.members[split][start:stop]
        found.frombytes(np.ascontiguousarray(numbers).view(np.uint8).data)
        return found

    @staticmethod  # so that a plan does not keep `members`
    def numbers(places: Places) -> Int64Array:
        return np.asarray(places, np.int64)
