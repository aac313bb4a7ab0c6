"""Finds likely problems in the statistics of a dataset, and suggests what to do about them.

Each finding comes from a rule over finished statistics. Rules must not fire on good datasets:
readers who see many false alarms ignore the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.shard_summaries import ShardSummary
from recordsmith.examining.stats.box_stats import BoxStats
from recordsmith.examining.stats.class_counts import ClassStats
from recordsmith.examining.stats.duplicates import DuplicateStats
from recordsmith.examining.stats.feature_stats import FeatureStats
from recordsmith.examining.stats.findings.class_findings import (
    contradictions,
    imbalance,
    wrong_classes,
)
from recordsmith.examining.stats.findings.dataset_findings import leakage, odd_shards, repeated
from recordsmith.examining.stats.findings.feature_findings import useless_values, wrong_values
from recordsmith.examining.stats.findings.finding import Finding
from recordsmith.examining.stats.findings.image_findings import odd_boxes, odd_masks
from recordsmith.examining.stats.label_texts import TEXT_OF_LABEL
from recordsmith.examining.stats.mask_stats import MaskStats

__all__ = ["Finding", "make_findings"]


def make_findings(
    shards: Sequence[ShardSummary],
    sections: Mapping[str, Mapping[str, FeatureStats]],
    class_names: ClassNames | None,
    classes: Mapping[str, ClassStats],
    label_texts: Mapping[str, Mapping[tuple[int, str], int]],
    masks: Mapping[str, MaskStats],
    boxes: BoxStats | None,
    duplicates: Sequence[DuplicateStats],
) -> Iterator[Finding]:
    """Yield findings, those that harm training most first.

    Args:
        label_texts: for each label feature, how often each pair of label and text occurs.
    """
    of_records = [found.shared for found in duplicates if found.feature is None]
    for found in duplicates:
        if found.feature is None or found.shared not in of_records:  # the same records
            yield from leakage(found)
    texts = {TEXT_OF_LABEL[key] for key in TEXT_OF_LABEL.keys() & classes.keys()}
    classes = {key: counted for key, counted in classes.items() if key not in texts}
    for key, counted in classes.items():
        yield from wrong_classes(key, counted, class_names)
    for key, pairs in label_texts.items():
        yield from contradictions(key, pairs, class_names)
    for section in sections.values():
        for key, feature in section.items():
            yield from wrong_values(key, feature)
    for key, found_masks in masks.items():
        yield from odd_masks(key, found_masks)
    if boxes is not None:
        yield from odd_boxes(boxes)
    for found in duplicates:
        yield from repeated(found)
    for key, counted in classes.items():
        yield from imbalance(key, counted)
    for section in sections.values():
        for key, feature in section.items():
            yield from useless_values(key, feature)
    yield from odd_shards(shards)
