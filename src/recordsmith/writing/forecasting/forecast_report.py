"""The result of `forecast`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from recordsmith.format.example.keys import IMAGE
from recordsmith.support.reports import Bar, Example, ReportContent, ReportTable, ShownFinding
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count
from recordsmith.support.words import size as format_size

_MEAN_SSIM, _LOWEST_SSIM = 0.98, 0.95
_WORTH = 0.9
_MIN_SHOWN = 0.0001


class Estimate(NamedTuple):
    """An estimated total, and an interval that contains the true one for 95 of 100 seeds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class VariantForecast:
    """What a dataset would be if its images were stored in one way.

    Attributes:
        name, label: of the variant, for programs and people.
        options: `ImageOptions` as keyword arguments.
        size_bytes: of all shards: value, and the low and high end of the interval.
        ratio: to the size of the dataset with the original images, without those that were refused.
        lossy_count: sampled images, of 11 pixels a side or more, that were encoded with loss.
        ssim, lowest_ssim: mean and lowest structural similarity of all sampled images of this
            size, so that variants compare the same images: 1 for those that keep their pixels. Of
            images that are also resized, it measures the loss after resizing. None without loss.
        refused_count, refusal: sampled images that cannot be stored so, and the first reason. They
            count as left out, as with `skip_errors`.
    """

    name: str
    label: str
    options: Mapping[str, Any]
    size_bytes: Estimate
    ratio: float
    lossy_count: int = 0
    ssim: float | None = None
    lowest_ssim: float | None = None
    refused_count: int = 0
    refusal: str = ""

    @property
    def error(self) -> float:
        """Half the interval as a share of the size."""
        half = (self.size_bytes.high - self.size_bytes.low) / 2
        return half / self.size_bytes.value if self.size_bytes.value else 0.0

    @property
    def pack_options(self) -> str:
        """The options of `recordsmith pack`; empty for the original images."""
        return " ".join(
            f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}")
            for name, value in self.options.items()
        )


@dataclass(frozen=True, repr=False)
class ForecastReport(Report):
    """The result of `forecast`.

    sample_count: samples in the source.
    source_bytes: their size.
    sampled_count: how many of them were stored in each variant.
    certain_count: how many of these were chosen because they are very large, not at random.
    seed: of the sample.
    image_count: sampled samples with an encoded image.
    variants: the figures of each, the original images first.
    unreadable: the first sampled samples that cannot be read or decoded, at most 100.
    unreadable_count: their number.
    notices: what the source ignored.
    """

    sample_count: int
    source_bytes: int
    sampled_count: int
    certain_count: int
    seed: int
    image_count: int
    variants: tuple[VariantForecast, ...]
    unreadable: tuple[str, ...] = ()
    unreadable_count: int = 0
    notices: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether every sample was stored, so that sizes are exact."""
        return self.sampled_count == self.sample_count

    @property
    def original(self) -> VariantForecast:
        """The dataset with the original images."""
        return self.variants[0]

    def variant(self, name: str) -> VariantForecast:
        """Look up a variant.

        Raises:
            KeyError: there is no such variant.
        """
        return {variant.name: variant for variant in self.variants}[name]

    @property
    def recommended(self) -> VariantForecast:
        """The smallest variant that keeps size and appearance of the images; often the original.

        Appearance: mean structural similarity of at least 0.98, and 0.95 for every image. It
        must also save a tenth of the bytes.
        """
        keeping = [
            variant
            for variant in self.variants
            if not variant.refused_count
            and "shorter_side" not in variant.options
            and (variant.ssim or 1.0) >= _MEAN_SSIM
            and (variant.lowest_ssim or 1.0) >= _LOWEST_SSIM
            and variant.ratio <= _WORTH
        ]
        return min(keeping, key=lambda variant: variant.size_bytes.value, default=self.original)

    @property
    def method(self) -> str:
        """What was stored, and what was extrapolated."""
        if self.is_exact:
            return f"all {format_count(self.sample_count, 'sample')} stored: sizes are exact"
        certain = ""
        if self.certain_count:
            certain = f", {self.certain_count:,} of them because they are the largest"
        return (
            f"{self.sampled_count:,} of {self.sample_count:,} samples stored (seed "
            f"{self.seed}{certain}); 95 % intervals"
        )

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        best, largest = self.recommended, max(variant.size_bytes.value for variant in self.variants)
        samples = format_count(self.sample_count, "sample")
        verdict = "only the size is forecast"
        if best is not self.original:
            verdict = f"smallest without visible loss at full size: {best.label}: "
            verdict += f"`recordsmith pack SOURCE OUT {best.pack_options}`"
        elif self.image_count:
            verdict = "no variant is much smaller without visible loss; keep the images as they are"
        heads = ("stored as", "size", "", "error", "of original", "SSIM", "lowest SSIM")
        rows = [
            (
                variant.label,
                format_size(variant.size_bytes.value),
                Bar(variant.size_bytes.value / max(1.0, largest)),
                _error(variant.error),
                _percent(variant.ratio),
                _number(variant.ssim),
                _number(variant.lowest_ssim),
                variant.pack_options or "none",
            )
            for variant in self.variants
        ]
        listed = (
            ("unreadable", "samples that cannot be read.", self.unreadable, self.unreadable_count),
            ("notices", "of the source.", self.notices, len(self.notices)),
        )
        return ReportContent(
            summary=f"{samples}, {format_size(self.source_bytes)}: {self.method}",
            verdict=verdict,
            level="good",
            figures=(
                (f"{self.sample_count:,}", "samples"),
                (format_size(self.original.size_bytes.value), "as it is"),
                (format_size(best.size_bytes.value), f"recommended: {best.label}"),
            ),
            tables=[
                ReportTable(
                    "",
                    (*heads, "pack options"),
                    rows,
                    (heads[1], *heads[3:]),
                    (heads[6], "pack options", heads[4], heads[3]),
                    wide=("",),
                )
            ],
            findings=[
                ShownFinding(kind, text, count=count, examples=[*map(Example, lines)])
                for kind, text, lines, count in listed
                if count
            ],
            notes=[*self._notes()],
        )

    def _notes(self) -> Iterator[str]:
        if not self.image_count:
            yield f"No sample has an encoded image in `{IMAGE}`, so only the size is forecast."
            return
        if any("shorter_side" in variant.options for variant in self.variants):
            yield "SSIM of smaller images measures the loss after resizing."
        for variant in self.variants:
            if variant.refused_count:
                refused = format_count(variant.refused_count, "sampled image")
                yield f"{variant.label}: left out {refused}; the first: {variant.refusal}."


def _error(share: float) -> str:
    if not share:
        return "exact"
    return f"±{_percent(share)}" if share >= _MIN_SHOWN else f"<{_percent(_MIN_SHOWN)}"


def _percent(share: float) -> str:
    """A share with two significant digits: 0.34 %, 12 %."""
    digits = 2 if share < 0.00995 else 1 if share < 0.0995 else 0
    return f"{100 * share:,.{digits}f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
