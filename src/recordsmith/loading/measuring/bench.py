"""`recordsmith.bench`: measure how fast a dataset loads, and what limits it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import fields, replace

from recordsmith.dataset import Dataset, Paths, dataset_of, records_of
from recordsmith.format.example import Schema
from recordsmith.format.example.usual_names import find_images
from recordsmith.image import FitKind
from recordsmith.loading.features.feature import Feature
from recordsmith.loading.features.images.image import Image
from recordsmith.loading.loader import Loader
from recordsmith.loading.loader_stats import LoaderStats
from recordsmith.loading.measuring.bench_report import BenchReport
from recordsmith.support.errors import OptionError, option
from recordsmith.support.number_options import whole_number

_FIRST_BATCHES = 3
_WARM_UP_SHARE = 0.5  # maximum share of the time, if batches are slow
_UPDATE_SECONDS = 0.25
_NOT_COUNTED = ("thread_count", "processor_count")

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
    shuffle: bool = True,
    skip_errors: int = 0,
    seconds: float = 10.0,
    on_update: OnUpdate | None = None,
) -> BenchReport:
    """Measure how fast a dataset loads, and what limits it.

    Args:
        paths_or_dataset: a path as for `open`, or a Dataset.
        split: only this split, or part of one: train, train[:80%]. None for all.
        batch_size: examples in a batch.
        threads: decoding threads; 0 decodes in the main thread; None for one per processor.
        skip_errors: skip up to this number of damaged records.
        size: height and width of images in pixels, or one number for both.
        fit: resize, crop-or-pad, center-crop, contain, random-crop or pad. As for Image; with
            `pad`, `size` is the length of the longer side.
        key: the feature that holds the images; None to detect it. Without images, all features are
            read as columns.
        shuffle: whether to shuffle records.
        seconds: about how long to measure, in seconds.
        on_update: called with the current report, a few times per second.

    Returns:
        The measurement, with advice that is based on it.

    Raises:
        OptionError: an option is invalid for this dataset, or the dataset has no records.
        CorruptDataError: a record is damaged, after `skip_errors` others.
        FileAccessError: as for `open`.

    Example:
        report = rs.bench("out", size=64, seconds=0.5)
    """
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise OptionError(option="seconds", value=seconds, expected="a positive number")
    dataset = dataset_of(paths_or_dataset, split)
    if not len(dataset):
        raise OptionError("the dataset has no records to measure")
    schema, _ = dataset.view.preview_schema()
    key = _image_key(schema, key)
    image = None if key is None else _image_of(key, size, fit)
    shards = records_of(dataset).used_shards()
    with Loader(
        dataset,
        _columns(schema) if image is None else {"image": image},
        batch_size=batch_size,
        shuffle=shuffle,
        threads=threads,
        skip_errors=skip_errors,
        epochs=None,
    ) as loader:
        report = BenchReport(
            record_count=len(dataset),
            size_bytes=sum(f.size_bytes for shard in shards for f in (shard, *shard.layers)),
            batch_size=batch_size,
            image_key=key,
            image="" if image is None else _describe_image(image),
            order="shuffled" if shuffle else "in order",
            total_seconds=float(seconds),
            measured=loader.stats(),
        )
        return _measure(loader, report, on_update or (lambda _: None))


def _measure(loader: Loader, report: BenchReport, on_update: OnUpdate) -> BenchReport:
    """Load for some time: at least a batch after the warm-up, whose batches are not counted."""
    begun = time.perf_counter()
    on_update(report)
    batches = iter(loader)
    for _ in range(_FIRST_BATCHES):
        next(batches)
        if time.perf_counter() - begun > _WARM_UP_SHARE * report.total_seconds:
            break
    before, start, cpu_start = loader.stats(), time.perf_counter(), time.process_time()
    updated = start
    while True:
        next(batches)
        now = time.perf_counter()
        is_complete = now - begun >= report.total_seconds
        if is_complete or now - updated >= _UPDATE_SECONDS:
            report = replace(
                report,
                measured=_difference(before, loader.stats(), now - start),
                cpu_seconds=time.process_time() - cpu_start,
                skipped=tuple({str(error): error for error in loader.skipped}.values()),
                elapsed_seconds=now - begun,
                is_complete=is_complete,
            )
            on_update(report)
            updated = now
        if is_complete:
            return report


def _difference(before: LoaderStats, after: LoaderStats, seconds: float) -> LoaderStats:
    counted = {
        field.name: getattr(after, field.name) - getattr(before, field.name)
        for field in fields(LoaderStats)
        if field.name.endswith(("_seconds", "_count")) and field.name not in _NOT_COUNTED
    }
    return replace(after, **{**counted, "elapsed_seconds": seconds, "first_batch_seconds": 0.0})


def _image_key(schema: Schema, key: str | None) -> str | None:
    images = [name for name, known in schema.features.items() if known.content == "image"]
    if key is None:
        return next((name for name in find_images(schema.features) if name in images), None)
    if key in images:
        return key
    known = schema.features.get(key)
    what = "does not exist" if known is None else f"has {known.content or known.kind}, not images"
    remedy = f"Without {option('key')}, all columns are measured."
    if images:
        remedy = f"Images are in {', '.join(map(repr, images))}."
    raise OptionError(f"feature {key!r} {what}", option="key", value=key, remedy=remedy)


def _image_of(key: str, size: tuple[int, int] | int, fit: FitKind) -> Image:
    """The loader feature for the images; with `pad`, the size is that of the longer side."""
    if fit == "pad":
        return Image(key, fit=fit, longer_side=whole_number("size", size, 1))
    return Image(key, size, fit)


def _describe_image(image: Image) -> str:
    if image.size is None:
        return f"longer side {image.longer_side}, padded to the largest of a batch"
    assert isinstance(image.size, tuple)
    return f"{image.size[0]}x{image.size[1]}, fit={image.fit}"


def _columns(schema: Schema) -> dict[str, Feature | str] | None:
    """All features with a single kind."""
    kinds = {key: known.kind for key, known in schema.features.items()}
    return {key: key for key, kind in kinds.items() if kind not in ("mixed", "none")} or None
