"""Writes all places that `lint` finds to a file, also those that belong together, as groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

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

Pairs = Sequence[tuple[int, int]]

_TOGETHER = "in one group with"


class LintPlaces:
    """Writes places of samples, by their numbers in the listing."""

    def __init__(
        self,
        writer: FindingsWriter,
        listing: Listing,
        columns: SampleTable,
        splits: Int64Array,
        selected: Collection[LintCheck],
    ) -> None:
        """`splits`: the number of the split of each sample."""
        self._writer = writer
        self._listing = listing
        self._columns = columns
        self._splits = splits
        self._selected = selected

    def add_all(self, findings: Findings, first: int = 0) -> None:
        """Write the places that were collected; `first` is the number of their first sample."""
        for number, check, severity, example in findings.places or ():
            if number is not None:
                self._add(first + number, check, severity, example.found, place=example.place)
            elif example.file and not example.other and check in self._selected:
                self._writer.add(check, severity, example.found, place=example.file)
        if findings.places:
            findings.places.clear()

    def add_copies(
        self,
        contents: Sequence[int],
        annotations: Sequence[int],
        pixels: Sequence[int],
        pairs: Mapping[LintCheck, Pairs],
    ) -> None:
        """Write the groups of copies and of similar images: of each split, and across splits.

        Similarity is transitive, also by way of copies: if one split keeps a group across splits,
        nothing of it is in two.

        Args:
            contents, annotations, pixels: hashes and the image size of each sample; 0 if unknown.
            pairs: numbers of similar samples, by check.
        """
        copies = _equal(np.frombuffer(contents, np.uint64))  # type: ignore[call-overload]
        by_split = [self._parts(group) for group in copies]
        across = [group for group, parts in zip(copies, by_split, strict=True) if len(parts) > 1]
        within = sorted(part for parts in by_split for part in parts if len(part) > 1)
        conflicting = [
            group
            for group in copies
            if annotations[group[0]] and len({annotations[number] for number in group} - {0}) > 1
        ]
        self._add_groups(DuplicateCheck.IDENTICAL_ACROSS_SPLITS, across, pixels)
        self._add_groups(DuplicateCheck.IDENTICAL_IMAGES, within, pixels)
        self._add_groups(DuplicateCheck.CONFLICTING_LABELS, conflicting, pixels)
        in_split = pairs.get(DuplicateCheck.SIMILAR_IMAGES, ())
        similar = [*pairs.get(DuplicateCheck.SIMILAR_ACROSS_SPLITS, ()), *in_split]
        leaking = self._across(_joined_groups(similar, copies))
        about = pixels, _TOGETHER
        others = dict(similar[::-1])
        self._add_groups(DuplicateCheck.SIMILAR_ACROSS_SPLITS, leaking, *about, others)
        alike = _joined_groups(in_split, within)
        self._add_groups(DuplicateCheck.SIMILAR_IMAGES, alike, *about, dict(in_split))

    def add_same_episodes(self, digests: Mapping[int, int]) -> None:
        """Write the groups of copies of episodes; `digests` by number of the sample."""
        numbers, hashes = [*digests], np.array([*digests.values()], np.uint64)
        groups = [[numbers[place] for place in group] for group in _equal(hashes)]
        self._add_groups(EpisodeCheck.DUPLICATE_EPISODE, groups, (), "the same as")

    def add_divided_groups(self) -> None:
        """Write the groups of the source that are in several splits."""
        if self._columns.groups is not None:
            groups = _equal((self._columns.groups[1] + 1).astype(np.uint64))
            self._add_groups(GroupCheck.GROUP_ACROSS_SPLITS, self._across(groups), (), _TOGETHER)

    def _add(
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

    def _add_groups(
        self,
        check: LintCheck,
        groups: Iterable[Sequence[int]],
        pixels: Sequence[int] = (),
        relation: str = "the same image as",
        similar: Mapping[int, int] | None = None,
    ) -> None:
        """Write all members of groups; `similar` has the one that a member is similar to."""
        for members in groups if check in self._selected else ():
            first, group = members[0], self._writer.new_group()
            for number in members:
                other = (similar or {}).get(number)
                found = f"{relation} {self._columns.names[first]}"
                if number == first:
                    found = f"the first of {len(members):,}"
                elif other is not None:
                    found = f"almost the same image as {self._columns.names[other]}"
                size = pixels[number] if len(pixels) else None
                self._add(number, check, check.severity, found, group=group, pixels=size)

    def _parts(self, group: Sequence[int]) -> list[list[int]]:
        """The members of a group in each split."""
        parts = defaultdict[int, list[int]](list)
        for number, split in zip(group, self._splits[group].tolist(), strict=True):
            parts[split].append(number)
        return [*parts.values()]

    def _across(self, groups: Iterable[list[int]]) -> list[list[int]]:
        return [group for group in groups if len(self._parts(group)) > 1]


def _joined_groups(pairs: Pairs, groups: Iterable[Sequence[int]]) -> list[list[int]]:
    """Join pairs and the groups that share a number with them; in order."""
    lowest = joined([*pairs, *((group[0], number) for group in groups for number in group)])
    found: dict[int, list[int]] = {lowest[number]: [] for number in sorted({a for a, _ in pairs})}
    for number in sorted(lowest):
        if lowest[number] in found:
            found[lowest[number]].append(number)
    return sorted(found.values())


def _equal(hashes: npt.NDArray[np.uint64]) -> list[list[int]]:
    """The numbers of equal hashes, 0 excepted, of those that occur twice; by the first number."""
    _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    members = np.flatnonzero((counts[inverse] > 1) & (hashes > 0))
    members = members[np.argsort(hashes[members], kind="stable")]
    starts = np.flatnonzero(np.diff(hashes[members])) + 1
    return sorted(group.tolist() for group in np.split(members, starts) if len(group))
