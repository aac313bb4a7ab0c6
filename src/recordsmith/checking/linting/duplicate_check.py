"""Finds identical and similar images, within and across splits, and copies with other labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from recordsmith.checking.linting.lint_report import MAX_EXAMPLES, Findings, LintExample
from recordsmith.checking.linting.sample_images import place_of
from recordsmith.checking.linting.similar_images import SHAPE_BYTES, find_similar
from recordsmith.sources import LintCheck, Sample, SampleReader
from recordsmith.support.buffers import Int64Array
from recordsmith.support.words import count

_BY_FILE = (
    "`--findings FILE` writes the groups; `pack --leave-out @FILE` removes copies, "
    "`pack --together @FILE` keeps each group in one split."
)
_SPLIT_AGAIN = f"Keep such images in one split: {_BY_FILE}"


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
        f"Remove the duplicates: {_BY_FILE}",
    )
    SIMILAR_IMAGES = (
        "similar-images",
        "warning",
        "Images are almost the same, such as frames of a video: random splits separate them.",
        f"Preview the pairs. {_BY_FILE}",
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
"""Those that compare what images show."""

Pairs: TypeAlias = defaultdict[LintCheck, list[tuple[int, int]]]
"""Numbers of a sample and of an earlier one, by check."""

_RELATIONS: Mapping[LintCheck, str] = {
    DuplicateCheck.CONFLICTING_LABELS: "other labels than the same image",
    DuplicateCheck.SIMILAR_ACROSS_SPLITS: "almost the same image as",
    DuplicateCheck.SIMILAR_IMAGES: "almost the same image as",
}


def check_duplicates(
    contents: Sequence[int],
    annotations: Sequence[int],
    splits: Sequence[int],
    samples: Sequence[Sample],
    reader: SampleReader,
    findings: Findings,
) -> tuple[list[int], Pairs]:
    """Add duplicates; return the number of the first sample with each image, and pairs by check.

    `contents` and `annotations` are hashes for each sample, 0 for none; `splits` numbers of splits.
    """
    first: dict[int, int] = {}  # the first sample of each content
    first_in_split: dict[tuple[int, int], int] = {}
    pairs: Pairs = defaultdict(list)
    for number, (content, split) in enumerate(zip(contents, splits, strict=True)):
        if not content:
            continue
        other = first.setdefault(content, number)
        own = first_in_split.setdefault((content, split), number)
        if splits[other] != split:
            pairs[DuplicateCheck.IDENTICAL_ACROSS_SPLITS].append((number, other))
        elif own != number:
            pairs[DuplicateCheck.IDENTICAL_IMAGES].append((number, own))
        if 0 != annotations[number] != annotations[other] != 0:
            pairs[DuplicateCheck.CONFLICTING_LABELS].append((number, other))
    _add(pairs, samples, reader, findings)
    return [*first.values()], pairs


def check_similar(
    shapes: bytearray,
    numbers: Sequence[int],
    splits: Int64Array,
    samples: Sequence[Sample],
    reader: SampleReader,
    findings: Findings,
) -> Pairs:
    """Add similar images; `numbers` are those of samples with different images, `shapes` of all.

    Returns the numbers of each of them and of the earlier one that it is similar to.
    """
    chosen = np.array(numbers, np.int64)
    all_shapes = np.frombuffer(shapes, np.int8).reshape(-1, SHAPE_BYTES)
    (within, across), left_out_count = find_similar(all_shapes[chosen], splits[chosen])
    within[across >= 0] = -1
    pairs: Pairs = defaultdict(list)
    for check, others in (
        (DuplicateCheck.SIMILAR_ACROSS_SPLITS, across),
        (DuplicateCheck.SIMILAR_IMAGES, within),
    ):
        (late,) = np.nonzero(others >= 0)
        pairs[check] = [*zip(chosen[late].tolist(), chosen[others[late]].tolist(), strict=True)]
    _add(pairs, samples, reader, findings)
    if left_out_count:
        text = (
            f"{count(left_out_count, 'image')} similar to another one not reported: different "
            "images of this source are as similar"
        )
        findings.add(DuplicateCheck.ALIKE_IMAGES, LintExample("", text))
    return pairs


def _add(
    pairs: Mapping[LintCheck, Sequence[tuple[int, int]]],
    samples: Sequence[Sample],
    reader: SampleReader,
    findings: Findings,
) -> None:
    for check, items in pairs.items():
        relation = _RELATIONS.get(check, "the same image as")
        examples = [
            _example(reader, samples[number], samples[other], relation)
            for number, other in items[:MAX_EXAMPLES]
        ]
        if examples:
            findings.add(check, *examples, count=len(items))


def _example(
    reader: SampleReader, sample: Sample, counterpart: Sample, relation: str
) -> LintExample:
    (file, place), (other, other_place) = place_of(reader, sample), place_of(reader, counterpart)
    split = (counterpart.split or "") if sample.split != counterpart.split else ""
    detail = ", ".join(filter(None, (other_place, split)))
    text = f"{relation} {other}" + (f" ({detail})" if detail else "")
    return LintExample(file, text, place, other=other)
