"""Leaves out the samples of a listing that a file of findings names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recordsmith.dataset import FindingsFile, chosen
from recordsmith.sources.listing_digest import source_digest
from recordsmith.sources.numbered import SampleTable, collect
from recordsmith.sources.source import ListedSource, Listing, Source
from recordsmith.support.errors import SourceError, option
from recordsmith.support.words import count


class FoundSamples(NamedTuple):
    """The samples of a file of findings that are left out; see `chosen`."""

    findings: FindingsFile
    checks: Sequence[str]
    keep: str


class LeavingOut(ListedSource):
    """A source without the samples that files of findings choose."""

    def __init__(self, source: Source, found: Sequence[FoundSamples]) -> None:
        self._source = source
        self._found = found

    def list_samples(self) -> Listing:
        listing = self._source.list_samples()
        for found in self._found:
            listing = _leave_out(listing, found)
        return listing


def numbers_of_names(samples: SampleTable, names: Collection[str]) -> dict[str, int]:
    """Return the numbers of the samples with some names, as far as there are any."""
    return {name: number for number, name in enumerate(samples.names) if name in names}


def _leave_out(listing: Listing, found: FoundSamples) -> Listing:
    """The listing without the samples of a file; it keeps the digest of the whole one."""
    findings, checks, keep = found
    digest = source_digest(listing)
    findings.check_source(digest)
    names = {place.name for _, place in chosen(findings, checks, keep) if place.name is not None}
    samples = collect(listing.samples)
    left_out = numbers_of_names(samples, names)
    if len(left_out) == len(samples):
        raise SourceError(
            f"{findings.location} leaves all {len(samples):,} samples out",
            remedy=f"Choose fewer with {option('checks')}, or keep one of each group.",
        )
    file = f"@{findings.location.name}"
    notices = list(listing.notices)
    known: Iterable[str] = ()
    if listing.account is not None:
        listing.account.requested += (file,)
        known = listing.account.leave_samples(left_out, f"left out by {file}")
        notices += [line.notice() for line in listing.account.left_out if file in line.what]
    if (rest := len(left_out) - len({*known})) or not left_out:
        notices.append(f"{count(rest, 'sample')} left out by {file}")
    kept = samples.subset(np.delete(np.arange(len(samples)), [*left_out.values()]))
    if samples.splits is not None and kept.splits is not None:
        lost = {*samples.splits[1].tolist()} - {*kept.splits[1].tolist()}
        notices += [
            f"split {samples.splits[0][number]!r} has no samples: {file} leaves all of them out"
            for number in sorted(lost)
        ]
    return replace(listing, samples=kept, notices=notices, digest=digest)
