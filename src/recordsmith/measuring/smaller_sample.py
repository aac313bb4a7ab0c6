"""Pack a sample of images at a smaller size, to measure whether that loads faster.

The sample covers the whole dataset and is written twice to a temporary folder: unchanged, and
resized by the same function that `pack` uses. Both are then loaded in turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from recordsmith.dataset import Dataset, ShardWriter, records_of
from recordsmith.dataset import open as open_dataset
from recordsmith.errors import CorruptDataError, SourceError
from recordsmith.example import decode_example
from recordsmith.image import ImageOptions, probe_image, store_image
from recordsmith.measuring.bench_report import ResizedSample

_MOST_IMAGES = 64
_MOST_BYTES = 64 << 20
_WORTH = 1.2  # the minimum factor between the size of images and the smaller size
_SPARE = 8 / 7  # images for 224 pixels are usually packed at 256, to allow crops


@dataclass(frozen=True)
class Samples:
    """A sample of images, unchanged and at a smaller size."""

    original: Dataset
    smaller: Dataset
    shorter_side: int
    counts: ResizedSample


def side_for(size: tuple[int, int]) -> int:
    """The shorter side at which to pack images for a size."""
    return round(max(size) * _SPARE)


@contextmanager
def sampled(dataset: Dataset, key: str, side: int, seconds: float) -> Iterator[Samples | None]:
    """Images of a dataset, as they are and at a shorter side, while the block runs; None if most
    are hardly larger than that.

    Args:
        seconds: the time limit for resizing; at least one image is made.
    """
    images: list[tuple[bytes, bytes]] = []
    size_bytes, begun = 0, time.monotonic()
    sides = []
    for record in _spread(dataset):
        try:
            data = decode_example(record)[key][0]
            assert isinstance(data, bytes)
            sides.append(min(probe_image(data)[1:]))
            stored = store_image(data, ImageOptions(shorter_side=side))
        except (CorruptDataError, SourceError, LookupError, AssertionError):
            continue  # the loader reports what cannot be read
        images.append((data, stored.data))
        size_bytes += len(data)
        if size_bytes > _MOST_BYTES or time.monotonic() - begun > seconds:
            break
    if not images or float(np.median(sides)) < _WORTH * side:
        yield None
        return
    with TemporaryDirectory(prefix="recordsmith-") as folder:
        originals, smaller = zip(*images, strict=True)
        yield Samples(
            _written(Path(folder) / "original.tfrecord", key, originals),
            _written(Path(folder) / "smaller.tfrecord", key, smaller),
            side,
            ResizedSample(len(images), sum(map(len, originals)), sum(map(len, smaller))),
        )


def _spread(dataset: Dataset) -> Iterator[bytes]:
    """Records spread over the dataset; the first ones of compressed shards."""
    records = records_of(dataset)
    if records.compressed_shard() is not None:
        yield from islice(dataset.records(), _MOST_IMAGES)
        return
    count = min(_MOST_IMAGES, len(dataset))
    for number in range(count):
        try:
            yield records.read_record(number * len(dataset) // count)
        except CorruptDataError:
            continue


def _written(path: Path, key: str, images: tuple[bytes, ...]) -> Dataset:
    with ShardWriter(path) as writer:
        for data in images:
            writer.write_example({key: data})
    return open_dataset(path)
