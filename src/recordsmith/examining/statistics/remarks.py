"""What in these figures should somebody look at, and what to do about it?

Each remark is a rule over finished statistics. A rule that would fire on good datasets too is left
out: whoever reads ten remarks that mean nothing reads no eleventh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.shard_summaries import ShardSummary
from recordsmith.examining.statistics.class_counts import NUMBERED_KEYS, ClassStatistics
from recordsmith.examining.statistics.duplicates import DuplicateStatistics
from recordsmith.examining.statistics.feature_statistics import FeatureStatistics
from recordsmith.examining.statistics.number_statistics import NumberStatistics
from recordsmith.examining.statistics.picture_statistics import PictureStatistics
from recordsmith.example.keys import DEPTH, DTYPE, FORMAT, HEIGHT, MASK_DTYPE, MASK_FORMAT, WIDTH
from recordsmith.words import count as _count

_USUALLY_CONSTANT = frozenset(
    (
        FORMAT,
        HEIGHT,
        WIDTH,
        DEPTH,
        DTYPE,
        MASK_FORMAT,
        MASK_DTYPE,
        "image/colorspace",
        "image/channels",
    )
)
_FEW = 0.01
_IMBALANCE = 10
_LARGER = 16
_UNEVEN = 2
_EASY_PIXELS = 4_000_000
_UNEVEN_BYTES = 1 << 20
_NAMED = 5


@dataclass(frozen=True)
class Remark:
    """Something to look at.

    kind: what it is, by a name that stays: see docs/inspect.md.
    feature: which feature it is about; None: the dataset.
    text: what was found, and what to do, in words.
    """

    kind: str
    feature: str | None
    text: str

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return {"kind": self.kind, "feature": self.feature, "text": self.text}


def make_remarks(
    shards: Sequence[ShardSummary],
    sections: Mapping[str, Mapping[str, FeatureStatistics]],
    class_names: ClassNames | None,
    classes: Mapping[str, ClassStatistics],
    duplicates: Sequence[DuplicateStatistics],
) -> Iterator[Remark]:
    """What should be looked at: what spoils a training first."""
    for found in duplicates:
        yield from _leakage(found)
    for key, counted in classes.items():
        yield from _classes(key, counted, class_names)
    for section in sections.values():
        for key, feature in section.items():
            yield from _feature(key, feature)
    for found in duplicates:
        yield from _repeated(found)
    for key, counted in classes.items():
        yield from _imbalance(key, counted)
    for section in sections.values():
        for key, feature in section.items():
            yield from _presence(key, feature)
    yield from _shards(shards)


def _leakage(found: DuplicateStatistics) -> Iterator[Remark]:
    what = "record" if found.feature is None else "picture"
    about = "about " if found.sampled > 1 else ""
    for shared in found.shared:
        one, other = shared.splits
        text = (
            f"{about}{_count(shared.contents, what)} of split {one!r} {_are(shared.contents)} in "
            f"{other!r} as well, byte for byte: what is measured on one of them is too good. "
            "Leave them out of one of them, or split again."
        )
        if shared.places:
            text += f" The first: {shared.places[0][0]}; and {shared.places[0][1]}."
        yield Remark("leakage", found.feature, text)


def _repeated(found: DuplicateStatistics) -> Iterator[Remark]:
    what = "record" if found.feature is None else "picture"
    repeated = sum(found.within.values())
    if repeated:
        about = "about " if found.sampled > 1 else ""
        text = (
            f"{about}{_count(repeated, what)} of {found.count:,} came before in the same split, "
            f"byte "
            "for byte: they count double in training."
        )
        if found.places:
            text += f" The first: {found.places[0][0]}; and {found.places[0][1]}."
        yield Remark("duplicates", found.feature, text)


def _classes(key: str, found: ClassStatistics, class_names: ClassNames | None) -> Iterator[Remark]:
    every = {count.label: str(count) for counts in found.splits.values() for count in counts}
    if found.is_numbered and every:
        yield from _numbers_of_classes(key, [int(label) for label in every], class_names)
    if found.error or len(found.splits) < 2:
        return
    for split, counts in found.splits.items():
        there = {count.label for count in counts}
        missing = [
            name for label, name in sorted(every.items(), key=_by_label) if label not in there
        ]
        if missing:
            yield Remark(
                "class-missing",
                key,
                f"split {split!r} has none of {_count(len(missing), 'class', 'classes')} that "
                f"other "
                f"splits have: {_some(missing)}. Split again, so that each class is in each split.",
            )


def _by_label(item: tuple[int | str, str]) -> tuple[bool, Any]:
    return isinstance(item[0], str), item[0]


def _numbers_of_classes(
    key: str, labels: list[int], class_names: ClassNames | None
) -> Iterator[Remark]:
    low, high = min(labels), max(labels)
    names = class_names if key in NUMBERED_KEYS else None
    if low < 0:
        yield Remark(
            "label-negative",
            key,
            f"labels go down to {low}; a loss that counts classes from 0 fails or is wrong there. "
            "Leave these records out, or give them a class.",
        )
    if names is not None:
        unknown = sorted(
            label
            for label in labels
            if label >= len(names) or (label >= 0 and names[label] is None)
        )
        if unknown:
            yield Remark(
                "label-unnamed",
                key,
                f"{_count(len(unknown), 'label')} {_have(len(unknown))} no class name: "
                f"{_some(list(map(str, unknown)))}; labels.txt names "
                f"{sum(name is not None for name in names):,}. Mend the labels or the names.",
            )
    if low == 1 and (names is None or not names or names[0] is None):
        yield Remark(
            "labels-from-1",
            key,
            f"labels begin at 1, as where 0 is the background: a model needs {high + 1:,} "
            f"outputs, or "
            "subtract 1.",
        )


def _imbalance(key: str, found: ClassStatistics) -> Iterator[Remark]:
    if found.error:
        return
    for split, counts in found.splits.items():
        ratio = found.imbalance(split)
        if ratio is not None and ratio >= _IMBALANCE:
            most, least = counts[0], counts[-1]
            share = most.count / sum(count.count for count in counts)
            yield Remark(
                "imbalance",
                key,
                f"in split {split!r} class {most} comes {ratio:,.0f} times as often as {least} "
                f"({most.count:,} to {least.count:,}); always saying {most} would be right in "
                f"{share:.0%}. Weigh or resample the classes, and measure each for itself.",
            )


def _feature(key: str, feature: FeatureStatistics) -> Iterator[Remark]:
    if feature.kind == "mixed":
        kinds = ", ".join(f"{kind} in {count:,}" for kind, count in feature.records.items())
        yield Remark(
            "mixed-kinds",
            key,
            f"records disagree on its kind: {kinds}. TensorFlow refuses to parse some of them; "
            f"write "
            "them again with one kind.",
        )
    for values in feature.values.values():
        if isinstance(values, NumberStatistics):
            yield from _odd_numbers(key, values)
        elif values.pictures is not None:
            yield from _pictures(key, values.pictures)


def _odd_numbers(key: str, values: NumberStatistics) -> Iterator[Remark]:
    for kind, name, count in (
        ("nan", "NaN", values.nan),
        ("infinite", "infinite", values.infinite),
    ):
        if count:
            yield Remark(
                kind,
                key,
                f"{count:,} of {_count(values.count, 'value')} {_are(count)} {name}: one of them "
                f"turns "
                "a whole training into NaN. Leave these records out, or put a number there.",
            )


def _pictures(key: str, pictures: PictureStatistics) -> Iterator[Remark]:
    if pictures.unreadable:
        yield Remark(
            "unreadable-pictures",
            key,
            f"{_count(pictures.unreadable, 'value')} {_begin(pictures.unreadable)} like a "
            f"picture, and "
            "the header makes no sense: `recordsmith verify --deep` says which.",
        )
    if pictures.differing:
        turned = (
            f", of {pictures.turned:,} with height and width swapped, as of pictures that were "
            f"turned "
            "by their EXIF data"
            if pictures.turned
            else ""
        )
        yield Remark(
            "declared-size",
            key,
            f"of {_count(pictures.differing, 'picture')} in {pictures.declared:,} the declared "
            f"height "
            f"or width is not that of its header{turned}. The first: {pictures.differing_place}. "
            "Trust the header, and mend the numbers.",
        )
    quantiles = dict(pictures.pixels.quantiles)
    largest = pictures.pixels.max
    if largest is not None and largest >= max(_EASY_PIXELS, _LARGER * quantiles[0.5]):
        yield Remark(
            "large-pictures",
            key,
            f"the largest has {largest:,} pixels, {largest / max(1, quantiles[0.5]):,.0f} times "
            f"as many "
            f"as the median: {pictures.largest_place}. Such pictures hold up a batch; pack them "
            "smaller.",
        )


def _presence(key: str, feature: FeatureStatistics) -> Iterator[Remark]:
    records = feature.present + feature.missing
    if feature.present < _FEW * records:
        yield Remark(
            "sparse",
            key,
            f"only {_count(feature.present, 'record')} of {records:,} {_have(feature.present)} it: "
            "give it a default when you read it, or look at how it was written.",
        )
    values = list(feature.values.values())
    if (
        len(values) == 1
        and values[0].distinct == 1
        and values[0].count > 1
        and not (isinstance(values[0], NumberStatistics) and values[0].nan + values[0].infinite)
        and not feature.missing
        and key not in _USUALLY_CONSTANT
    ):
        yield Remark(
            "constant", key, "all values are the same: it tells a model nothing, and takes room."
        )


def _shards(shards: Sequence[ShardSummary]) -> Iterator[Remark]:
    splits: dict[str, list[ShardSummary]] = {}
    for shard in shards:
        splits.setdefault(shard.split, []).append(shard)
    for split, members in splits.items():
        sizes = [shard.size_bytes for shard in members]
        mean = sum(sizes) / len(sizes)
        largest = max(members, key=lambda shard: shard.size_bytes)
        if len(sizes) > 1 and largest.size_bytes > max(_UNEVEN * mean, _UNEVEN_BYTES):
            yield Remark(
                "uneven-shards",
                None,
                f"shards of split {split!r} differ: {largest.path} is "
                f"{largest.size_bytes / mean:.1f} times as large as the mean, so that whoever "
                f"reads it "
                "holds up the others. `recordsmith reshard` makes them even.",
            )
        empty = [shard.path for shard in members if not shard.record_count]
        if empty:
            yield Remark(
                "empty-shards",
                None,
                f"{_count(len(empty), 'shard')} of split {split!r} {_have(len(empty))} no records: "
                f"{_some(empty)}.",
            )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _begin(count: int) -> str:
    return "begins" if count == 1 else "begin"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
