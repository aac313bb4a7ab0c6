"""Finds identical and similar images, within and across splits, and conflicts of their labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.linting.explanations import Severity
from recordsmith.linting.image_hash import (
    LOW_FREQUENCIES,
    SCALE,
    SIDE,
    hashes_of,
    have_detail,
    shapes_of,
)
from recordsmith.linting.lint_report import MOST_EXAMPLES, Findings, LintExample
from recordsmith.linting.near_hashes import find_equal, find_near
from recordsmith.sources import Sample
from recordsmith.sources.flaws import Check

_SHARE_APART = 0.1  # copies of photos, also cropped ones, correlate with 0.9 and more
_LEAST_VARIANCE = 0.05
_FEWEST_TO_MEASURE = 30
_AT_ONCE = 1 << 15


class Looks:
    """What the images of a source look like: 89 bytes for each sample."""

    def __init__(self, sample_count: int) -> None:
        self.contents = np.zeros(sample_count, np.uint64)
        self.annotations = np.zeros(sample_count, np.uint64)
        self.hashes = np.zeros(sample_count, np.uint64)
        self.shapes = np.zeros((sample_count, LOW_FREQUENCIES), np.int8)
        self.is_detailed = np.zeros(sample_count, np.bool_)

    def put(
        self,
        start: int,
        contents: Sequence[int],
        annotations: Sequence[int],
        frequencies: Sequence[npt.NDArray[np.float32]],
    ) -> None:
        """Add consecutive samples."""
        part = slice(start, start + len(contents))
        self.contents[part] = contents
        self.annotations[part] = annotations
        together = np.stack(frequencies).reshape(-1, SIDE, SIDE)
        self.hashes[part] = hashes_of(together)
        self.shapes[part] = shapes_of(together)
        self.is_detailed[part] = have_detail(together)

    def most_apart(self) -> float:
        """How far apart the shapes of similar images may be, squared.

        A share of the usual distance: faces or X-rays of different people, which are all alike, are
        less far apart than copies of photos.
        """
        (detailed,) = np.nonzero(self.is_detailed)
        count = len(detailed)
        if count < _FEWEST_TO_MEASURE:
            return 2 * _SHARE_APART * SCALE**2
        total, squares = np.zeros(LOW_FREQUENCIES), 0.0
        for start in range(0, count, _AT_ONCE):
            part = self.shapes[detailed[start : start + _AT_ONCE]].astype(np.float64)
            total += part.sum(axis=0)
            squares += float((part**2).sum())
        variance = squares / count - float(((total / count) ** 2).sum())
        return 2 * _SHARE_APART * max(variance, _LEAST_VARIANCE * SCALE**2)


def check_duplicates(
    looks: Looks,
    splits: Int64Array,
    samples: Sequence[Sample],
    labels: npt.NDArray[np.int32] | None,
    findings: Findings,
) -> None:
    """Add duplicates.

    Args:
        splits: the number of the split of each sample.
        samples: of the listing.
        labels: the class of each image, or -1; None without classes of images.
    """
    (known,) = np.nonzero(looks.contents)
    contents, groups = looks.contents[known], splits[known]
    within, across = find_equal(contents, groups)
    everywhere = find_equal(contents, np.zeros_like(groups)).within
    examples = _Examples(known, samples, findings)
    examples.add(Check.IDENTICAL_ACROSS_SPLITS, across, "the same file as")
    examples.add(Check.IDENTICAL_IMAGES, np.where(across < 0, within, -1), "the same file as")
    annotations = looks.annotations[known]
    differs = (
        (everywhere >= 0)
        & (annotations != 0)
        & (annotations[everywhere] != 0)
        & (annotations != annotations[everywhere])
    )
    conflicts = np.where(differs, everywhere, -1)
    examples.add(Check.CONFLICTING_LABELS, conflicts, "other labels than the same image")
    (chosen,) = np.nonzero((within < 0) & looks.is_detailed[known])  # one for content and split
    shapes, most_apart = looks.shapes[known[chosen]], looks.most_apart()

    def are_alike(one: Int64Array, other: Int64Array) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(one), np.bool_)
        for start in range(0, len(one), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            apart = shapes[one[part]].astype(np.int32) - shapes[other[part]]
            is_new = contents[chosen[one[part]]] != contents[chosen[other[part]]]
            found[part] = is_new & ((apart**2).sum(axis=1) <= most_apart)
        return found

    near = find_near(looks.hashes[known][chosen], groups[chosen], are_alike).twins
    examples = _Examples(known[chosen], samples, findings)
    if labels is not None:
        own = labels[known][chosen]
        twin = np.where(near.within < 0, near.across, near.within)
        differs = (twin >= 0) & (own >= 0) & (own[twin] >= 0) & (own != own[twin])
        conflicts = np.where(differs, twin, -1)
        relation = "another class than almost the same image"
        examples.add(Check.CONFLICTING_LABELS, conflicts, relation, Severity.WARNING)
    alike = np.where(across[chosen] < 0, near.across, -1)
    examples.add(Check.SIMILAR_ACROSS_SPLITS, alike, "almost the same image as")
    alike = np.where(alike < 0, near.within, -1)
    examples.add(Check.SIMILAR_IMAGES, alike, "almost the same image as")


class _Examples:
    """Adds findings about pairs of samples; `numbers` are those of the items in the listing."""

    def __init__(self, numbers: Int64Array, samples: Sequence[Sample], findings: Findings) -> None:
        self._numbers = numbers
        self._samples = samples
        self._findings = findings

    def add(
        self,
        check: Check,
        twins: Int64Array,
        relation: str,
        severity: Severity | None = None,
    ) -> None:
        """Add the items that have a twin."""
        (items,) = np.nonzero(twins >= 0)
        if not len(items):
            return
        examples = []
        for item in islice(items, MOST_EXAMPLES):
            sample = self._samples[int(self._numbers[item])]
            twin = self._samples[int(self._numbers[twins[item]])]
            places = [f" ({each.split})" if each.split else "" for each in (sample, twin)]
            examples.append(
                LintExample(
                    sample.name,
                    f"{relation} {twin.name}{places[1] if sample.split != twin.split else ''}",
                    other=twin.name,
                )
            )
        self._findings.add(check, *examples, severity=severity, count=len(items))
