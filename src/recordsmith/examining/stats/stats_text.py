"""Texts about statistics that the terminal and the page share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recordsmith.examining.stats.box_stats import COCO_SIDES, BoxStats
from recordsmith.examining.stats.bytes_stats import BytesStats
from recordsmith.examining.stats.class_counts import ClassCount, ClassStats
from recordsmith.examining.stats.findings import Finding
from recordsmith.examining.stats.label_texts import TEXT_OF_LABEL
from recordsmith.examining.stats.mask_stats import MaskStats
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.examining.stats.places import Place
from recordsmith.examining.stats.record_survey import MOST_FEATURES, MOST_LEFT_OUT
from recordsmith.examining.stats.stats_report import StatsReport
from recordsmith.words import count

_PAYLOADS = {  # singular and plural
    "Example": ("Example", "Examples"),
    "SequenceExample": ("SequenceExample", "SequenceExamples"),
    "ELWC": ("ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("TensorBoard event", "TensorBoard events"),
    "other": ("record that is not an Example", "records that are not Examples"),
}
_FOREIGN = ("Event", "other")
_LARGE = 10**10


class FindingGroup(NamedTuple):
    """Findings with the same kind and text on several features.

    features: the first features; empty if the finding is about the dataset.
    more: the number of further features.
    places: records that show the problem.
    """

    kind: str
    features: tuple[str, ...]
    more: int
    text: str
    places: tuple[Place, ...] = ()


def payloads_text(report: StatsReport) -> str:
    """Describe the message types: "Examples", or "12 Examples, 1 TensorBoard event"."""
    if len(report.payloads) == 1:
        ((payload, n),) = report.payloads.items()
        return _PAYLOADS[payload][n != 1]
    return ", ".join(count(n, *_PAYLOADS[payload]) for payload, n in report.payloads.items())


def heading_of(section: str) -> tuple[str, str]:
    """Return (what a section lists, what its counts refer to)."""
    return {
        "features": ("feature", "records"),
        "feature_lists": ("feature list", "records"),
        "context": ("feature of the context", "records"),
        "examples": ("feature of the Examples", "Examples"),
    }[section]


def left_out_text(report: StatsReport) -> str | None:
    """Describe features without statistics; None if all have statistics."""
    if not report.left_out:
        return None
    least = "at least " if report.left_out >= MOST_LEFT_OUT else ""
    have = "has" if report.left_out == 1 else "have"
    return (
        f"{least}{count(report.left_out, 'more feature')} {have} no statistics: only the "
        f"first {MOST_FEATURES:,} get them. If feature names contain values, such as an id, "
        "store these in one feature with the same name in all records."
    )


def distinct_text(values: NumberStats | BytesStats) -> str:
    """Return the number of different values; NaN and infinities are not among them."""
    text = f"about {values.distinct:,}" if values.distinct_error else f"{values.distinct:,}"
    is_finite = isinstance(values, BytesStats) or not (values.nan or values.infinite)
    return text if is_finite else f"{text} finite"


def span_text(numbers: NumberStats) -> str:
    """Return the range of whole numbers: "5", or "0 to 12"."""
    low, high = numbers.min or 0, numbers.max or 0
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def number_text(value: float | None) -> str:
    """Format a number with few digits; whole ones with all, unless they are very large."""
    if value is None:
        return ""
    if isinstance(value, int) and abs(value) < _LARGE:
        return f"{value:,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < _LARGE else f"{value:.4g}"


def different_classes(report: StatsReport) -> dict[str, ClassStats]:
    """Return the classes of all labels, except texts that only repeat the names of the labels."""
    repeated = set()
    for key, text_key in TEXT_OF_LABEL.items():
        if {key, text_key} <= report.classes.keys():
            labels, texts = report.classes[key].splits, report.classes[text_key].splits
            if _named_counts(labels) == _named_counts(texts):
                repeated.add(text_key)
    return {key: found for key, found in report.classes.items() if key not in repeated}


def _named_counts(splits: Mapping[str, Sequence[ClassCount]]) -> dict[str, Counter[object]]:
    return {
        split: Counter({found.name or found.label: found.count for found in counts})
        for split, counts in splits.items()
    }


def masks_text(masks: MaskStats) -> str:
    """Describe how many masks were decoded: "12 masks", or "9 of 5,000 masks, sampled"."""
    if masks.sampled == masks.count:
        return count(masks.count, "mask")
    return f"{masks.sampled:,} of {masks.count:,} masks, sampled"


def sizes_text(boxes: BoxStats) -> str | None:
    """Describe the sizes of boxes in pixels; None if they are unknown."""
    if not boxes.small + boxes.medium + boxes.large:
        return None
    low, high = COCO_SIDES
    return (
        f"{boxes.small:,} small (below {low} x {low} pixels), {boxes.medium:,} medium (below "
        f"{high} x {high}), {boxes.large:,} large"
    )


def uncounted_text(report: StatsReport) -> str | None:
    """Describe records with unknown contents; None if all contents are known."""
    number = sum(report.payloads.get(payload, 0) for payload in _FOREIGN)
    if not number:
        return None
    records = "all records" if number == report.record_count else count(number, "record")
    are = "is not an Example" if number == 1 != report.record_count else "are not Examples"
    return f"{records} {are}: only sizes are shown. `recordsmith head` shows their contents"


def groups_of(findings: Iterable[Finding], features: int, of_a_kind: int) -> Iterator[FindingGroup]:
    """Group equal findings, with the first few features, and keep the first few groups of a kind.

    A last group counts the other findings of its kind.
    """
    groups: dict[tuple[str, str, tuple[Place, ...]], list[str | None]] = {}
    for finding in findings:
        same = (finding.kind, finding.text, finding.places)
        groups.setdefault(same, []).append(finding.feature)
    shown: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    for (kind, text, places), keys in groups.items():
        named = [key for key in keys if key is not None]
        if shown[kind] == of_a_kind:
            hidden[kind] += len(keys)
            continue
        shown[kind] += 1
        yield FindingGroup(kind, tuple(named[:features]), len(named[features:]), text, places)
    for kind, number in hidden.items():
        yield FindingGroup(
            kind, (), 0, f"and {count(number, 'more such finding')}; the JSON report lists all."
        )
