"""Convert some images of a dataset, to measure how fast they would load.

A sample of the images is written as it is, with tiles (restart intervals, for crops), and at a
smaller size, as `pack` stores them. All are then loaded in turn.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from recordsmith.dataset import Dataset, ShardWriter, records_of
from recordsmith.dataset import open as open_dataset
from recordsmith.errors import DataError, SourceError
from recordsmith.example import decode_example
from recordsmith.image import ImageOptions, probe_image, store_image
from recordsmith.loading import Image
from recordsmith.measuring.bench_report import ImageSample

_MOST_IMAGES = 64
_MOST_BYTES = 64 << 20
_WORTH = 1.2  # the minimum factor between the size of images and the smaller size
_SPARE = 8 / 7  # images for 224 pixels are usually packed at 256, to allow crops


@dataclass(frozen=True)
class SampleDatasets:
    """A sample of images: unchanged, with tiles and at a smaller size; None if not worth trying."""

    original: Dataset
    tiles: Dataset | None
    smaller: Dataset | None
    shorter_side: int
    counts: ImageSample


def shorter_side_for(image: Image) -> int:
    """The shorter side at which to pack images for a feature."""
    size = image.size if isinstance(image.size, tuple) else (image.longer_side or 1,)
    return round(max(size) * _SPARE)


@contextmanager
def sampled(dataset: Dataset, image: Image, seconds: float) -> Iterator[SampleDatasets | None]:
    """Convert some images of a dataset, and remove them after the block.

    Args:
        image: the feature that loads them. Tiles are tried if it crops, a shorter side if most
            images are larger than the feature needs.
        seconds: the time limit; at least one image is converted.

    Yields:
        The datasets; None if there is nothing to try.
    """
    side, crops = shorter_side_for(image), image.geometry().crops
    images: list[tuple[bytes, bytes, bytes]] = []
    size_bytes, begun = 0, time.monotonic()
    sides = []
    for record in _spread(dataset):
        try:
            data = decode_example(record)[image.key][0]
            assert isinstance(data, bytes)
            shorter_side = min(probe_image(data)[1:])
            smaller = store_image(data, ImageOptions(shorter_side=side)).data
            tiled = store_image(data, ImageOptions(tiles=True)).data if crops else data
        except (DataError, SourceError, LookupError, AssertionError):
            continue  # the loader reports what cannot be read
        sides.append(shorter_side)
        images.append((data, tiled, smaller))
        size_bytes += len(data)
        if size_bytes > _MOST_BYTES or time.monotonic() - begun > seconds:
            break
    has_tiles = any(tiled != data for data, tiled, _ in images)
    has_smaller = bool(sides) and float(np.median(sides)) >= _WORTH * side
    if not has_tiles and not has_smaller:
        yield None
        return
    originals, tiles, smallers = zip(*images, strict=True)
    with TemporaryDirectory(prefix="recordsmith-") as folder:

        def written(name: str, files: Sequence[bytes]) -> Dataset:
            return _written(Path(folder) / f"{name}.tfrecord", image.key, files)

        yield SampleDatasets(
            written("original", originals),
            written("tiles", tiles) if has_tiles else None,
            written("smaller", smallers) if has_smaller else None,
            side,
            ImageSample(
                len(images),
                size_bytes,
                sum(map(len, tiles)) if has_tiles else None,
                sum(map(len, smallers)) if has_smaller else None,
            ),
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
        except DataError:
            continue


def _written(path: Path, key: str, images: Sequence[bytes]) -> Dataset:
    with ShardWriter(path) as writer:
        for data in images:
            writer.write_example({key: data})
    return open_dataset(path)
