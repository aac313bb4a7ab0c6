"""Findings on feature values that break training, or that are useless for it."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.stats.feature_stats import FeatureStats
from recordsmith.examining.stats.findings.finding import Finding, are, have
from recordsmith.examining.stats.image_stats import ImageStats
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.example.keys import DEPTH, DTYPE, FORMAT, HEIGHT, MASK_DTYPE, MASK_FORMAT, WIDTH
from recordsmith.words import count

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
_LARGER = 16
_EASY_PIXELS = 4_000_000


def wrong_values(key: str, feature: FeatureStats) -> Iterator[Finding]:
    """Yield mixed kinds, NaN and infinite numbers, and unusual images."""
    if feature.kind == "mixed":
        kinds = ", ".join(f"{kind} in {records:,}" for kind, records in feature.records.items())
        yield Finding(
            "mixed-kinds",
            key,
            f"records have different kinds: {kinds}. TensorFlow cannot parse all of them; "
            "rewrite them with one kind.",
        )
    for values in feature.values.values():
        if isinstance(values, NumberStats):
            yield from _odd_numbers(key, values)
        elif values.images is not None:
            yield from _images(key, values.images)


def _odd_numbers(key: str, values: NumberStats) -> Iterator[Finding]:
    for kind, name, odd in (
        ("nan", "NaN", values.nan),
        ("infinite", "infinite", values.infinite),
    ):
        if odd:
            yield Finding(
                kind,
                key,
                f"{odd:,} of {count(values.count, 'value')} {are(odd)} {name}: a single one can "
                "turn the loss into NaN. Drop these records, or replace the values.",
            )


def _images(key: str, images: ImageStats) -> Iterator[Finding]:
    if images.unreadable:
        begin = "begins" if images.unreadable == 1 else "begin"
        yield Finding(
            "unreadable-images",
            key,
            f"{count(images.unreadable, 'value')} {begin} like an image but cannot be read: "
            "run `recordsmith verify --deep` to list the records.",
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
            f"the declared height or width of {count(images.differing, 'image')} in "
            f"{images.declared:,} differs from the image header{swapped}. First image: "
            f"{images.differing_place}. Fix the declared values.",
            () if images.differing_place is None else (images.differing_place,),
        )
    largest = images.pixels.max
    if largest is not None and largest >= max(_EASY_PIXELS, _LARGER * images.pixels.quantiles[0.5]):
        times = largest / max(1, images.pixels.quantiles[0.5])
        yield Finding(
            "large-images",
            key,
            f"the largest image has {largest:,} pixels, {times:,.0f} times the median: "
            f"{images.largest_place}. Such images slow down batches; resize them when packing.",
            () if images.largest_place is None else (images.largest_place,),
        )


def useless_values(key: str, feature: FeatureStats) -> Iterator[Finding]:
    """Yield features that few records have, or that are constant."""
    records = feature.present + feature.missing
    if feature.present < _FEW * records:
        yield Finding(
            "sparse",
            key,
            f"only {count(feature.present, 'record')} of {records:,} {have(feature.present)} it: "
            "set a default for readers, or check the program that wrote it.",
        )
    values = list(feature.values.values())
    if (
        len(values) == 1
        and values[0].distinct == 1
        and values[0].count > 1
        and not (isinstance(values[0], NumberStats) and values[0].nan + values[0].infinite)
        and not feature.missing
        and key not in _USUALLY_CONSTANT
    ):
        yield Finding(
            "constant", key, "all values are equal: a model learns nothing from this feature."
        )
