"""What planning needs of the samples of a listing: their places in the order, and in which groups.

The place of a sample is a hash of seed and name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.sources.numbered import Names, RowNames, SampleTable

_AT_ONCE = 1024


class SampleKeys:
    """Some samples of a listing as columns.

    samples: the samples.
    hashes: uint64; a pseudorandom number for each name, from seed and name only.
    splits: int64; the index of the split in the listing; None if the listing has no splits.
    groups: uint64; a pseudorandom number for each group, and for each sample without one; None if
        no sample belongs to a group.
    """

    def __init__(self, samples: SampleTable, splits: Sequence[str], seed: int) -> None:
        """`splits`: of the listing."""
        number_of = _Hasher(seed).number
        names = samples.names
        self.samples = samples
        self.hashes = (
            names.hashes(lambda name: number_of(_encoded(name)))
            if isinstance(names, RowNames)
            else np.fromiter(map(number_of, _all_encoded(names)), np.uint64, len(names))
        )
        self.splits: Int64Array | None = None
        if splits:
            assert samples.splits is not None
            places = {split: place for place, split in enumerate(splits)}
            table = np.array([places[split] for split in samples.splits[0]], np.int64)
            self.splits = table[samples.splits[1]]
        self.groups: npt.NDArray[np.uint64] | None = None
        if samples.groups is not None and (samples.groups[1] >= 0).any():
            values, numbers = samples.groups
            hashes = map(number_of, map(_encoded, values))
            of_value = np.fromiter(hashes, np.uint64, len(values))
            self.groups = np.where(numbers >= 0, of_value[numbers], ~self.hashes)

    @property
    def labels(self) -> npt.NDArray[np.int32]:
        """int32, -1 without a label."""
        labels = self.samples.labels
        return np.full(len(self.samples), -1, np.int32) if labels is None else labels


class ListingDigest:
    """A hash of the names, sizes and labels of all samples, in the order of the listing."""

    def __init__(self) -> None:
        self._parts = [hashlib.blake2b(digest_size=16) for _ in range(3)]

    def add(self, samples: SampleTable) -> None:
        """Add the next samples."""
        of_names, of_sizes, of_labels = self._parts
        if isinstance(samples.names, RowNames):
            of_names.update(repr(samples.names.counts).encode())
        else:
            remaining = iter(_all_encoded(samples.names))
            while some := list(islice(remaining, _AT_ONCE)):
                of_names.update(b"\0".join([*some, b""]))
        of_sizes.update(samples.sizes.astype("<i8", copy=False).data)
        if samples.labels is not None:
            of_labels.update(samples.labels.astype("<i4", copy=False).data)

    def digest(self) -> bytes:
        return b"".join(part.digest() for part in self._parts)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _all_encoded(names: Sequence[str]) -> Iterable[bytes | memoryview]:
    return names.encoded.views() if isinstance(names, Names) else map(_encoded, names)


class _Hasher:
    def __init__(self, seed: int) -> None:
        salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
        self._keyed = hashlib.blake2b(digest_size=16, key=salt)

    def number(self, name: bytes | memoryview) -> int:
        digest = self._keyed.copy()
        digest.update(name)
        return int.from_bytes(digest.digest()[:8], "big")
