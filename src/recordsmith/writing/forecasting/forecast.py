"""`recordsmith.forecast`: how large a dataset becomes, before packing it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from statistics import NormalDist, fmean
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.sources import SamplesAhead, SampleToRead, Source, collect, source_of
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import SourceError
from recordsmith.support.number_options import whole_number
from recordsmith.support.problems import MAX_PROBLEMS
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.forecasting.forecast_report import (
    Estimate,
    ForecastReport,
    VariantForecast,
)
from recordsmith.writing.forecasting.stored_sample import (
    SampleStorage,
    StoredSample,
    Variant,
    make_variants,
)
from recordsmith.writing.packing.pack_options import PackOptions, SampleEncoder

Numbers: TypeAlias = npt.NDArray[np.float64]

_MIN_SAMPLES = 10
_AHEAD = 2  # samples in progress for each thread
_CONFIDENCE = 0.99
"""Of the quantile: more than the 95 % that are stated, because sizes are skewed and the normal
distribution is an approximation. `tests/writing/forecasting` counts how often they are right."""


def forecast(
    source: Source,
    *,
    sample_count: int = 200,
    seed: int = 0,
    qualities: Iterable[int] = (100, 95, 90, 80),
    shorter_sides: Iterable[int] = (512, 256),
    keys: str | Mapping[str, str | None] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ForecastReport:
    """Forecast the size and fidelity of a dataset for several ways to store images.

    Stores a random sample in each way, with the functions of `pack`, and writes nothing. Sizes are
    extrapolated by the sizes of all samples; their error is that of the spread in the sample.

    Args:
        source: a path or the samples, as for `pack`.
        sample_count: number of samples to store; all of them if there are fewer. Then the sizes are
            exact. Below 100, the intervals are less reliable.
        seed: random seed of the sample.
        qualities: qualities of JPEG. Once for images in other formats only, and once for all
            images.
        shorter_sides: lengths of the shorter side, in pixels, to which images are scaled down.
        keys: as for `pack`.
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
    source, _ = source_of(source)
    sample_count = whole_number("sample_count", sample_count, _MIN_SAMPLES)
    seed = whole_number("seed", seed, 0)
    variants = make_variants(qualities, shorter_sides)
    options = PackOptions(keys=keys)
    count = thread_count(threads)
    listing = source.list_samples()
    samples = collect(listing.samples)
    sizes = samples.sizes.astype(float)
    choice = choose_samples(sizes, sample_count, seed)
    storage = SampleStorage(SampleEncoder(options, listing.reader.kinds()), variants)
    workers = WorkerPool(count, progress, len(choice.numbers))

    def store(item: SampleToRead) -> StoredSample:
        stored = storage.store(item)
        workers.advance(1)
        return stored

    chosen = map(listing.samples.__getitem__, choice.numbers.tolist())
    with SamplesAhead(listing.reader, 1) as ahead, closing(ahead.each(chosen)) as items:
        stored = list(workers.in_order(store, items, ahead=_AHEAD * count))
    failures = [f"{sample.name}: {sample.failure}" for sample in stored if sample.failure]
    if not any(sample.records for sample in stored):
        raise SourceError(
            f"none of {len(stored)} sampled samples can be read", failures, lists_problems=True
        )
    if not any(sample.has_image for sample in stored):
        variants = variants[:1]
    figures: list[VariantForecast] = []
    notices = list(listing.notices)
    for variant in variants:
        with_image = [sample for sample in stored if variant.name in sample.records]
        records = [sample.records[variant.name] for sample in with_image]
        if records and all(record.refusal for record in records):  # such as for a missing package
            notices.append(f"{variant.label}: left out. {records[0].refusal}")
        elif records:
            stored_sizes = np.array([sample.size_in(variant) for sample in stored], float)
            total = estimate_total(sizes, choice, stored_sizes)
            same = [
                sample.size_in(variants[0]) * (sample.size_in(variant) > 0) for sample in stored
            ]
            original = estimate_total(sizes, choice, np.array(same, float))
            figures.append(_figures(variant, with_image, total, original.value))
    return ForecastReport(
        sample_count=len(samples),
        source_bytes=int(samples.sizes.sum()),
        sampled_count=len(stored),
        certain_count=choice.certain_count,
        seed=seed,
        image_count=sum(sample.has_image for sample in stored),
        variants=tuple(figures),
        unreadable=tuple(failures[:MAX_PROBLEMS]),
        unreadable_count=len(failures),
        notices=tuple(notices),
    )


