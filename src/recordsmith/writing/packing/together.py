"""Keeps samples together in one split that a file of findings puts into groups."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recordsmith.dataset import read_findings
from recordsmith.sources import Coding, Listing, SampleTable, numbers_of_names, source_digest
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.joining import joined
from recordsmith.support.words import count


def join_groups(listing: Listing, samples: SampleTable, path: str | None) -> Coding | None:
    """Return the groups of the source, joined where a group of a file of findings joins them.

    Args:
        path: of the file; None for the groups of the source.
    """
    if path is None:
        return samples.groups
    findings = read_findings(path, "together")
    findings.check_source(source_digest(listing))
    named = {place.name for place in findings if place.group is not None and place.name is not None}
    numbers = numbers_of_names(samples, named)
    first_of: dict[int, int] = {}  # the first sample of each group of the file
    pairs = [
        (first_of.setdefault(place.group, number), number)
        for place in findings
        if place.group is not None and (number := numbers.get(place.name or "")) is not None
    ]
    if samples.groups is not None:  # the members of a group of the source that touches one of these
        group_of = samples.groups[1]
        touched = np.unique([group_of[number] for number in numbers.values()])
        (members,) = np.nonzero(np.isin(group_of, touched[touched >= 0]))
        first = {int(group_of[number]): number for number in members[::-1].tolist()}
        pairs += [(first[int(group_of[number])], number) for number in members.tolist()]
    return _coded(samples, joined(pairs))


def _coded(samples: SampleTable, lowest: Mapping[int, int]) -> Coding | None:
    if samples.groups is None:
        names, group_of = list[str](), np.full(len(samples), -1, np.int32)
    else:
        names, group_of = list(samples.groups[0]), samples.groups[1].copy()
    code_of: dict[int, int] = {}
    for number, root in lowest.items():
        if root not in code_of:
            code_of[root] = len(names)
            names.append(f"\0{samples.names[root]}")  # unlike the groups of a source
        group_of[number] = code_of[root]
    return names, group_of


def check_together(
    groups: Coding | None, orders: Mapping[str, Int64Array], path: str | None
) -> None:
    """Raise OptionError if splits of the source separate a group."""
    if path is None or groups is None:
        return
    split_of = np.full(len(groups[1]), -1)
    for number, order in enumerate(orders.values()):
        split_of[order] = number
    pairs = np.unique(np.stack([groups[1], split_of])[:, groups[1] >= 0], axis=1)
    divided = int((pairs[0, 1:] == pairs[0, :-1]).sum())
    if divided:
        raise OptionError(
            f"the splits of the source separate {count(divided, 'group')} of {path}",
            option="together",
            value=path,
            expected="groups of samples in one split",
            remedy=f"Divide the splits again with {option('splits')} and {option('resplit')}, or "
            f"leave the copies out with {option('leave_out', '@' + path.removeprefix('@'))}.",
        )
