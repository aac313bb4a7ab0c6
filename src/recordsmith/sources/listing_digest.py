"""Digests of listings: names, sizes, labels and splits of all samples, without reading them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice

from recordsmith.sources.numbered import Names, RowNames, SampleTable, collect
from recordsmith.sources.source import Listing

_NAMES_AT_ONCE = 1024


def source_digest(listing: Listing) -> str:
    """Return a digest of the samples that a source lists, before some are left out."""
    if listing.digest is not None:
        return listing.digest
    samples = collect(listing.samples)
    whole = hashlib.blake2b(samples_digest(samples), digest_size=16)
    if listing.splits and samples.splits is not None:
        names, numbers = samples.splits
        whole.update(repr([*names]).encode("utf-8", "backslashreplace"))
        whole.update(numbers.astype("<i4", copy=False).data)
    return whole.hexdigest()


def samples_digest(samples: SampleTable) -> bytes:
    """Hash the names, sizes and labels of all samples, in the order of the listing."""
    of_names, of_sizes, of_labels = (hashlib.blake2b(digest_size=16) for _ in range(3))
    if isinstance(samples.names, RowNames):
        of_names.update(repr(samples.names.counts).encode())
    else:
        remaining = iter(all_encoded(samples.names))
        while some := list(islice(remaining, _NAMES_AT_ONCE)):
            of_names.update(b"\0".join([*some, b""]))
    of_sizes.update(samples.sizes.astype("<i8", copy=False).data)
    if samples.strata is not None:
        of_labels.update(samples.strata.astype("<i4", copy=False).data)
    return b"".join(part.digest() for part in (of_names, of_sizes, of_labels))


def encoded(name: str) -> bytes:
    """Return a name as bytes, also one that is not UTF-8."""
    return name.encode("utf-8", "surrogateescape")


def all_encoded(names: Sequence[str]) -> Iterable[bytes | memoryview]:
    return names.encoded.views() if isinstance(names, Names) else map(encoded, names)
