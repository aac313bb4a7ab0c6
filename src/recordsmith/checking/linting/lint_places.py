"""Writes all places that `lint` finds to a file, also those that belong together, as groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.checking.linting.duplicate_check import DuplicateCheck
from recordsmith.checking.linting.episode_check import EpisodeCheck
from recordsmith.checking.linting.group_check import GroupCheck
from recordsmith.checking.linting.lint_report import Findings
from recordsmith.dataset import FindingsWriter
from recordsmith.sources import LintCheck, Listing, SampleTable, Severity, ShardReader, reference_of
from recordsmith.support.buffers import Int64Array
from recordsmith.support.joining import joined

Pairs: TypeAlias = Mapping[LintCheck, Sequence[tuple[int, int]]]
"""Numbers of a sample and of an earlier one, by check."""

_TOGETHER = "in one group with"


class LintPlaces:
    """Writes places of samples, by their numbers in the listing."""

    def __init__(
        self,
        writer: FindingsWriter,
        listing: Listing,
        columns: SampleTable,
        selected: Collection[LintCheck],
    ) -> None:
        self._writer = writer
        self._listing = listing
        self._columns = columns
        self._selected = selected

    def add_all(self, findings: Findings, first: int = 0) -> None:
        """Write the places that were collected; `first` is the number of their first sample."""
        for number, check, severity, example in findings.places or ():
            if number is not None:
                self.add(first + number, check, severity, example.found, place=example.place)
            elif example.file and not example.other and check in self._selected:
                self._writer.add(check, severity, example.found, place=example.file)
        if findings.places:
            findings.places.clear()

    def add(
        self, number: int, check: LintCheck, severity: Severity, found: str, **more: Any
    ) -> None:
        """Write the place of one sample; `more` as in `FindingsWriter.add`."""
        if check not in self._selected:
            return
        sample = self._columns[number]
        split, position = sample.split, None
        if self._writer.positions is not None and isinstance(self._listing.reader, ShardReader):
            reference = reference_of(sample)
            path = self._listing.reader.root / reference["file"]
            position, split = self._writer.positions.find(path, reference["row"])
        self._writer.add(
            check, severity, found, name=sample.name, split=split, position=position, **more
        )

    def add_groups(
        self,
        check: LintCheck,
        groups: Iterable[Sequence[int]],
        pixels: Sequence[int] = (),
        relation: str = "the same image as",
        similar: Mapping[int, int] | None = None,
    ) -> None:
        """Write all members of groups; `similar` has the one that a member is similar to."""
        for members in groups if check in self._selected else ():
            first, size, group = members[0], len(members), self._writer.new_group()
            for number in members:
                other = (similar or {}).get(number)
                found = f"{relation} {self._columns.names[first]}"
                if number == first:
                    found = f"the first of {size:,}"
                elif other is not None:
                    found = f"almost the same image as {self._columns.names[other]}"
                more = {"group": group, "pixels": pixels[number] if len(pixels) else None}
                self.add(number, check, check.severity, found, **more)


def add_duplicates(
    places: LintPlaces,
    contents: Sequence[int],
    annotations: Sequence[int],
    splits: Int64Array,
    pixels: Sequence[int],
) -> None:
    """Write the groups of copies: all samples with an image, and those of one split."""
    hashes = np.frombuffer(contents, np.uint64)  # type: ignore[call-overload]
    labels = np.frombuffer(annotations, np.uint64)  # type: ignore[call-overload]
    by_content = [*_equal(hashes)]
    across = (group for group in by_content if len(np.unique(splits[group])) > 1)
    places.add_groups(DuplicateCheck.IDENTICAL_ACROSS_SPLITS, map(_listed, across), pixels)
    within = sorted(
        (
            part
            for group in by_content
            for split in np.unique(splits[group])
            if len(part := group[splits[group] == split].tolist()) > 1
        ),
    )
    places.add_groups(DuplicateCheck.IDENTICAL_IMAGES, within, pixels)
    conflicting = (
        group
        for group in by_content
        if labels[group[0]] and ((labels[group] != labels[group[0]]) & (labels[group] > 0)).any()
    )
    places.add_groups(DuplicateCheck.CONFLICTING_LABELS, map(_listed, conflicting), pixels)


def add_similar(
    places: LintPlaces,
    pairs: Pairs,
    contents: Sequence[int],
    splits: Int64Array,
    pixels: Sequence[int],
) -> None:
    """Write the groups of similar images, and their copies: transitively, in one split or all.

    Those of all splits also have images that are similar only to an image with a copy in another
    split: if one split keeps a group, nothing of it is in two.
    """
    hashes = np.frombuffer(contents, np.uint64)  # type: ignore[call-overload]
    across = pairs.get(DuplicateCheck.SIMILAR_ACROSS_SPLITS, ())
    within = pairs.get(DuplicateCheck.SIMILAR_IMAGES, ())
    similar = [*across, *within]
    copies = [(number, int(group[0])) for group in _equal(hashes) for number in group[1:].tolist()]
    in_split = [(number, other) for number, other in copies if splits[number] == splits[other]]
    leaking = (group for group in _components(similar, copies) if len(np.unique(splits[group])) > 1)
    about = pixels, _TOGETHER
    places.add_groups(DuplicateCheck.SIMILAR_ACROSS_SPLITS, leaking, *about, dict(similar[::-1]))
    alike = _components(within, in_split)
    places.add_groups(DuplicateCheck.SIMILAR_IMAGES, alike, *about, dict(within))


def add_same_episodes(places: LintPlaces, digests: Mapping[int, int]) -> None:
    """Write the groups of copies of episodes; `digests` by number of the sample."""
    by_digest: defaultdict[int, list[int]] = defaultdict(list)
    for number, digest in digests.items():
        if digest:
            by_digest[digest].append(number)
    groups = (group for group in by_digest.values() if len(group) > 1)
    places.add_groups(EpisodeCheck.DUPLICATE_EPISODE, groups, (), "the same as")


def add_divided_groups(places: LintPlaces, columns: SampleTable, splits: Int64Array) -> None:
    """Write the groups of the source that are in several splits."""
    if columns.groups is not None and columns.splits is not None:
        by_group = _equal((columns.groups[1] + 1).astype(np.uint64))
        divided = (group.tolist() for group in by_group if len(np.unique(splits[group])) > 1)
        places.add_groups(GroupCheck.GROUP_ACROSS_SPLITS, divided, (), _TOGETHER)


def _components(
    own: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> Iterator[list[int]]:
    """The groups of numbers that pairs join, in order, of those that have a pair of `own`."""
    lowest = joined(chain(own, others)) if own else {}
    groups: dict[int, list[int]] = {root: [] for root in sorted({lowest[a] for a, _ in own})}
    for number in sorted(lowest):
        if (group := groups.get(lowest[number])) is not None:
            group.append(number)
    return iter(groups.values())


def _equal(hashes: npt.NDArray[np.uint64]) -> Iterator[Int64Array]:
    """The numbers of equal hashes that are not 0, of those that occur twice, by first number."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    ends = np.append(starts[1:], len(ordered))
    is_group = (ends - starts > 1) & (ordered[starts] > 0) if len(ordered) else np.zeros(0, bool)
    starts, ends = starts[is_group], ends[is_group]
    for k in np.argsort(order[starts], kind="stable").tolist():
        yield order[starts[k] : ends[k]]


def _listed(group: Int64Array) -> list[int]:
    numbers: list[int] = group.tolist()
    return numbers
