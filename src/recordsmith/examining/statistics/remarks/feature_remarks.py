"""Values: those that end a training, and those that tell it nothing."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.statistics.feature_statistics import FeatureStatistics
from recordsmith.examining.statistics.number_statistics import NumberStatistics
from recordsmith.examining.statistics.picture_statistics import PictureStatistics
from recordsmith.examining.statistics.remarks.remark import Remark, are, have
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


def wrong_values(key: str, feature: FeatureStatistics) -> Iterator[Remark]:
    """Kinds that do not agree, numbers that are none, and pictures that are odd."""
    if feature.kind == "mixed":
        kinds = ", ".join(f"{kind} in {records:,}" for kind, records in feature.records.items())
        yield Remark(
            "mixed-kinds",
            key,
            f"records disagree on its kind: {kinds}. TensorFlow refuses to parse some of them; "
            "write them again with one kind.",
        )
    for values in feature.values.values():
        if isinstance(values, NumberStatistics):
            yield from _odd_numbers(key, values)
        elif values.pictures is not None:
            yield from _pictures(key, values.pictures)


def _odd_numbers(key: str, values: NumberStatistics) -> Iterator[Remark]:
    for kind, name, odd in (
        ("nan", "NaN", values.nan),
        ("infinite", "infinite", values.infinite),
    ):
        if odd:
            yield Remark(
                kind,
                key,
                f"{odd:,} of {count(values.count, 'value')} {are(odd)} {name}: one of them turns a "
                "whole training into NaN. Leave these records out, or put a number there.",
            )


def _pictures(key: str, pictures: PictureStatistics) -> Iterator[Remark]:
    if pictures.unreadable:
        begin = "begins" if pictures.unreadable == 1 else "begin"
        yield Remark(
            "unreadable-pictures",
            key,
            f"{count(pictures.unreadable, 'value')} {begin} like a picture, and the header makes "
            "no sense: `recordsmith verify --deep` says which.",
        )
    if pictures.differing:
        turned = (
            f", of {pictures.turned:,} with height and width swapped, as of pictures that were "
            "turned by their EXIF data"
            if pictures.turned
            else ""
        )
        yield Remark(
            "declared-size",
            key,
            f"of {count(pictures.differing, 'picture')} in {pictures.declared:,} the declared "
            f"height or width is not that of its header{turned}. The first: "
            f"{pictures.differing_place}. Trust the header, and mend the numbers.",
        )
    quantiles = dict(pictures.pixels.quantiles)
    largest = pictures.pixels.max
    if largest is not None and largest >= max(_EASY_PIXELS, _LARGER * quantiles[0.5]):
        times = largest / max(1, quantiles[0.5])
        yield Remark(
            "large-pictures",
            key,
            f"the largest has {largest:,} pixels, {times:,.0f} times as many as the median: "
            f"{pictures.largest_place}. Such pictures hold up a batch; pack them smaller.",
        )


def useless_values(key: str, feature: FeatureStatistics) -> Iterator[Remark]:
    """A feature that hardly any record has, or that is the same in all."""
    records = feature.present + feature.missing
    if feature.present < _FEW * records:
        yield Remark(
            "sparse",
            key,
            f"only {count(feature.present, 'record')} of {records:,} {have(feature.present)} it: "
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