class Choice(NamedTuple):
    """The numbers of the samples to store; the first `certain_count` are not chosen at random."""

    numbers: Int64Array
    certain_count: int


def choose_samples(sizes: Numbers, count: int, seed: int) -> Choice:
    """Choose a random sample.

    A sample that has more than its share of all bytes, one part in `count`, is always stored:
    otherwise a few large files would decide whether the estimate is right.
    """
    if count >= len(sizes):
        return Choice(np.arange(len(sizes)), 0)
    by_size = np.argsort(-sizes, kind="stable")[: count // 2]
    certain = np.sort(by_size[sizes[by_size] * count > sizes.sum()])
    others = np.setdiff1d(np.arange(len(sizes)), certain, assume_unique=True)
    places = random.Random(seed).sample(range(len(others)), count - len(certain))  # noqa: S311
    return Choice(np.concatenate((certain, others[places])), len(certain))


def estimate_total(sizes: Numbers, choice: Choice, values: Numbers) -> Estimate:
    """Estimate the sum of a number over all samples, from its values for the chosen ones.

    By the mean of the sample, or by its ratio to the size of the source files, whichever varies
    less (Cochran, Sampling Techniques, chapters 2 and 6).
    """
    known = float(values.sum())
    count = len(values) - choice.certain_count
    total_count = len(sizes) - choice.certain_count
    if count == total_count:
        return Estimate(known, known, known)
    certain = float(values[: choice.certain_count].sum())
    values = values[choice.certain_count :]
    chosen_sizes = sizes[choice.numbers[choice.certain_count :]]
    size = float(sizes.sum() - sizes[choice.numbers[: choice.certain_count]].sum())
    ratio = float(values.sum() / max(1.0, chosen_sizes.sum()))
    by_ratio = (float(np.square(values - ratio * chosen_sizes).sum()), ratio * size)
    by_mean = (float(np.square(values - values.mean()).sum()), total_count * float(values.mean()))
    squares, value = min(by_ratio, by_mean)
    variance = squares / max(1, count - 1) * (1 / count - 1 / total_count)
    error = total_count * math.sqrt(variance) * _quantile(count - 1)
    value += certain
    return Estimate(
        *(float(round(max(known, end))) for end in (value, value - error, value + error))
    )


def _quantile(freedom: int) -> float:
    """About Student's t for a two-sided interval: the first terms of Cornish and Fisher."""
    z, n = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2), max(1, freedom)
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)


def _figures(
    variant: Variant, samples: Sequence[StoredSample], total: Estimate, original_bytes: float
) -> VariantForecast:
    records = [sample.records[variant.name] for sample in samples]
    lossy_count = sum(record.ssim is not None for record in records)
    similarities = [
        1.0 if record.ssim is None else record.ssim  # of an image that is unchanged
        for sample, record in zip(samples, records, strict=True)
        if lossy_count and sample.is_measured and not record.refusal
    ]
    refusals = [record.refusal for record in records if record.refusal]
    options = variant.options.to_json()
    if not any(record.drops_alpha for record in records):
        options.pop("drop_alpha", None)
    return VariantForecast(
        name=variant.name,
        label=variant.label,
        options=options,
        size_bytes=total,
        ratio=total.value / original_bytes if original_bytes else 1.0,
        lossy_count=lossy_count,
        ssim=fmean(similarities) if similarities else None,
        lowest_ssim=min(similarities, default=None),
        refused_count=len(refusals),
        refusal=refusals[0] if refusals else "",
    )
