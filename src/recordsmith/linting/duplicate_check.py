"""Finds images with the same pixels, within and across splits, and copies with other labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from recordsmith.linting.lint_report import MAX_EXAMPLES, Findings, LintExample
from recordsmith.linting.sample_images import place_of
from recordsmith.sources import Sample, SampleReader
from recordsmith.sources.flaws import LintCheck


class DuplicateCheck(LintCheck):
    """What is checked about copies of images."""

    IDENTICAL_ACROSS_SPLITS = (
        "identical-across-splits",
        "error",
        "The same image is in two splits: evaluation is optimistic (leakage).",
        "Keep such images in one split: remove one of them, or split again.",
    )
    IDENTICAL_IMAGES = (
        "identical-images",
        "warning",
        "Duplicates are weighted twice in training, and random splits separate them.",
        "Remove the duplicates.",
    )
    CONFLICTING_LABELS = (
        "conflicting-labels",
        "error",
        "Copies of an image have different classes or annotations: at least one is wrong.",
        "Remove the wrong one.",
    )


def check_duplicates(
    contents: Sequence[int],
    annotations: Sequence[int],
    splits: Sequence[int],
    samples: Sequence[Sample],
    reader: SampleReader,
    findings: Findings,
) -> None:
    """Add duplicates.

    `contents` and `annotations` are hashes for each sample, 0 for none; `splits` numbers of splits.
    """
    first: dict[int, int] = {}  # the first sample of each content
    first_in_split: dict[tuple[int, int], int] = {}
    pairs: defaultdict[LintCheck, list[tuple[int, int]]] = defaultdict(list)
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
    for check, items in pairs.items():
        is_conflict = check is DuplicateCheck.CONFLICTING_LABELS
        relation = "other labels than the same image" if is_conflict else "the same image as"
        examples = [
            _example(reader, samples[number], samples[other], relation)
            for number, other in items[:MAX_EXAMPLES]
        ]
        findings.add(check, *examples, count=len(items))


def _example(
    reader: SampleReader, sample: Sample, counterpart: Sample, relation: str
) -> LintExample:
    (file, place), (other, other_place) = place_of(reader, sample), place_of(reader, counterpart)
    split = (counterpart.split or "") if sample.split != counterpart.split else ""
    detail = ", ".join(filter(None, (other_place, split)))
    text = f"{relation} {other}" + (f" ({detail})" if detail else "")
    return LintExample(file, text, place, other=other)
