"""Findings on feature values that break training, or that are useless for it."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.stats.feature_stats import FeatureStats
from recordsmith.examining.stats.findings.finding import Finding, are, have
from recordsmith.examining.stats.findings.image_findings import image_problems
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.example.keys import DEPTH, DTYPE, FORMAT, HEIGHT, MASK_DTYPE, MASK_FORMAT, WIDTH
from recordsmith.words import count

_USUALLY_CONSTANT = {FORMAT, HEIGHT, WIDTH, DEPTH, DTYPE, MASK_FORMAT, MASK_DTYPE} | {
    "image/colorspace",
    "image/channels",
}
_FEW = 0.01


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
            yield from image_problems(key, values.images)


def _odd_numbers(key: str, values: NumberStats) -> Iterator[Finding]:
    odd = [
        f"{number:,} {are(number)} {name}"
        for name, number in (("NaN", values.nan), ("infinite", values.infinite))
        if number
    ]
    if odd:
        yield Finding(
            "not-finite",
            key,
            f"of {count(values.count, 'value')}, {' and '.join(odd)}: a single one can turn the "
            "loss into NaN. Drop these records, or replace the values.",
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
