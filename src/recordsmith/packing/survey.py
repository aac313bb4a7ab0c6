"""Collects what planning needs of every sample, in one pass over the listing.

One pass, because some listings create samples on demand. Values are stored in arrays, eight bytes
each.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable
from itertools import islice

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.sources import Listing, Sample

_AT_A_TIME = 1024


class Survey:
    """The samples of a listing as columns.

    hashes: uint64; a pseudorandom number for each name, from seed and name only.
    sizes: int64, in bytes.
    labels: int64; -1 without a label.
    splits: int64; the index of the split in the listing; empty if the listing has no splits.
    has_groups: whether any sample belongs to a group.
    """

    def __init__(self, listing: Listing, seed: int) -> None:
        count = len(listing.samples)
        hashes, sizes, labels = (array(code, bytes(8 * count)) for code in "Qqq")
        splits = array("q", bytes(8 * count if listing.splits else 0))
        places = {split: place for place, split in enumerate(listing.splits)}
        self.has_groups = False
        self._digest = hashlib.blake2b(digest_size=16)
        hasher = _Hasher(seed)
        samples = iter(listing.samples)
        number = 0
        while some := list(islice(samples, _AT_A_TIME)):
            self._add_to_digest(some)
            for sample in some:
                hashes[number] = hasher.number(sample.name)
                sizes[number] = sample.size_bytes
                labels[number] = -1 if sample.label is None else sample.label
                if places:
                    splits[number] = places[sample.split or ""]
                if sample.group is not None:
                    self.has_groups = True
                number += 1
        self.hashes: npt.NDArray[np.uint64] = np.frombuffer(hashes, np.uint64)
        self.sizes: Int64Array = np.frombuffer(sizes, np.int64)
        self.labels: Int64Array = np.frombuffer(labels, np.int64)
        self.splits: Int64Array = np.frombuffer(splits, np.int64)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def digest(self) -> bytes:
        """A hash of all names, sizes and labels."""
        return self._digest.digest()

    def _add_to_digest(self, samples: list[Sample]) -> None:
        lines = [f"\n{sample.name}\0{sample.size_bytes}\0{sample.label}" for sample in samples]
        self._digest.update("".join(lines).encode("utf-8", "surrogateescape"))


def hashes_of(names: Iterable[str], count: int, seed: int) -> npt.NDArray[np.uint64]:
    """A pseudorandom number for each name, from seed and name only."""
    return np.fromiter(map(_Hasher(seed).number, names), np.uint64, count)


class _Hasher:
    def __init__(self, seed: int) -> None:
        salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
        self._keyed = hashlib.blake2b(digest_size=16, key=salt)

    def number(self, name: str) -> int:
        digest = self._keyed.copy()
        digest.update(name.encode("utf-8", "surrogateescape"))
        return int.from_bytes(digest.digest()[:8], "big")
