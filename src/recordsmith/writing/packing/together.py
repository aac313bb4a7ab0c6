"""Keeps the samples of each group of a file of findings in one split."""

from __future__ import annotations

import numpy as np

from recordsmith.dataset import read_findings
from recordsmith.sources import Coding, Listing, collect, numbers_of_names, source_digest
from recordsmith.support.joining import joined


def found_groups(listing: Listing, path: str) -> Coding:
    """Return the groups of a file of findings, of all its checks; those with a common sample are
    one.

    Raises:
        OptionError: the file is invalid, or not about this state of the source.
    """
    findings = read_findings(path, "together")
    findings.check_source(source_digest(listing))
    samples = collect(listing.samples)
    named = {place.name for place in findings if place.group is not None and place.name is not None}
    numbers = numbers_of_names(samples, named)
    first_of: dict[int, int] = {}  # the first sample of each group of the file
    lowest = joined(
        (first_of.setdefault(place.group, number), number)
        for place in findings
        if place.group is not None and (number := numbers.get(place.name or "")) is not None
    )
    roots = sorted({*lowest.values()})
    group_of = np.full(len(samples), -1, np.int32)
    group_of[[*lowest]] = np.searchsorted(roots, [*lowest.values()])
    return [samples.names[root] for root in roots], group_of
