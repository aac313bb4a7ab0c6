"""Measure how fast some images are encoded, and decoded as in training.

Figures of one thread are CPU time, which other processes hardly affect; those of the loader are
elapsed time with all its threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from recordsmith.dataset import Dataset, ShardWriter
from recordsmith.dataset import open as open_dataset
from recordsmith.errors import RecordsmithError
from recordsmith.example.keys import DEPTH, HEIGHT, IMAGE, WIDTH
from recordsmith.image import ImageOptions, StoredImage, store_image
from recordsmith.loading import Image, Loader
from recordsmith.stores import Location, MemoryStore

_SECONDS = 0.25
_BATCH = 16


class Speeds(NamedTuple):
    """Images per second; None where it could not be measured.

    encoded: stored so by one thread of `pack`; None if the bytes are kept.
    decoded: decoded and resized by one thread.
    cropped: decoded and resized by one thread, a random crop of each.
    loaded: by a loader with all its threads.
    """

    encoded: float | None = None
    decoded: float | None = None
    cropped: float | None = None
    loaded: float | None = None


def measure_speeds(
    images: Sequence[bytes], options: ImageOptions, size: int, threads: int | None
) -> Speeds:
    """Measure one way to store images.

    Args:
        images: as they are; used as far as time allows, at least one.
        options: how they are stored.
        size: height and width of training images.
        threads: of the loader.
    """
    try:
        stored, encoded = _store(images, options)
        dataset = _written(stored)
        image = Image(size=size)
        if options.store == "raw":
            image = Image(size=size, raw_shape=(HEIGHT, WIDTH, DEPTH), raw_dtype=stored[0].dtype)  # type: ignore[arg-type]
        decoded = _load(dataset, image, 0, time.process_time)
        crop = replace(image, fit="random-crop")
        cropped = _load(dataset, crop, 0, time.process_time)
        loaded = _load(dataset, image, threads, time.perf_counter)
    except RecordsmithError:
        return Speeds()
    return Speeds(None if options.is_default else encoded, decoded, cropped, loaded)


def _store(images: Sequence[bytes], options: ImageOptions) -> tuple[list[StoredImage], float]:
    """Store images of one dtype; return them, and how many per second."""
    stored: list[StoredImage] = []
    begun = time.process_time()  # of all threads: oxipng has its own
    for data in images:
        stored.append(store_image(data, options))
        if time.process_time() - begun > 2 * _SECONDS:
            break
    seconds = time.process_time() - begun
    alike = [image for image in stored if image.dtype == stored[0].dtype]
    return alike, len(stored) / max(seconds, 1e-9)


def _written(images: Sequence[StoredImage]) -> Dataset:
    place = Location(MemoryStore(), "sample.tfrecord")
    with ShardWriter(place) as writer:
        for image in images:
            features = {IMAGE: image.data, HEIGHT: image.height, WIDTH: image.width}
            if image.depth is not None:
                features[DEPTH] = image.depth
            writer.write_example(features)
    return open_dataset(place)


def _load(dataset: Dataset, image: Image, threads: int | None, clock: Any) -> float:
    """Images per second of a loader, without its first batch."""
    batch_size = min(_BATCH, len(dataset))
    with Loader(
        dataset, {"image": image}, batch_size=batch_size, epochs=None, threads=threads
    ) as loader:
        batches: Iterator[Any] = iter(loader)
        next(batches)
        begun, elapsed, count = clock(), 0.0, 0
        while elapsed < _SECONDS:
            count += len(next(batches)["image"])
            elapsed = clock() - begun
    return count / elapsed
