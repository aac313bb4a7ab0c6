"""The figures and remarks of a forecast as text, for the command line and the page."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.example.keys import IMAGE
from recordsmith.forecasting.forecast_report import ForecastReport, VariantForecast
from recordsmith.forecasting.variants import FLOATS, ORIGINAL
from recordsmith.words import count as counted
from recordsmith.words import size as size_text

HEADINGS = (
    *("stored as", "size", "error", "of original", "shards", "PSNR", "SSIM", "lowest SSIM"),
    *("decodes/s", "crops/s", "loads/s", "stores/s", "pack options"),
)
OPTIONAL = (
    *("stores/s", "lowest SSIM", "decodes/s", "shards", "crops/s", "pack options"),
    *("of original", "error"),
)
"""Columns that narrow terminals leave out, in this order."""

_LEAST_SHOWN = 0.0001


def cells(variant: VariantForecast) -> tuple[str, ...]:
    """The cells of a variant's row, by `HEADINGS`."""
    return (
        variant.label,
        size_text(variant.size_bytes.value),
        _error(variant.error),
        _percent(variant.ratio),
        f"{variant.shard_count:,}",
        _number(variant.psnr, 1),
        _number(variant.ssim, 3),
        _number(variant.lowest_ssim, 3),
        *(
            _number(rate, 0)
            for rate in (
                variant.decoded_per_second,
                variant.cropped_per_second,
                variant.loaded_per_second,
                variant.encoded_per_second,
            )
        ),
        pack_options(variant) or ("none" if variant.name == ORIGINAL else ""),
    )


def pack_options(variant: VariantForecast) -> str:
    """The options of `recordsmith pack` for a variant; empty for the original images."""
    given = (variant.options or {}).items()
    return " ".join(
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
        for name, value in given
    )


def remarks(report: ForecastReport) -> Iterator[str]:
    """Sentences that explain the table."""
    if not report.image_count:
        yield f"No sample has an encoded image in `{IMAGE}`, so only the size is forecast."
        return
    if report.threads is not None:
        threads = counted(report.threads, "thread")
        yield (
            f"Images per second, measured on this machine: decodes/s, crops/s (random crops) "
            f"and stores/s of one thread, loads/s of a loader with {threads}, for training images "
            f"of {report.size} x {report.size} pixels."
        )
    names = {variant.name for variant in report.variants}
    if any(name.startswith("side-") for name in names):
        yield "PSNR and SSIM of smaller images measure the loss after resizing."
    if FLOATS in names:
        yield (
            f"`{report.variant(FLOATS).label}` is what matplotlib's imread returns; `pack` does "
            "not write it."
        )
    for variant in report.variants:
        if variant.refused_count:
            refused = counted(variant.refused_count, "sampled image")
            yield f"{variant.label}: left out {refused}; the first: {variant.refusal}."
    for name, equal in report.equal_variants.items():
        label = report.variant(name).label
        names_of_equal = ", ".join(equal)
        yield f"Not listed, because they store all sampled images as `{label}`: {names_of_equal}."
    for name, message in report.left_out.items():
        yield f"Not forecast: {name}: {message}"


def _error(share: float) -> str:
    if not share:
        return "exact"
    return f"±{_percent(share)}" if share >= _LEAST_SHOWN else f"<{_percent(_LEAST_SHOWN)}"


def _percent(share: float) -> str:
    """A share with two significant digits: 0.34 %, 12 %."""
    digits = 2 if share < 0.00995 else 1 if share < 0.0995 else 0
    return f"{100 * share:,.{digits}f} %"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
