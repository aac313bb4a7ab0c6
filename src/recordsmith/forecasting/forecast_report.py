"""The result of `forecast`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recordsmith.forecasting.estimation import Estimate
from recordsmith.summaries import Report


@dataclass(frozen=True)
class VariantForecast:
    """What a dataset would be if its images were stored in one way.

    Attributes:
        name, label: of the variant, for programs and people.
        options: `ImageOptions` as keyword arguments; None if `pack` does not store images so.
        size_bytes: of all shards: value, and the low and high end of the interval.
        ratio: to the size of the dataset with the original images.
        shard_count: at the requested size of a shard.
        lossy_count: sampled images that were encoded with loss. The next four figures are of these;
            of images that are also resized, they measure the loss after resizing.
        psnr, lowest_psnr: mean and lowest peak signal-to-noise ratio in decibels; None if no pixel
            changed.
        ssim, lowest_ssim: mean and lowest structural similarity; 1 for equal images.
        decoded_per_second: images that one thread decodes and resizes for training.
        cropped_per_second: images of which one thread decodes a random crop and resizes it.
        loaded_per_second: images that a loader returns with all its threads.
        encoded_per_second: images that one thread of `pack` stores; None if they are kept.
        refused_count, refusal: sampled images that cannot be stored so, and the first reason. They
            count as left out, as with `skip_errors`.
    """

    name: str
    label: str
    options: Mapping[str, Any] | None
    size_bytes: Estimate
    ratio: float
    shard_count: int
    lossy_count: int = 0
    psnr: float | None = None
    lowest_psnr: float | None = None
    ssim: float | None = None
    lowest_ssim: float | None = None
    decoded_per_second: float | None = None
    cropped_per_second: float | None = None
    loaded_per_second: float | None = None
    encoded_per_second: float | None = None
    refused_count: int = 0
    refusal: str = ""

    @property
    def error(self) -> float:
        """Half the interval as a share of the size."""
        half = (self.size_bytes.high - self.size_bytes.low) / 2
        return half / self.size_bytes.value if self.size_bytes.value else 0.0


@dataclass(frozen=True, repr=False)
class ForecastReport(Report):
    """The result of `forecast`.

    sample_count: samples in the source.
    source_bytes: their size.
    sampled_count: how many of them were stored in each variant.
    certain_count: how many of these were chosen because they are very large, not at random.
    header_count: images whose header was read, sampled ones included.
    seed: of the sample.
    image_count: sampled samples with an encoded image.
    variants: the figures of each, the original images first.
    equal_variants: the names of variants that store every sampled image as another one does, by the
        name of that one; they are not in `variants`.
    left_out: variants that need a package that is not installed, and the message.
    unreadable: the first sampled samples that cannot be read or decoded, at most 100.
    unreadable_count: their number.
    size: height and width of the training images for which speeds were measured.
    threads: of the loader for which speeds were measured; None if they were not measured.
    notices: what the source ignored.
    """

    sample_count: int
    source_bytes: int
    sampled_count: int
    certain_count: int
    header_count: int
    seed: int
    image_count: int
    variants: tuple[VariantForecast, ...]
    equal_variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    unreadable_count: int = 0
    size: int = 224
    threads: int | None = None
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
        """Look up a variant, also one that equals another.

        Raises:
            KeyError: there is no such variant.
        """
        for known, equal in self.equal_variants.items():
            name = known if name in equal else name
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
            if variant.options is not None
            and not variant.refused_count
            and "shorter_side" not in variant.options
            and (variant.ssim or 1.0) >= _MEAN_SSIM
            and (variant.lowest_ssim or 1.0) >= _LOWEST_SSIM
            and variant.ratio <= _WORTH
        ]
        return min(keeping, key=lambda variant: variant.size_bytes.value, default=self.original)

    def html_page(self, title: str | None) -> tuple[str, str, Iterable[str]]:
        """Return the title of the page, its style and its parts, for `save_html`."""
        from recordsmith.forecasting.forecast_page import forecast_page

        return forecast_page(self, title or "Forecast")


_MEAN_SSIM, _LOWEST_SSIM = 0.98, 0.95
_WORTH = 0.9
