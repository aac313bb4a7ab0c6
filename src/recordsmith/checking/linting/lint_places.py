"""Writes all places that `lint` finds to a file, also those that belong together, as groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from recordsmith.checking.linting.duplicate_check import DuplicateCheck, Pairs
from recordsmith.checking.linting.episode_check import EpisodeCheck
from recordsmith.checking.linting.group_check import GroupCheck
from recordsmith.checking.linting.lint_report import Findings
from recordsmith.dataset import FindingsWriter
from recordsmith.sources import LintCheck, Listing, SampleTable, Severity, ShardReader, reference_of
from recordsmith.support.buffers import Int64Array
from recordsmith.support.joining import joined

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
        for number, check, severity, example in findings.places:
            if number is not None:
                self._add(first + number, check, severity, example.found, place=example.place)
            elif example.file and not example.other and check in self._selected:
                self._writer.add(check, severity, example.found, place=example.file)

    def add_copies(self, pairs: Pairs, pixels: Sequence[int]) -> None:
        """Write the groups of copies and of similar images: of each split, and across splits.

        Similarity is transitive, also by way of copies: if one split keeps a group across splits,
        nothing of it is in two. `pixels`: the image size of each sample.
        """
        checks = DuplicateCheck
        copies = _joined_groups(
            [*pairs[checks.IDENTICAL_ACROSS_SPLITS], *pairs[checks.IDENTICAL_IMAGES]]
        )
        within = sorted(part for group in copies for part in self._parts(group) if len(part) > 1)
        conflicting = _joined_groups(pairs[checks.CONFLICTING_LABELS], copies)
        self._add_groups(checks.IDENTICAL_ACROSS_SPLITS, self._across(copies), pixels)
        self._add_groups(checks.IDENTICAL_IMAGES, within, pixels)
        self._add_groups(checks.CONFLICTING_LABELS, conflicting, pixels)
        similar = pairs[checks.SIMILAR_IMAGES]
        every = [*pairs[checks.SIMILAR_ACROSS_SPLITS], *similar]
        leaking, alike = (
            self._across(_joined_groups(every, copies)),
            _joined_groups(similar, within),
        )
        about = pixels, _TOGETHER
        self._add_groups(checks.SIMILAR_ACROSS_SPLITS, leaking, *about, dict(every[::-1]))
        self._add_groups(checks.SIMILAR_IMAGES, alike, *about, dict(similar))

    def add_same_episodes(self, digests: Mapping[int, int]) -> None:
        """Write the groups of copies of episodes; `digests` by number of the sample."""
        groups = _equal(digests.items())
        self._add_groups(EpisodeCheck.DUPLICATE_EPISODE, groups, (), "the same as")

    def add_divided_groups(self) -> None:
        """Write the groups of the source that are in several splits."""
        if self._columns.groups is not None:
            groups = self._across(_equal(enumerate((self._columns.groups[1] + 1).tolist())))
            self._add_groups(GroupCheck.GROUP_ACROSS_SPLITS, groups, (), _TOGETHER)

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


def _joined_groups(
    pairs: Sequence[tuple[int, int]], groups: Iterable[Sequence[int]] = ()
) -> list[list[int]]:
    """Join pairs and the groups that share a number with them; in order."""
    lowest = joined([*pairs, *((group[0], number) for group in groups for number in group)])
    found: dict[int, list[int]] = {lowest[number]: [] for number, _ in pairs}
    for number in sorted(lowest):
        if lowest[number] in found:
            found[lowest[number]].append(number)
    return sorted(found.values())


def _equal(keys: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The numbers with equal keys, 0 excepted, of those that occur twice."""
    found = defaultdict[int, list[int]](list)
    for number, key in keys:
        if key:
            found[key].append(number)
    return [group for group in found.values() if len(group) > 1]
