"""Finds likely problems in the statistics of a dataset, and suggests what to do about them.

Each finding comes from a rule over finished statistics. Rules must not fire on good datasets:
readers who see many false alarms ignore the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.shard_summaries import ShardSummary
from recordsmith.examining.stats.box_stats import BoxStats
from recordsmith.examining.stats.class_counts import NUMBERED_KEYS, TEXT_OF_LABEL, ClassStats
from recordsmith.examining.stats.feature_stats import BytesStats, FeatureStats
from recordsmith.examining.stats.image_stats import ImageStats
from recordsmith.examining.stats.mask_stats import MaskStats
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.example.keys import (
    BOX,
    DEPTH,
    DTYPE,
    FORMAT,
    HEIGHT,
    MASK_DTYPE,
    MASK_FORMAT,
    WIDTH,
)
from recordsmith.reports import Finding, Place
from recordsmith.words import count as format_count
from recordsmith.words import first_of

LabelTexts = Mapping[tuple[int, str], int]
"""How often each pair of label and text occurs."""

_NAMED = 5
_TEXTS_SHOWN = 3
_IMBALANCE = 10
_GAPS = 10
_MANY_OUTPUTS = 100
_SEEN_OFTEN = 3  # with fewer values per class, classes may be missing by chance
_FEW = 0.01
_UNEVEN = 2
_UNEVEN_BYTES = 1 << 20
_LARGER = 16
_EASY_PIXELS = 4_000_000
_USUALLY_CONSTANT = {FORMAT, HEIGHT, WIDTH, DEPTH, DTYPE, MASK_FORMAT, MASK_DTYPE} | {
    "image/colorspace",
    "image/channels",
}
_DEEP = "16-bit png"
# By format, or by variant and format. Checked with TensorFlow 2.21 and DALI 2.4 (decoders.image on
# the CPU); CMYK JPEGs, palette, alpha and animated PNGs are not here, as both decode them like
# Pillow. Sources:
# - https://www.tensorflow.org/api_docs/python/tf/io/decode_image: BMP, GIF, JPEG, PNG (2.13), later
#   also WebP; the shapes of GIF; decode_gif: no JPEG, PNG or BMP
# - https://www.tensorflow.org/api_docs/python/tf/io/decode_webp: animations only as RGBA
# - https://docs.nvidia.com/deeplearning/dali/user-guide/docs/operations/
#   nvidia.dali.fn.decoders.image.html: JPEG, BMP, PNG, TIFF, PNM, JPEG 2000, WebP ("simple file
#   format"), and https://github.com/NVIDIA/DALI/issues/5151: no GIF
# - 16 bits: the argument `dtype` of both decoders
_HARD_TO_READ = {
    "tiff": "TensorFlow cannot decode them.",
    "gif": (
        "DALI cannot decode them, and tf.io.decode_image returns four dimensions unless "
        "expand_animations=False."
    ),
    "animated gif": "tf.io.decode_jpeg and decode_png cannot decode them.",
    "webp": (
        "tf.io.decode_image returns four dimensions unless expand_animations=False, and cannot "
        "decode them at all in older versions, such as TensorFlow 2.13."
    ),
    "animated webp": (
        "tf.io.decode_webp supports only 4 channels, and DALI decodes only the first frame."
    ),
    "bmp": (
        "tf.io.decode_jpeg and decode_png cannot decode them, and tf.io.decode_image returns the "
        "indices of a palette instead of colours."
    ),
    _DEEP: (
        "TensorFlow and DALI drop the lower 8 bits unless you pass dtype=tf.uint16 or "
        "dtype=types.UINT16."
    ),
}


def make_findings(
    shards: Sequence[ShardSummary],
    sections: Mapping[str, Mapping[str, FeatureStats]],
    class_names: ClassNames | None,
    classes: Mapping[str, ClassStats],
    label_texts: Mapping[str, LabelTexts],
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
    for key, pairs in label_texts.items():
        yield from _contradictions(key, pairs, class_names)
    for key, feature in features:
        yield from _wrong_values(key, feature)
    for key, found_masks in masks.items():
        yield from _wrong_masks(key, found_masks)
    if boxes is not None:
        yield from _wrong_boxes(boxes)
    for key, counted in labels:
        yield from _imbalance(key, counted)
    for key, feature in features:
        yield from _useless_values(key, feature)
    yield from _odd_shards(shards)


def _label_numbers(key: str, classes: ClassStats, names: ClassNames | None) -> Iterator[Finding]:
    """Yield labels that are not class numbers."""
    labels = sorted(
        {int(counted.label) for counts in classes.splits.values() for counted in counts}
        if classes.is_numbered
        else ()
    )
    if not labels:
        return
    low, outputs = labels[0], labels[-1] + 1
    values = sum(counted.count for counts in classes.splits.values() for counted in counts)
    if low < 0:
        yield Finding(
            "label-negative",
            key,
            f"the lowest label is {low}; a loss that expects labels from 0 fails or is wrong.",
            "Drop these records, or assign them a class.",
        )
    known = [] if names is None else [n for n, name in enumerate(names) if name is not None]
    unknown = sorted(set(labels) - {*known} - {*range(low, 0)}) if names is not None else []
    if unknown:
        yield Finding(
            "label-unnamed",
            key,
            f"{format_count(len(unknown), 'label')} {_have(len(unknown))} no class name: "
            f"{first_of(list(map(str, unknown)), _NAMED)}; labels.txt names {len(known):,}.",
            "Fix the labels or the names.",
        )
    if low == 1 and (not names or names[0] is None):
        yield Finding(
            "labels-from-1",
            key,
            "labels start at 1, as if 0 were the background.",
            f"Use {outputs:,} model outputs, or subtract 1.",
        )
    is_often = values >= _SEEN_OFTEN * len(labels)
    if not is_often or low < 0 or outputs < max(_MANY_OUTPUTS, _GAPS * len(labels)):
        return
    if names is None or len(names) < outputs:  # otherwise the gaps are classes without records
        yield Finding(
            "labels-with-gaps",
            key,
            f"only {len(labels):,} of the numbers from 0 to {labels[-1]} are labels: "
            f"{first_of(list(map(str, labels)), _NAMED)}. A loss that expects labels from 0 needs "
            f"{outputs:,} outputs.",
            "If these are classes, renumber them with `recordsmith edit --recode`.",
        )


def _missing_classes(key: str, classes: ClassStats) -> Iterator[Finding]:
    names = {
        counted.label: str(counted) for counts in classes.splits.values() for counted in counts
    }
    lacking = []
    for split, counts in classes.splits.items():
        there = {counted.label for counted in counts}
        ordered: list[Any] = sorted(label for label in names if label not in there)
        if ordered:
            missing = [names[label] for label in ordered]
            lacking.append(
                f"split {split!r} lacks {format_count(len(missing), 'class', 'classes')} of the "
                f"other splits: {first_of(missing, _NAMED)}"
            )
    if lacking:
        cure = "Split again so that every split has every class."
        yield Finding("class-missing", key, f"{'; '.join(lacking)}.", cure)


def _imbalance(key: str, classes: ClassStats) -> Iterator[Finding]:
    """Yield labels of which one is much more frequent than another, with the worst split."""
    ratios = {split: classes.imbalance(split) or 0 for split in classes.splits}
    worst = max(ratios, key=ratios.__getitem__)
    if ratios[worst] < _IMBALANCE:
        return
    counts = classes.splits[worst]
    most, least = counts[0], counts[-1]
    share = most.count / sum(counted.count for counted in counts)
    others = [
        f"{ratio:,.0f} times in {split!r}"
        for split, ratio in ratios.items()
        if split != worst and ratio >= _IMBALANCE
    ]
    yield Finding(
        "imbalance",
        key,
        f"in split {worst!r} class {most} is {ratios[worst]:,.0f} times as frequent as {least} "
        f"({most.count:,} to {least.count:,})"
        + (f", and the imbalance is {first_of(others, _NAMED)}" if others else "")
        + f"; a majority-class baseline reaches {share:.0%} accuracy.",
        "Weight or resample the classes, and report metrics per class.",
    )


def _contradictions(
    key: str, pairs: LabelTexts, class_names: ClassNames | None
) -> Iterator[Finding]:
    """Yield labels with several texts, texts with several labels, and texts not in labels.txt."""
    texts: dict[str, list[str]] = {}
    labels: dict[str, list[str]] = {}
    for (label, text), count in sorted(pairs.items()):
        texts.setdefault(f"label {label} has the texts", []).append(f"{text!r:.80} ({count:,})")
        labels.setdefault(f"text {text!r:.80} has the labels", []).append(f"{label} ({count:,})")
    problems = []
    for names_of in (texts, labels):
        several = [f"{what} {_listed(its)}" for what, its in names_of.items() if len(its) > 1]
        problems += [first_of(several, _TEXTS_SHOWN)] if several else []
    names = {label: name for label, name in enumerate(class_names or ()) if name is not None}
    if any(label in names and text in names.values() for label, text in pairs):
        differing = [
            f"labels.txt says {names[label]!r:.80} for label {label}, but records say {text!r:.80}"
            for label, text in sorted(pairs)
            if names.get(label, text) != text
        ]
        problems += [first_of(differing, _NAMED)] if differing else []
    if problems:
        yield Finding(
            "label-text",
            key,
            f"{'; '.join(problems)}. {key} and {TEXT_OF_LABEL[key]} disagree. Programs that read "
            "one of them train on different classes than programs that read the other.",
            "Recode both, or drop the texts, with `recordsmith edit`.",
        )


def _listed(names: list[str]) -> str:
    """List a few names: a, b and c; a, b, c and 2 more."""
    if len(names) > _TEXTS_SHOWN:
        return first_of(names, _TEXTS_SHOWN)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _wrong_values(key: str, feature: FeatureStats) -> Iterator[Finding]:
    """Yield mixed kinds, NaN and infinite numbers, and unusual images."""
    if feature.kind == "mixed":
        kinds = ", ".join(f"{kind} in {records:,}" for kind, records in feature.records.items())
        yield Finding(
            "mixed-kinds",
            key,
            f"records have different kinds: {kinds}. TensorFlow cannot parse all of them.",
            "Rewrite them with one kind.",
        )
    for values in feature.values.values():
        if isinstance(values, NumberStats):
            counts = {"NaN": values.nan, "infinite": values.infinite}
            odd = [f"{count:,} {_are(count)} {name}" for name, count in counts.items() if count]
            if odd:
                yield Finding(
                    "not-finite",
                    key,
                    f"of {format_count(values.count, 'value')}, {' and '.join(odd)}: a single one "
                    "can turn the loss into NaN.",
                    "Drop these records, or replace the values.",
                )
        elif values.images is not None:
            yield from _wrong_images(key, values.images)


def _useless_values(key: str, feature: FeatureStats) -> Iterator[Finding]:
    """Yield features that few records have, or that are constant."""
    records = feature.present + feature.missing
    if feature.present < _FEW * records:
        yield Finding(
            "sparse",
            key,
            f"only {format_count(feature.present, 'record')} of {records:,} "
            f"{_have(feature.present)} it.",
            "Set a default for readers, or check the program that wrote it.",
        )
    values = next(iter(feature.values.values()), None)
    is_constant = False
    if isinstance(values, BytesStats):
        is_constant = values.sample.distinct == 1 and values.sizes.min == values.sizes.max
    elif values is not None:
        is_constant = values.min == values.max and values.finite == values.count
    if (
        is_constant
        and values is not None
        and values.count > 1
        and len(feature.values) == 1
        and not feature.missing
        and key not in _USUALLY_CONSTANT
    ):
        is_sampled = isinstance(values, BytesStats) and values.sample.size < values.count
        every = "all values of the sample" if is_sampled else "all values"
        text = f"{every} are equal: a model learns nothing from this feature."
        yield Finding("constant", key, text, "Drop it with `recordsmith edit --drop`.")


def _wrong_images(key: str, images: ImageStats) -> Iterator[Finding]:
    """Yield images that cannot be read everywhere, have wrong sizes, or are very large."""
    if images.unreadable:
        begin = "begins" if images.unreadable == 1 else "begin"
        yield Finding(
            "unreadable-images",
            key,
            f"{format_count(images.unreadable, 'value')} {begin} like an image but cannot be read.",
            "Run `recordsmith verify --deep` to list the records.",
        )
    formats = images.formats | images.variants
    problems = [
        f"{format_count(formats[name], 'image')} {_are(formats[name])} {name}: {problem}"
        for name, problem in _HARD_TO_READ.items()
        if formats.get(name)
    ]
    if problems:
        can_convert = formats.keys() & _HARD_TO_READ.keys() != {_DEEP}
        yield Finding(
            "image-format",
            key,
            " ".join(problems),
            "If you use these readers, pack the dataset again with `--store jpeg` or `--store "
            "png`, or decode with recordsmith."
            if can_convert
            else "",
        )
    if images.differing:
        swapped = (
            f" ({images.turned:,} with height and width swapped, as after an EXIF rotation)"
            if images.turned
            else ""
        )
        yield Finding(
            "declared-size",
            key,
            f"the declared height or width of {format_count(images.differing, 'image')} in "
            f"{images.declared:,} differs from the image header{swapped}.",
            "Fix the declared values.",
            _places(images.differing_place),
        )
    largest = images.pixels.max
    median = 1 if images.pixels.sample is None else images.pixels.sample.median
    if largest is not None and largest >= max(_EASY_PIXELS, _LARGER * median):
        yield Finding(
            "large-images",
            key,
            f"the largest image has {largest:,} pixels, {largest / max(1, median):,.0f} times the "
            "median. Such images slow down batches.",
            "Resize them when packing.",
            _places(images.largest_place),
        )


def _wrong_masks(key: str, masks: MaskStats) -> Iterator[Finding]:
    """Yield masks that cannot be decoded to class numbers, and masks scaled to 255."""
    decoded = f" of {masks.sampled:,} decoded" if masks.sampled < masks.count else ""
    if masks.unreadable:
        yield Finding(
            "unreadable-masks",
            key,
            f"{format_count(masks.unreadable, 'mask')}{decoded} cannot be read as class numbers: "
            "damaged, or with colours instead of grey levels or palette indices.",
            "Run `recordsmith verify --deep` to list the records.",
        )
    if {mask_class.label for mask_class in masks.classes} in ({255}, {0, 255}):
        yield Finding(
            "mask-0-255",
            key,
            f"all masks{decoded} hold only 0 and 255, as if drawn for viewing: a loss with class "
            "numbers needs 0 and 1, and many programs ignore pixels with 255.",
            "Read them with `rs.Mask(values={255: 1})`, or replace 255 by 1 and pack them again.",
        )


def _wrong_boxes(boxes: BoxStats) -> Iterator[Finding]:
    """Yield boxes without area, outside of their image, or without one of their sides."""
    problems = []
    if boxes.degenerate:
        problems.append(f"{boxes.degenerate:,} {_have(boxes.degenerate)} no area")
    if boxes.outside:
        reach = "reaches" if boxes.outside == 1 else "reach"
        problems.append(
            f"{boxes.outside:,} {reach} beyond the image (below 0 or above 1, as in pixels)"
        )
    if boxes.mismatched:
        problems.append(
            f"{format_count(boxes.mismatched, 'record')} {_have(boxes.mismatched)} different "
            "numbers of ymin, xmin, ymax and xmax"
        )
    if problems:
        yield Finding(
            "invalid-boxes",
            BOX[0].rpartition("/")[0],
            f"of {format_count(boxes.count, 'box', 'boxes')}, {'; '.join(problems)}. Losses become "
            "NaN or wrong on such boxes.",
            "Fix or drop them.",
            _places(boxes.place),
        )


def _odd_shards(shards: Sequence[ShardSummary]) -> Iterator[Finding]:
    """Yield uneven and empty shards of each split."""
    splits: dict[str, list[ShardSummary]] = {}
    for shard in shards:
        splits.setdefault(shard.split, []).append(shard)
    for split, members in splits.items():
        sizes = [shard.size_bytes for shard in members]
        mean = sum(sizes) / len(sizes)
        largest = max(members, key=lambda shard: shard.size_bytes)
        if len(sizes) > 1 and largest.size_bytes > max(_UNEVEN * mean, _UNEVEN_BYTES):
            yield Finding(
                "uneven-shards",
                None,
                f"shards of split {split!r} differ in size: {largest.path} is "
                f"{largest.size_bytes / mean:.1f} times as large as the mean, so parallel readers "
                "wait for it.",
                "Run `recordsmith reshard` to balance them.",
            )
        empty = [shard.path for shard in members if not shard.record_count]
        if empty:
            yield Finding(
                "empty-shards",
                None,
                f"{format_count(len(empty), 'shard')} of split {split!r} {_have(len(empty))} no "
                f"records: {first_of(empty, _NAMED)}.",
            )


def _places(place: Place | None) -> tuple[Place, ...]:
    return () if place is None else (place,)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
