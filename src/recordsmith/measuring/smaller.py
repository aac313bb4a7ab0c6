"""Would pictures that are packed at a smaller side load faster? Some of them are packed so, to see.

A sample is taken from all over the dataset, and written twice into a temporary folder: as it is,
and at the smaller side, by the same function that `pack` uses. Both are then loaded in turn.
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

from recordsmith.dataset import Dataset, ShardWriter
from recordsmith.dataset import open as open_dataset
from recordsmith.errors import CorruptDataError, SourceError
from recordsmith.example import decode_example
from recordsmith.image import PictureOptions, probe_image, store_picture
from recordsmith.measuring.report import Sample

_MOST_PICTURES = 64
_MOST_BYTES = 64 << 20
_WORTH = 1.2  # how much larger pictures must be than what they would become
_SPARE = 8 / 7  # pictures for 224 pixels are usually packed at 256, which leaves room for crops


@dataclass(frozen=True)
class Samples:
    """Some pictures, as they are and at a smaller side."""

    original: Dataset
    smaller: Dataset
    shorter_side: int
    counts: Sample


def side_for(size: tuple[int, int]) -> int:
    """The shorter side at which pictures should be packed for a size."""
    return round(max(size) * _SPARE)


@contextmanager
def sampled(dataset: Dataset, key: str, side: int, seconds: float) -> Iterator[Samples | None]:
    """Pictures of a dataset, as they are and at a shorter side, while the block runs; None if most
    are hardly larger than that.

    Args:
        seconds: how long making them may take; there is one at least.
    """
    pictures: list[tuple[bytes, bytes]] = []
    size_bytes, begun = 0, time.monotonic()
    sides = []
    for record in _spread(dataset):
        try:
            data = decode_example(record)[key][0]
            assert isinstance(data, bytes)
            sides.append(min(probe_image(data)[1:]))
            stored = store_picture(data, PictureOptions(shorter_side=side))
        except (CorruptDataError, SourceError, LookupError, AssertionError):
            continue  # what cannot be read is said where it is loaded
        pictures.append((data, stored.data))
        size_bytes += len(data)
        if size_bytes > _MOST_BYTES or time.monotonic() - begun > seconds:
            break
    if not pictures or float(np.median(sides)) < _WORTH * side:
        yield None
        return
    with TemporaryDirectory(prefix="recordsmith-") as folder:
        originals, smaller = zip(*pictures, strict=True)
        yield Samples(
            _written(Path(folder) / "original.tfrecord", key, originals),
            _written(Path(folder) / "smaller.tfrecord", key, smaller),
            side,
            Sample(len(pictures), sum(map(len, originals)), sum(map(len, smaller))),
        )


def _spread(dataset: Dataset) -> Iterator[bytes]:
    """Records from all over; of compressed shards, which are read in order, the first."""
    if any(shard.compression != "none" for shard in dataset.shards):
        yield from islice(dataset.records(), _MOST_PICTURES)
        return
    count = min(_MOST_PICTURES, len(dataset))
    for number in range(count):
        try:
            yield dataset.read_record(number * len(dataset) // count)
        except CorruptDataError:
            continue


def _written(path: Path, key: str, pictures: tuple[bytes, ...]) -> Dataset:
    with ShardWriter(path) as writer:
        for data in pictures:
            writer.write_example({key: data})
    return open_dataset(path)
