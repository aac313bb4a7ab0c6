"""Finds identical and similar images, within and across splits, and copies with other labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.linting.image_hash import (
    LOW_FREQUENCIES,
    SCALE,
    SIDE,
    hashes_of,
    have_detail,
    shapes_of,
)
from recordsmith.linting.lint_report import MAX_EXAMPLES, Findings, LintExample
from recordsmith.linting.near_hashes import find_equal, find_near
from recordsmith.linting.sample_images import place_of
from recordsmith.sources import Sample, SampleReader
from recordsmith.sources.flaws import LintCheck
from recordsmith.words import count

_MAX_SQUARED_DISTANCE = 0.2 * SCALE**2
"""Of similar shapes: copies of photos, also cropped ones, correlate with 0.9 and more."""
_AT_ONCE = 1 << 15
_MEASURED_IMAGES = 2000
_FALSE_SHARE = 0.1  # of the similar images that are reported
_SLOWEST_GROWTH = 4.0  # images that differ in two ways at least


_SPLIT_AGAIN = "Keep such images in one split: remove one of them, or split again."


class DuplicateCheck(LintCheck):
    """What is checked about copies of images."""

    IDENTICAL_ACROSS_SPLITS = (
        "identical-across-splits",
        "error",
        "The same image is in two splits: evaluation is optimistic (leakage).",
        _SPLIT_AGAIN,
    )
    SIMILAR_ACROSS_SPLITS = (
        "similar-across-splits",
        "error",
        "Almost the same image is in two splits: evaluation is optimistic (leakage).",
        f"Preview the pairs. {_SPLIT_AGAIN}",
    )
    IDENTICAL_IMAGES = (
        "identical-images",
        "warning",
        "Duplicates are weighted twice in training, and random splits separate them.",
        "Remove the duplicates.",
    )
    SIMILAR_IMAGES = (
        "similar-images",
        "warning",
        "Images are almost the same, such as frames of a video: random splits separate them.",
        "Preview the pairs; remove one of them, or keep them in one split.",
    )
    ALIKE_IMAGES = (
        "alike-images",
        "note",
        "Different images of the source look so alike that copies cannot be told apart.",
        "Nothing. Identical images are always reported.",
    )
    CONFLICTING_LABELS = (
        "conflicting-labels",
        "error",
        "Copies of an image have different classes or annotations: at least one is wrong.",
        "Remove the wrong one.",
    )


SIMILAR_CHECKS = frozenset(
    (
        DuplicateCheck.SIMILAR_ACROSS_SPLITS,
        DuplicateCheck.SIMILAR_IMAGES,
        DuplicateCheck.ALIKE_IMAGES,
    )
)
"""Those that compare hashes of what images show."""


class ImageFingerprints:
    """What the images of a source look like: 89 bytes for each sample."""

    def __init__(self, sample_count: int) -> None:
        self.contents = np.zeros(sample_count, np.uint64)
        self.annotations = np.zeros(sample_count, np.uint64)
        self.hashes = np.zeros(sample_count, np.uint64)
        self.shapes = np.zeros((sample_count, LOW_FREQUENCIES), np.int8)
        self.is_detailed = np.zeros(sample_count, np.bool_)

    def squared_distances(self, one: Int64Array, other: Int64Array) -> Int64Array:
        """How far apart the shapes of pairs are: int64, (pairs,)."""
        found = np.zeros(len(one), np.int64)
        for start in range(0, len(one), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            apart = self.shapes[one[part]].astype(np.int32) - self.shapes[other[part]]
            found[part] = (apart**2).sum(axis=1)
        return found

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


def check_duplicates(
    prints: ImageFingerprints,
    splits: Int64Array,
    samples: Sequence[Sample],
    reader: SampleReader,
    findings: Findings,
    *,
    similar: bool = True,
) -> None:
    """Add duplicates; `splits` has the number of the split of each sample."""
    (known,) = np.nonzero(prints.contents)
    contents, groups = prints.contents[known], splits[known]
    within, across = find_equal(contents, groups)
    everywhere = find_equal(contents, np.zeros_like(groups)).within
    examples = _Examples(known, samples, reader, findings)
    examples.add(DuplicateCheck.IDENTICAL_ACROSS_SPLITS, across, "the same image as")
    examples.add(
        DuplicateCheck.IDENTICAL_IMAGES, np.where(across < 0, within, -1), "the same image as"
    )
    annotations = prints.annotations[known]
    differs = (
        (everywhere >= 0)
        & (annotations != 0)
        & (annotations[everywhere] != 0)
        & (annotations != annotations[everywhere])
    )
    conflicts = np.where(differs, everywhere, -1)
    examples.add(DuplicateCheck.CONFLICTING_LABELS, conflicts, "other labels than the same image")
    if not similar:
        return
    (chosen,) = np.nonzero((within < 0) & prints.is_detailed[known])  # one for content and split
    across, numbers = across[chosen], known[chosen]

    def are_alike(one: Int64Array, other: Int64Array) -> npt.NDArray[np.bool_]:
        one, other = numbers[one], numbers[other]
        is_alike: npt.NDArray[np.bool_] = (
            prints.squared_distances(one, other) <= _MAX_SQUARED_DISTANCE
        )
        is_new: npt.NDArray[np.bool_] = prints.contents[one] != prints.contents[other]
        return is_alike & is_new

    near = find_near(prints.hashes[numbers], groups[chosen], are_alike)[0]
    distances = [
        np.where(counterparts < 0, np.inf, prints.squared_distances(numbers, numbers[counterparts]))
        for counterparts in near
    ]
    found = np.minimum(*distances)
    found = np.sort(found[np.isfinite(found)])
    limit = _reliable_distance(prints.shapes[numbers], found)
    inside, outside = (
        np.where(apart <= limit, counterparts, -1)
        for apart, counterparts in zip(distances, near, strict=True)
    )
    examples = _Examples(numbers, samples, reader, findings)
    alike = np.where(across < 0, outside, -1)
    examples.add(DuplicateCheck.SIMILAR_ACROSS_SPLITS, alike, "almost the same image as")
    alike = np.where(alike < 0, inside, -1)
    examples.add(DuplicateCheck.SIMILAR_IMAGES, alike, "almost the same image as")
    left_out = int((found > limit).sum())
    if left_out:
        text = (
            f"{count(left_out, 'image')} similar to another one not reported: different images of "
            "this source are as similar"
        )
        findings.add(DuplicateCheck.ALIKE_IMAGES, LintExample("", text))


def _reliable_distance(shapes: npt.NDArray[np.int8], found: npt.NDArray[np.float64]) -> float:
    """Up to which squared distance most of the similar images are copies; -1 if there is none.

    Handwritten digits, icons and other images with few details are similar by chance. How many
    pairs are, is extrapolated from the pairs that are further apart than copies: in independent
    images, the number of pairs is a power of the distance. `found` are the squared distances of
    images with a similar one, in ascending order, up to the maximum.
    """
    if not len(found):
        return -1.0
    total = len(shapes)
    measured = shapes
    if total > _MEASURED_IMAGES:
        rng = np.random.default_rng(0)
        measured = shapes[rng.choice(total, _MEASURED_IMAGES, replace=False)]
    values = measured.astype(np.float32)
    squares = (values**2).sum(axis=1)
    apart = squares[:, np.newaxis] + squares - 2 * (values @ values.T)
    ring, wider_ring = (
        int(((apart > low) & (apart <= 2 * low)).sum()) / 2
        for low in (_MAX_SQUARED_DISTANCE, 2 * _MAX_SQUARED_DISTANCE)
    )
    if not ring:
        return _MAX_SQUARED_DISTANCE
    pairs = total * (total - 1) / (len(values) * (len(values) - 1))
    growth = max(wider_ring / ring, _SLOWEST_GROWTH)  # from one distance to its double
    by_chance = pairs * ring / (growth - 1) * (found / _MAX_SQUARED_DISTANCE) ** np.log2(growth)
    allowed = np.maximum(0.5, _FALSE_SHARE * np.arange(1, len(found) + 1))
    (reliable,) = np.nonzero(by_chance <= allowed)
    return float(found[reliable[-1]]) if len(reliable) else -1.0


class _Examples:
    """Adds findings about pairs of samples; `numbers` are those of the items in the listing."""

    def __init__(
        self,
        numbers: Int64Array,
        samples: Sequence[Sample],
        reader: SampleReader,
        findings: Findings,
    ) -> None:
        self._numbers = numbers
        self._samples = samples
        self._reader = reader
        self._findings = findings

    def add(self, check: LintCheck, counterparts: Int64Array, relation: str) -> None:
        """Add the items that have a counterpart."""
        (items,) = np.nonzero(counterparts >= 0)
        if not len(items):
            return
        examples = []
        for item in islice(items, MAX_EXAMPLES):
            sample = self._samples[int(self._numbers[item])]
            counterpart = self._samples[int(self._numbers[counterparts[item]])]
            (file, place), (other, other_place) = (
                place_of(self._reader, each) for each in (sample, counterpart)
            )
            details = [
                other_place,
                (counterpart.split or "") if sample.split != counterpart.split else "",
            ]
            detail = ", ".join(filter(None, details))
            examples.append(
                LintExample(
                    file,
                    f"{relation} {other}" + (f" ({detail})" if detail else ""),
                    place,
                    other=other,
                )
            )
        self._findings.add(check, *examples, count=len(items))
