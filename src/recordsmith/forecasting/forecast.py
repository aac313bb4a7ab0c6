"""`recordsmith.forecast`: how large a dataset becomes, and how fast it loads, before packing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from statistics import fmean
from typing import Any, TypeVar

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.building import ShardCounts, check_shard_options
from recordsmith.building.shares import shard_counts
from recordsmith.dataset import DEFAULT_TEMPLATE
from recordsmith.errors import (
    MOST_PROBLEMS,
    DataError,
    FileAccessError,
    SourceError,
)
from recordsmith.forecasting.estimation import (
    Choice,
    Estimate,
    KnownSamples,
    Numbers,
    choose_samples,
)
from recordsmith.forecasting.forecast_report import ForecastReport, VariantForecast
from recordsmith.forecasting.image_header import NO_IMAGE, ImageHeaderFigures, read_figures
from recordsmith.forecasting.speed import Speeds, measure_speeds
from recordsmith.forecasting.stored_sample import (
    SampleStorage,
    StoredRecord,
    StoredSample,
    image_of,
)
from recordsmith.forecasting.variants import Variant, make_variants
from recordsmith.loading.number_options import whole_number
from recordsmith.packing.recipe import Recipe
from recordsmith.sources import Listing, Source, check_source
from recordsmith.sources.numbered import SampleTable, collect
from recordsmith.sources.samples_ahead import SamplesAhead, SampleToRead
from recordsmith.work import Progress, Work, thread_count

Result = TypeVar("Result")

_FEWEST_SAMPLES = 10
_AHEAD = 2  # samples in progress for each thread
_HEADER_BYTES = 1 << 29
"""About how many bytes are read for headers: sources read files whole."""
_TIMED_IMAGES, _TIMED_BYTES = 48, 1 << 26


def forecast(
    source: Source,
    *,
    sample_count: int = 200,
    seed: int = 0,
    qualities: Iterable[int] = (100, 95, 90, 80),
    shorter_sides: Iterable[int] = (512, 256),
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    keys: str | Mapping[str, str | None] | None = None,
    size: int = 224,
    measure_speed: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ForecastReport:
    """Forecast the size, fidelity and speed of a dataset for several ways to store images.

    Stores a random sample in each way, with the functions of `pack`, and writes nothing. Sizes are
    extrapolated from the sizes of all samples and from the headers of many more of them.

    Args:
        source: a path or the samples, as for `pack`.
        sample_count: number of samples to store; all of them if there are fewer. Then the sizes are
            exact. Below 100, the intervals are less reliable.
        seed: random seed of the sample.
        qualities: qualities of JPEG. Once for images in other formats only, and once for all
            images.
        shorter_sides: lengths of the shorter side, in pixels, to which images are scaled down.
        shards: number of shards of each split. A dict has a number for each split.
        shard_size_bytes: approximate size of a shard before compression, instead of `shards`; None
            for 256MB.
        keys: as for `pack`.
        size: height and width of training images, for the speeds.
        measure_speed: whether to measure speeds, which takes about a second per variant.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done, total)` with numbers of samples.

    Returns:
        A report with the figures of each variant.

    Raises:
        SourceError: the source is empty, or no sampled sample can be read.
        OptionError: an option is invalid.
        FileAccessError: a folder cannot be read.

    Example:
        report = rs.forecast(rs.ImageFolder("flowers"), qualities=(95, 80))
    """
    source = check_source(source)
    sample_count = whole_number("sample_count", sample_count, _FEWEST_SAMPLES)
    size = whole_number("size", size, 1)
    seed = whole_number("seed", seed, 0)
    check_shard_options(shards, shard_size_bytes, DEFAULT_TEMPLATE)
    variants = make_variants(qualities, shorter_sides)
    recipe = Recipe(keys=keys)
    count = thread_count(threads)
    listing = source.list_samples()
    samples = collect(listing.samples)
    choice = choose_samples(samples.sizes.astype(float), sample_count, _HEADER_BYTES, seed)
    storage = SampleStorage(recipe.preparation(listing), variants)
    encoded = choice.encoded
    work = Work(count, progress, len(encoded) * len(variants) + len(choice.with_headers))

    def store(item: SampleToRead) -> StoredSample:
        stored = storage.store(item)
        work.advance(len(variants))
        return stored

    def read_header(item: SampleToRead) -> ImageHeaderFigures:
        figures = storage.figures(item)
        work.advance(1)
        return figures

    def each(function: Callable[[SampleToRead], Result], numbers: Int64Array) -> list[Result]:
        with _reading(listing, numbers) as items:
            return list(work.in_order(function, items, ahead=_AHEAD * count))

    stored = each(store, encoded)
    failures = [f"{sample.name}: {sample.failure}" for sample in stored if sample.failure]
    if not any(sample.records for sample in stored):
        raise SourceError(
            f"none of {len(stored)} sampled samples can be read", failures, lists_problems=True
        )
    has_images = any(sample.figures != NO_IMAGE for sample in stored)
    headers: list[ImageHeaderFigures] = []
    if has_images:
        headers = each(read_header, choice.with_headers)
    else:
        choice = choice._replace(chosen=choice.chosen[: choice.random_count])
        variants = variants[:1]
    variants, equal = _distinct_variants(variants, stored, storage.missing)
    speeds: dict[str, Speeds] = {}
    if measure_speed and has_images:
        images = _some_images(storage, listing, encoded)
        speeds = {
            variant.name: measure_speeds(images, variant.options, size, count)
            for variant in variants
            if variant.options is not None
        }
    figures = [sample.figures for sample in stored[len(choice.certain) :]] + headers
    known = KnownSamples(
        samples.sizes[choice.others].astype(float),
        choice.chosen,
        np.array([each.value_bytes for each in figures], float),
        np.array([each.coarseness for each in figures]),
    )
    totals = [_estimate(known, choice, stored, figures, variant) for variant in variants]
    by_split = _by_split(samples, listing)
    return ForecastReport(
        sample_count=len(samples),
        source_bytes=int(samples.sizes.sum()),
        sampled_count=len(stored),
        certain_count=len(choice.certain),
        header_count=len(choice.certain) + len(choice.chosen) if has_images else 0,
        seed=seed,
        image_count=sum(sample.figures != NO_IMAGE for sample in stored),
        variants=tuple(
            _figures(
                variant,
                _records(stored, variant),
                total,
                totals[0].value,
                _shard_count(total, by_split, shards, shard_size_bytes),
                speeds.get(variant.name, Speeds()),
            )
            for variant, total in zip(variants, totals, strict=True)
        ),
        equal_variants=equal,
        left_out=dict(storage.missing),
        unreadable=tuple(failures[:MOST_PROBLEMS]),
        unreadable_count=len(failures),
        size=size,
        threads=count if speeds else None,
        notices=tuple(listing.notices),
    )


def _distinct_variants(
    variants: Sequence[Variant], stored: Sequence[StoredSample], missing: Mapping[str, str]
) -> tuple[list[Variant], dict[str, tuple[str, ...]]]:
    """Variants that store some image differently, and the names of those that equal another."""
    kept: list[Variant] = []
    equal: dict[str, tuple[str, ...]] = {}
    first: dict[tuple[Any, ...], str] = {}
    for variant in variants:
        if variant.name in missing:
            continue
        contents = tuple(
            (sample.size_in(variant), record.content)
            for sample in stored
            if (record := sample.records.get(variant.name)) is not None
        )
        if not contents:
            continue
        twin = first.setdefault(contents, variant.name)
        if twin == variant.name:
            kept.append(variant)
        else:
            equal[twin] = (*equal.get(twin, ()), variant.name)
    names = {variant.name for variant in kept}
    kept = [variant if variant.twin in names else variant.without_twin() for variant in kept]
    return kept, equal


@contextmanager
def _reading(listing: Listing, numbers: Int64Array) -> Iterator[Iterator[SampleToRead]]:
    """The samples of these numbers, which are read ahead over a network."""
    samples = map(listing.samples.__getitem__, numbers.tolist())
    with SamplesAhead(listing.reader, 1) as ahead, closing(ahead.each(samples)) as items:
        yield items


def _some_images(storage: SampleStorage, listing: Listing, numbers: Int64Array) -> list[bytes]:
    """The first images of a sample, to measure with."""
    images: list[bytes] = []
    pixel_bytes = 0
    with _reading(listing, numbers) as items:
        for item in items:
            try:
                features = storage.image_features(item)[1]
            except (DataError, FileAccessError, SourceError):
                continue
            data = image_of(features)
            figures = NO_IMAGE if data is None else read_figures(data)
            if data is None or figures == NO_IMAGE:
                continue
            images.append(data)
            pixel_bytes += figures.value_bytes
            if len(images) == _TIMED_IMAGES or pixel_bytes > _TIMED_BYTES:
                break
    return images


def _estimate(
    known: KnownSamples,
    choice: Choice,
    stored: Sequence[StoredSample],
    figures: Sequence[ImageHeaderFigures],
    variant: Variant,
) -> Estimate:
    """Estimate the bytes of all records.

    Args:
        figures: of the chosen samples that are not certain.
    """
    values: Numbers = np.array([sample.size_in(variant) for sample in stored], float)
    certain = values[: len(choice.certain)].sum()
    others = known.estimate_total(
        values[len(choice.certain) :],
        groups=np.array([2 * variant.keeps(each) + each.is_jpeg for each in figures], np.int64),
        scale=np.array([variant.scale(each) for each in figures]),
    )
    return Estimate(*(float(round(certain + end)) for end in others))


def _by_split(samples: SampleTable, listing: Listing) -> dict[str, tuple[int, float]]:
    """For each split the number of its samples, and its share of the bytes."""
    total = max(1, int(samples.sizes.sum()))
    if not listing.splits or samples.splits is None:
        return {listing.only_split or "train": (len(samples), 1.0)}
    names, numbers = samples.splits
    chosen = {name: numbers == place for place, name in enumerate(names)}
    return {
        name: (int(mask.sum()), float(samples.sizes[mask].sum()) / total)
        for name, mask in chosen.items()
    }


def _shard_count(
    total: Estimate,
    by_split: Mapping[str, tuple[int, float]],
    shards: ShardCounts | None,
    shard_size_bytes: int | None,
) -> int:
    records = {name: count for name, (count, _) in by_split.items()}
    sizes = {name: round(total.value * share) for name, (_, share) in by_split.items()}
    return sum(shard_counts(records, sizes, shards, shard_size_bytes, noun="sample").values())


def _records(stored: Sequence[StoredSample], variant: Variant) -> list[StoredRecord]:
    return [sample.records[variant.name] for sample in stored if variant.name in sample.records]


def _figures(
    variant: Variant,
    records: Sequence[StoredRecord],
    total: Estimate,
    original_bytes: float,
    shard_count: int,
    speeds: Speeds,
) -> VariantForecast:
    found = [record.fidelity for record in records if record.fidelity is not None]
    psnrs = [one.psnr for one in found if one.psnr is not None]
    ssims = [one.ssim for one in found if one.ssim is not None]
    refusals = [record.refusal for record in records if record.refusal]
    options: dict[str, Any] | None = None
    if variant.options is not None:
        options = variant.options.to_json()
        if not any(record.drops_alpha for record in records):
            options.pop("drop_alpha", None)
    return VariantForecast(
        name=variant.name,
        label=variant.label,
        options=options,
        size_bytes=total,
        ratio=total.value / original_bytes if original_bytes else 1.0,
        shard_count=shard_count,
        lossy_count=len(found),
        psnr=fmean(psnrs) if psnrs else None,
        lowest_psnr=min(psnrs, default=None),
        ssim=fmean(ssims) if ssims else None,
        lowest_ssim=min(ssims, default=None),
        decoded_per_second=speeds.decoded,
        cropped_per_second=speeds.cropped,
        loaded_per_second=speeds.loaded,
        encoded_per_second=speeds.encoded,
        refused_count=len(refusals),
        refusal=refusals[0] if refusals else "",
    )
