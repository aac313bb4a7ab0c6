"""Finds groups of samples, such as patients, that are in several splits."""

from __future__ import annotations

from recordsmith.checking.linting.lint_report import Findings, LintExample
from recordsmith.checking.linting.sample_images import place_of
from recordsmith.sources import LintCheck, Listing, SampleTable, divided_groups
from recordsmith.support.buffers import Int64Array


class GroupCheck(LintCheck):
    """What is checked about groups of samples."""

    GROUP_ACROSS_SPLITS = (
        "group-across-splits",
        "error",
        "The same group, such as a patient, is in two splits: evaluation is optimistic (leakage).",
        "Split again, and pass the groups: they then stay whole.",
    )


def check_groups(
    listing: Listing, columns: SampleTable, splits: Int64Array, findings: Findings
) -> None:
    """Add a place for each further split of a group; `splits` has the number of each sample's."""
    names = columns.splits[0] if columns.splits is not None else ()
    for group, (first, *others) in divided_groups(columns.groups, splits):
        for number in others:
            name, row = place_of(listing.reader, columns[number])
            other = place_of(listing.reader, columns[first])[0]
            found = f"group {group!r} in {names[splits[number]]} and {names[splits[first]]}"
            findings.add(GroupCheck.GROUP_ACROSS_SPLITS, LintExample(name, found, row, other))
