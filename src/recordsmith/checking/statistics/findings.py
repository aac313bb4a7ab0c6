"""Finds likely problems in the statistics of a dataset, and suggests what to do about them.

Each finding comes from a rule over finished statistics. Rules must not fire on good datasets:
readers who see many false alarms ignore the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recordsmith.checking.class_rules import (
    are_drawn_for_viewing,
    find_imbalance,
    find_missing_classes,
)
from recordsmith.checking.statistics.box_stats import BoxStats
from recordsmith.checking.statistics.class_counts import NUMBERED_KEYS, TEXT_OF_LABEL, ClassStats
from recordsmith.checking.statistics.feature_stats import BytesStats, FeatureStats
from recordsmith.checking.statistics.leakage import Leak
from recordsmith.checking.statistics.mask_stats import MaskStats
from recordsmith.checking.statistics.number_stats import NumberStats
from recordsmith.dataset import ClassNames
from recordsmith.format.example import keys
from recordsmith.format.example.usual_names import USUAL_NAMES
from recordsmith.support.reports import ShownFinding
from recordsmith.support.words import count as format_count
from recordsmith.support.words import first_of

_NAMED = 5
_OBJECTS = keys.OBJECT_LABEL.removesuffix("class/label")  # one class and no crowds are usual
_USUALLY_CONSTANT = {
    name.rpartition("/")[2]
    for key in (keys.HEIGHT, keys.WIDTH, keys.DEPTH, keys.DTYPE, keys.FORMAT)
    for name in USUAL_NAMES.get(key, (key,))
} | {"colorspace", "shape", "fps"}
"""The last parts of keys that describe other features."""


@dataclass(frozen=True)
class Finding:
    """A likely problem.

    kind: a stable name for the problem, which `docs/stats.md` lists.
    feature: the feature with the problem.
    text: what was found.
    cure: what to do about it.
    """

    kind: str
    feature: str
    text: str
    cure: str


def make_findings(
    sections: Mapping[str, Mapping[str, FeatureStats]],
    class_names: ClassNames | None,
    classes: Mapping[str, ClassStats],
    masks: Mapping[str, MaskStats],
    boxes: BoxStats | None,
) -> Iterator[Finding]:
    """Yield findings, those that harm training most first."""
    features = [item for section in sections.values() for item in section.items()]
    texts = {TEXT_OF_LABEL[key] for key in TEXT_OF_LABEL.keys() & classes.keys()}
    labels = [(key, counted) for key, counted in classes.items() if key not in texts]
    for key, counted in labels:
        yield from _label_numbers(key, counted, class_names if key in NUMBERED_KEYS else None)
        yield from _missing_classes(key, counted)
    for key, feature in features:
        yield from _wrong_values(key, feature)
    for key, of_key in masks.items():
        yield from _wrong_masks(key, of_key)
    if boxes is not None:
        yield from _wrong_boxes(boxes)
    for key, counted in labels:
        yield from _imbalance(key, counted)
    for key, feature in features:
        if _is_constant(key, feature):
            text = "all values are equal: a model learns nothing from this feature."
            cure = "Drop it with `recordsmith edit --drop`."
            if _is_empty(feature):
                text = "all values are empty: there is nothing to read."
                cure = "Write the records again with their content, or drop the feature."
            yield Finding("constant", key, text, cure)


def leak_findings(leaks: Iterable[Leak], group_column: str | None) -> Iterator[Finding]:
    """Yield a finding for each two splits that share images or groups."""
    for leak in leaks:
        splits = " and ".join(map(repr, leak.splits))
        of_sample = "" if leak.compared == 1 else f", in a sample of {leak.compared:.1%}"
        end = f"in both {splits}{of_sample}: evaluation is optimistic (leakage)."
        if leak.feature == group_column:
            yield Finding(
                "group-across-splits",
                leak.feature,
                f"{format_count(leak.count, 'group')} {end}",
                "Split again with `recordsmith pack --group-column`.",
            )
        else:
            yield Finding(
                "identical-across-splits",
                leak.feature,
                f"{format_count(leak.count, 'image')} {end}",
                "`recordsmith lint` lists them: remove them, or split again.",
            )


def _label_numbers(key: str, classes: ClassStats, names: ClassNames | None) -> Iterator[Finding]:
    counts = [counted for split in classes.splits.values() for counted in split]
    if not classes.is_numbered or not counts:
        return
    labels = {int(counted.label) for counted in counts}
    low = min(labels)
    if low < 0:
        yield Finding(
            "label-negative",
            key,
            f"the lowest label is {low}; a loss that expects labels from 0 fails or is wrong.",
            "Drop these records, or assign them a class.",
        )
    known = [n for n, name in enumerate(names or ()) if name is not None]
    unknown = [str(label) for label in sorted(labels - {*known}) if label >= 0]
    if unknown and names is not None:
        yield Finding(
            "label-unnamed",
            key,
            f"labels without a class name: {first_of(unknown, _NAMED)}; labels.txt names "
            f"{len(known):,}.",
            "Fix the labels or the names.",
        )
    if low == 1 and not names and key != keys.OBJECT_LABEL:  # where 0 is the background
        yield Finding(
            "labels-from-1",
            key,
            "labels start at 1, as if 0 were the background.",
            f"Use {max(labels) + 1:,} model outputs, or subtract 1.",
        )


def _missing_classes(key: str, classes: ClassStats) -> Iterator[Finding]:
    lacking = [
        f"split {split!r} lacks {format_count(len(missing), 'class', 'classes')} of the other "
        f"splits: {first_of(sorted(missing), _NAMED)}"
        for split, missing in find_missing_classes(classes.counts()).items()
    ]
    if lacking:
        cure = "Split again so that every split has every class."
        yield Finding("class-missing", key, f"{'; '.join(lacking)}.", cure)


def _imbalance(key: str, classes: ClassStats) -> Iterator[Finding]:
    if (found := find_imbalance(classes.counts())) is None:
        return
    most, least, counts = found
    share = counts[most] / sum(counts.values())
    yield Finding(
        "imbalance",
        key,
        f"class {most} is {found.times:,.0f} times as frequent as {least} ({counts[most]:,} to "
        f"{counts[least]:,}); a majority-class baseline reaches {share:.0%} accuracy.",
        "Weight or resample the classes, and report metrics per class.",
    )


def _wrong_values(key: str, feature: FeatureStats) -> Iterator[Finding]:
    """Yield mixed kinds, NaN and infinite numbers, and images that cannot be read."""
    if feature.kind == "mixed":
        kinds = ", ".join(f"{kind} in {records:,}" for kind, records in feature.records.items())
        yield Finding(
            "mixed-kinds",
            key,
            f"records have different kinds: {kinds}. TensorFlow cannot parse all of them.",
            "Rewrite them with one kind.",
        )
    for values in feature.values.values():
        if isinstance(values, NumberStats) and values.finite < values.count:
            yield Finding(
                "not-finite",
                key,
                f"of {format_count(values.count, 'value')}, {values.nan:,} NaN and "
                f"{values.infinite:,} infinite: a single one can turn the loss into NaN.",
                "Drop these records, or replace the values.",
            )
        elif isinstance(values, BytesStats) and values.images and values.images.unreadable:
            yield _unreadable("images", key, values.images.unreadable, "invalid headers")


def _is_constant(key: str, feature: FeatureStats) -> bool:
    """Return whether all values of a feature are equal, and it does not describe the image."""
    values = next(iter(feature.values.values()), None)
    is_description = key.startswith(_OBJECTS) or key.rpartition("/")[2] in _USUALLY_CONSTANT
    if values is None or feature.missing or len(feature.values) > 1 or is_description:
        return False
    lengths = (feature.lengths, feature.steps or feature.lengths)
    if any(length.min != length.max for length in lengths):  # which models may learn from
        return False
    if isinstance(values, BytesStats):  # the sample does not prove it for more values
        return values.count == values.sample.size > values.sample.distinct == 1
    return values.count > 1 and values.min == values.max and values.finite == values.count


def _is_empty(feature: FeatureStats) -> bool:
    values = next(iter(feature.values.values()), None)
    return isinstance(values, BytesStats) and values.sizes.max == 0


def _wrong_masks(key: str, masks: MaskStats) -> Iterator[Finding]:
    """Yield masks that cannot be decoded to class numbers, and masks scaled to 255."""
    if masks.unreadable:
        why = f"of {masks.sampled:,} decoded: damaged, or with colours instead of class numbers"
        yield _unreadable("masks", key, masks.unreadable, why)
    labels = {mask_class.label for mask_class in masks.classes}
    if key != keys.OBJECT_MASK and are_drawn_for_viewing(labels):
        yield Finding(
            "mask-0-255",
            key,
            "all masks hold only 0 and 255, as if drawn for viewing: a loss with class numbers "
            "needs 0 and 1, and many programs ignore pixels with 255.",
            "Read them with `rs.Mask(values={255: 1})`, or replace 255 by 1 and pack them again.",
        )


def _unreadable(what: str, key: str, count: int, why: str) -> Finding:
    cure = "Run `recordsmith verify --deep` to list the records."
    return Finding(f"unreadable-{what}", key, f"{count:,} cannot be read ({why}).", cure)


def _wrong_boxes(boxes: BoxStats) -> Iterator[Finding]:
    """Yield boxes without area, outside of their image, or without one of their sides."""
    problems = {
        "without area": boxes.degenerate,
        "beyond the image (below 0 or above 1, as in pixels)": boxes.outside,
        "records with different numbers of ymin, xmin, ymax and xmax": boxes.mismatched,
    }
    counts = [f"{count:,} {what}" for what, count in problems.items() if count]
    if counts:
        yield Finding(
            "invalid-boxes",
            keys.BOX[0].rpartition("/")[0],
            f"of {format_count(boxes.count, 'box', 'boxes')}, {'; '.join(counts)}. Losses become "
            "NaN or wrong on such boxes.",
            "Fix or drop them.",
        )


def group_findings(
    findings: Iterable[Finding], max_features: int = 5, max_of_kind: int = 10
) -> Iterator[ShownFinding]:
    """Group findings that differ only in their feature; a last group counts those of a kind."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.text, finding.cure), []).append(finding.feature)
    shown: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    for (kind, text, cure), features in groups.items():
        if shown[kind] == max_of_kind:
            hidden[kind] += len(features)
            continue
        shown[kind] += 1
        names = [name if len(name) <= 80 else f"{name[:79]}…" for name in features]
        yield ShownFinding(kind, text, cure, first_of(names, max_features))
    for kind, number in hidden.items():
        more = f"and {format_count(number, 'more such finding')}; the JSON report lists all."
        yield ShownFinding(kind, more)
