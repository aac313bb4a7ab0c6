"""`recordsmith.bench`: measure how fast a dataset loads, and what would make it faster.

The requested options are measured first; then, in short trials, other numbers of threads, other
orders, and some images packed with tiles and at a smaller size. Everything is measured twice,
alternating, so that a machine that is busy for a moment does not distort the comparison.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from recordsmith.dataset import Dataset, dataset_of, records_of
from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError
from recordsmith.image.geometry.fit import FitKind
from recordsmith.loading import BlockShuffle, Image, Loader, LoaderStats
from recordsmith.loading.order.link import measure_link
from recordsmith.measuring.advice import advise
from recordsmith.measuring.alternatives import Alternative, alternatives_to
from recordsmith.measuring.bench_report import BenchReport, Measured, Trial
from recordsmith.measuring.image_sample import sampled
from recordsmith.measuring.page_cache import cached_share
from recordsmith.measuring.selection import columns_of, describe_image, image_key, image_of
from recordsmith.measuring.trial import load_for

_ROUNDS = 2
_REQUESTED_WEIGHT = 3  # its time, relative to that of another trial
_SAMPLING_SHARE = 0.1  # of the time, for converting images
_SHORTEST_SECONDS = 0.02
_PREVIEW_COUNT = 64

OnUpdate = Callable[[BenchReport], None]


def bench(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    batch_size: int = 32,
    size: tuple[int, int] | int = 224,
    fit: FitKind = "resize",
    key: str | None = None,
    threads: int | None = None,
    shuffle: bool | None = None,
    skip_errors: int = 0,
    seconds: float = 10.0,
    on_update: OnUpdate | None = None,
) -> BenchReport:
    """Measure how fast a dataset loads, and what would make it faster.

    Args:
        paths_or_dataset: a path as for `open`, or a Dataset.
        split: load only this split of a path.
        batch_size, threads, skip_errors: as for Loader.
        size, fit: as for Image; with `pad`, the length of the longer side.
        key: the feature with the images; by default, it is detected. Without images, all features
            are read as columns.
        shuffle: whether to shuffle records. By default they are; compressed ones by BufferShuffle.
        seconds: the approximate total time.
        on_update: called with the current report, a few times per second.

    Returns:
        The measurements, with advice. An alternative is called faster only if it clearly was.

    Raises:
        OptionError: an option is invalid for this dataset, or the dataset has no records.
        CorruptDataError: a record is damaged, after `skip_errors` others.
        FileAccessError: as for `open`.

    Example:
        report = rs.bench("records", size=224, seconds=30)
    """
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise OptionError(option="seconds", value=seconds, expected="a positive number")
    dataset = dataset_of(paths_or_dataset, split)
    if not len(dataset):
        raise OptionError("the dataset has no records to measure")
    schema, _ = dataset.view.preview_schema(_PREVIEW_COUNT)
    key = image_key(schema, key)
    image = None if key is None else image_of(key, size, fit)
    options = {"batch_size": batch_size, "skip_errors": skip_errors, "epochs": None}
    features = columns_of(schema) if image is None else {"image": image}
    shards = records_of(dataset).used_shards()
    compressions = {shard.compression for shard in shards}
    shuffled = "shuffled" if shuffle or not compressions - {"none"} else "buffer"
    order = "in order" if shuffle is False else shuffled
    known = _checked(dataset, features, options, shuffle=shuffled == "shuffled", threads=threads)
    link = measure_link(dataset)
    report = BenchReport(
        record_count=len(dataset),
        size_bytes=sum(shard.size_bytes for shard in shards),
        batch_size=batch_size,
        image_key=key,
        image="" if image is None else describe_image(image),
        compression="mixed" if len(compressions) > 1 else next(iter(compressions), "none"),
        processor_count=known.processor_count,
        cached_share=None if link is not None else cached_share(shards),
        link=link,
        total_seconds=float(seconds),
    )
    blocks = BlockShuffle() if link is None else BlockShuffle.for_link(link)
    requested = Alternative(Trial("requested", known.thread_count, order), dataset, blocks)
    measuring = _Measuring(report, features, options, on_update)
    with ExitStack() as stack:
        measuring.run(requested, image, stack)
    return measuring.report


class _Measuring:
    """Measures alternatives in turn and collects the results."""

    def __init__(
        self,
        report: BenchReport,
        features: Any,
        options: dict[str, Any],
        on_update: OnUpdate | None,
    ) -> None:
        self.report = report
        self._features = features
        self._options = options
        self._on_update = on_update
        self._begun = time.perf_counter()
        self._rounds: dict[Trial, tuple[Measured, ...]] = {}

    def run(self, requested: Alternative, image: Image | None, stack: ExitStack) -> None:
        """Measure all alternatives twice as far as time allows; the first one in any case."""
        seconds = self.report.total_seconds
        others = alternatives_to(requested, self.report.processor_count)
        expected = _REQUESTED_WEIGHT + len(others) + (3 if image is not None else 0)
        self._measure(requested, seconds * _REQUESTED_WEIGHT / expected / _ROUNDS)
        if image is not None:
            others += self._samples(requested, image, stack)
        weights = [(alternative, 1) for alternative in others]
        plan = [*weights, *[(requested, _REQUESTED_WEIGHT), *weights] * (_ROUNDS - 1)]
        while plan:
            weight_left = sum(weight for _, weight in plan)
            alternative, weight = plan.pop(0)
            stretch = (seconds - self._elapsed_seconds) * weight / weight_left
            if stretch >= _SHORTEST_SECONDS:
                self._measure(alternative, stretch)
        self._update("")

    def _samples(self, requested: Alternative, image: Image, stack: ExitStack) -> list[Alternative]:
        """The alternatives for a sample of the images: unchanged, with tiles and smaller."""
        self._update("converting some images")
        seconds = _SAMPLING_SHARE * self.report.total_seconds
        sample = stack.enter_context(sampled(requested.dataset, image, seconds))
        if sample is None:
            return []
        self.report = replace(self.report, sample=sample.counts)
        trial = replace(requested.trial, name="sample", order="shuffled")
        found = [Alternative(trial, sample.original)]
        if sample.tiles is not None:
            found.append(Alternative(replace(trial, name="tiles"), sample.tiles))
        if sample.smaller is not None:
            smaller = replace(trial, name="smaller", shorter_side=sample.shorter_side)
            found.append(Alternative(smaller, sample.smaller))
        return found

    def _measure(self, alternative: Alternative, seconds: float) -> None:
        before = self._rounds.get(alternative.trial, ())

        def keep(measured: Measured) -> None:
            self._rounds[alternative.trial] = (*before, measured)
            self._update(alternative.trial.label)

        self._update(alternative.trial.label)
        measured, skipped = load_for(
            seconds, lambda: alternative.loader(self._features, self._options), keep
        )
        known = {str(error): error for error in self.report.skipped}
        self.report = replace(self.report, skipped=tuple((known | skipped).values()))
        keep(measured)

    @property
    def _elapsed_seconds(self) -> float:
        return time.perf_counter() - self._begun

    def _update(self, activity: str) -> None:
        """Update the report and pass it to the callback."""
        report = replace(
            self.report,
            trials=tuple(replace(trial, rounds=done) for trial, done in self._rounds.items()),
            elapsed_seconds=self._elapsed_seconds,
            activity=activity,
        )
        self.report = replace(report, advice=advise(report))
        if self._on_update is not None:
            self._on_update(self.report)


def _checked(
    dataset: Dataset, features: Any, options: dict[str, Any], *, shuffle: bool, threads: int | None
) -> LoaderStats:
    """The stats of a loader with these options; raises OptionError if they are invalid."""
    return Loader(dataset, features, shuffle=shuffle, threads=threads, **options).stats()
