"""Loaders that use a part of each image: ImageNet's random crop, or a patch of fixed size.

As in `loaders`: each function imports what it needs, prepares, and returns what begins an epoch,
with two threads or workers each. Parts are random, so peers agree only on counts, classes, and
nearly on the mean value.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loaders import (
    SHUFFLE_BUFFER,
    SPARSE,
    WORKERS,
    Epochs,
    Seen,
    in_threads,
    seen,
    seen_tensors,
)

AREA, RATIO, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
_WINDOW_COUNT = 10_000

Window = tuple[int, int, int, int]
"""Top, left, height and width of a part."""


@dataclass(frozen=True)
class Parts:
    """What is read, and the part of each image that is used.

    camera: the name of the images, as in `inputs`, which are all of one size.
    side: of what is made, in pixels.
    is_patch: cut a random part of this size; otherwise ImageNet's crop, resized.
    """

    camera: str
    width: int
    height: int
    side: int
    batch: int
    is_patch: bool = False

    def window(self, rng: random.Random) -> Window:
        """A random part."""
        if self.is_patch:
            return *self._corner(self.side, self.side, rng), self.side, self.side
        for _ in range(TRIES):
            area = self.height * self.width * rng.uniform(*AREA)
            ratio = math.exp(rng.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
            rows, columns = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if 0 < rows <= self.height and 0 < columns <= self.width:
                return *self._corner(rows, columns, rng), rows, columns
        return 0, 0, self.height, self.width  # an allowed ratio, for all sizes measured here

    def _corner(self, rows: int, columns: int, rng: random.Random) -> tuple[int, int]:
        return rng.randint(0, self.height - rows), rng.randint(0, self.width - columns)

    def windows(self) -> Any:
        """Many of them: int32, (windows, 4)."""
        import numpy as np

        rng = random.Random(0)
        return np.array([self.window(rng) for _ in range(_WINDOW_COUNT)], np.int32)


CROPS = Parts("camera", 500, 375, side=224, batch=32)
LARGE_CROPS = Parts("camera-2mp", 1600, 1200, side=224, batch=32)
PATCHES = Parts("camera-12mp", 4000, 3000, side=512, batch=8, is_patch=True)


def recordsmith(folder: Path, parts: Parts, *, packed: str = "packed") -> Epochs:
    """`packed`: which form of the images."""
    import recordsmith as rs

    # by name, as an earlier commit refuses the manifest
    dataset = rs.open(sorted((folder / f"{parts.camera}-{packed}").glob("*.tfrecord")))
    options: dict[str, Any] = {}
    if parts.is_patch:
        share = parts.side**2 / (parts.width * parts.height)
        options = {"crop_area": (share, share), "crop_ratio": (1, 1)}
    features: Any = {
        "image": rs.Image("image/encoded", size=parts.side, fit="random-crop", **options),
        "label": rs.Scalar("image/class/label"),
    }
    loader = rs.Loader(dataset, features, batch_size=parts.batch, shuffle=True, threads=WORKERS)

    def epoch() -> Iterator[Seen]:
        for batch in loader:
            yield seen(batch["image"], batch["label"])

    return epoch


def by_hand(folder: Path, parts: Parts) -> Epochs:
    """Decode the whole image, cut the part, resize it into the batch; nothing is checked."""
    import cv2
    import numpy as np
    from simplejpeg import decode_jpeg

    cv2.setNumThreads(1)
    table = json.loads((folder / f"{parts.camera}.offsets").read_text())
    labels = np.array([entry[2] for entry in table])
    (shard,) = (folder / f"{parts.camera}-packed").glob("*.tfrecord")
    file = os.open(shard, os.O_RDONLY)
    order_rng, rng = np.random.default_rng(0), random.Random(0)

    def make(chosen: Any) -> tuple[Any, Any]:
        images = np.empty((len(chosen), parts.side, parts.side, 3), np.uint8)
        for row, number in enumerate(chosen.tolist()):
            offset, size, _ = table[number]
            pixels = decode_jpeg(os.pread(file, size, offset))
            _fill(images[row], cut(pixels, parts.window(rng)))
        return images, labels[chosen]

    def epoch() -> Iterator[Seen]:
        order = order_rng.permutation(len(table))
        batches = (order[at : at + parts.batch] for at in range(0, len(order), parts.batch))
        return (seen(images, labels) for images, labels in in_threads(make, batches))

    return epoch


def cut(pixels: Any, window: Window) -> Any:
    """A view of a part."""
    top, left, height, width = window
    return pixels[top : top + height, left : left + width]


def _fill(row: Any, part: Any) -> None:
    import cv2

    if part.shape == row.shape:
        row[:] = part
    else:
        cv2.resize(part, row.shape[:2], dst=row, interpolation=cv2.INTER_LINEAR)


def tensorflow(folder: Path, parts: Parts) -> Epochs:
    """`decode_and_crop_jpeg`, with as many threads as the others.

    Parts are drawn from a table of many: the same distribution as elsewhere, for a single operation
    of TensorFlow.
    """
    import tensorflow as tf

    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    windows = tf.constant(parts.windows())

    def make(payload: Any) -> tuple[Any, Any]:
        example = tf.io.parse_single_example(payload, features)
        window = windows[tf.random.uniform([], maxval=_WINDOW_COUNT, dtype=tf.int32)]
        pixels = tf.io.decode_and_crop_jpeg(example["image/encoded"], window, channels=3)
        if parts.is_patch:
            pixels.set_shape((parts.side, parts.side, 3))
        else:
            pixels = tf.cast(tf.image.resize(pixels, (parts.side, parts.side)), tf.uint8)
        return pixels, example["image/class/label"]

    options = tf.data.Options()
    options.threading.private_threadpool_size = WORKERS
    options.threading.max_intra_op_parallelism = 1
    shards = (folder / f"{parts.camera}-packed").glob("*.tfrecord")
    dataset: Any = (
        tf.data.TFRecordDataset([str(path) for path in shards])
        .shuffle(SHUFFLE_BUFFER)
        .map(make, num_parallel_calls=WORKERS)
        .batch(parts.batch)
        .prefetch(2)
        .with_options(options)
    )

    def epoch() -> Iterator[Seen]:
        for images, labels in dataset:
            yield seen_tensors(images, labels)

    return epoch


def grain(folder: Path, parts: Parts) -> Epochs:
    """ArrayRecord, read by grain's threads; OpenCV decodes and resizes."""
    import cv2
    import grain
    import numpy as np

    cv2.setNumThreads(1)
    rng = random.Random(0)

    def make(record: Any) -> dict[str, Any]:
        data = np.frombuffer(memoryview(record)[1:], np.uint8)
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR_RGB)
        image = np.empty((parts.side, parts.side, 3), np.uint8)
        _fill(image, cut(pixels, parts.window(rng)))
        return {"image": image, "label": record[0]}

    source: Any = grain.sources.ArrayRecordDataSource(str(folder / f"{parts.camera}.arrayrecord"))
    reading = grain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=2 * parts.batch)
    mapped = grain.MapDataset.source(source).shuffle(seed=0).map(make)
    dataset = mapped.to_iter_dataset(reading).batch(parts.batch)

    def epoch() -> Iterator[Seen]:
        for batch in dataset:
            yield seen(batch["image"], batch["label"])

    return epoch


class _Files:
    """The files as torch wants them: a sequence that a worker reads by torchvision."""

    def __init__(self, folder: Path, make: Callable[[Any], Any]) -> None:
        self.paths = sorted(folder.glob("*/*.jpg"), key=lambda path: path.name)
        classes = sorted({path.parent.name for path in self.paths})
        self.labels = [classes.index(path.parent.name) for path in self.paths]
        self.make = make

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        from torchvision.io import ImageReadMode, decode_image, read_file

        pixels = decode_image(read_file(str(self.paths[number])), ImageReadMode.RGB)
        return self.make(pixels), self.labels[number]


def torchvision(folder: Path, parts: Parts) -> Epochs:
    """A folder of files, `decode_image` and transforms v2, two worker processes that stay."""
    from torch.utils.data import DataLoader
    from torchvision.transforms import v2

    transform = v2.RandomCrop(parts.side) if parts.is_patch else v2.RandomResizedCrop(parts.side)
    files: Any = _Files(folder / parts.camera, transform)
    loader = DataLoader(
        files, parts.batch, shuffle=True, num_workers=WORKERS, persistent_workers=True
    )

    def epoch() -> Iterator[Seen]:
        for images, labels in loader:
            yield seen(images.permute(0, 2, 3, 1).numpy(), labels.numpy())

    return epoch


def _dali_records(shard: Path, index: Path, buffer_size: int) -> Any:
    """The reader of a pipeline of DALI, shuffled."""
    from nvidia.dali import fn, tfrecord

    return fn.readers.tfrecord(
        path=str(shard),
        index_path=str(index),
        features={
            "image/encoded": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            "image/class/label": tfrecord.FixedLenFeature([], tfrecord.int64, 0),
        },
        random_shuffle=True,
        initial_fill=buffer_size,
        name="reader",
    )


def dali(folder: Path, parts: Parts) -> Epochs:
    """Its pipeline on the CPU, which decodes parts; it is endless, so batches are counted."""
    from nvidia.dali import fn, pipeline_def, types

    (shard,) = (folder / f"{parts.camera}-packed").glob("*.tfrecord")
    index = folder / f"{parts.camera}.idx"
    batch_count = len(index.read_text().splitlines()) // parts.batch

    @pipeline_def(batch_size=parts.batch, num_threads=WORKERS, device_id=None)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        buffer_size = min(SHUFFLE_BUFFER, batch_count * parts.batch)
        records = _dali_records(shard, index, buffer_size)
        encoded, label = records["image/encoded"], records["image/class/label"]
        if parts.is_patch:
            images = fn.decoders.image_crop(
                encoded,
                device="cpu",
                output_type=types.RGB,
                crop=(parts.side, parts.side),
                crop_pos_x=fn.random.uniform(range=(0.0, 1.0)),
                crop_pos_y=fn.random.uniform(range=(0.0, 1.0)),
            )
            return images, label
        images = fn.decoders.image_random_crop(
            encoded,
            device="cpu",
            output_type=types.RGB,
            random_area=AREA,
            random_aspect_ratio=RATIO,
            num_attempts=TRIES,
        )
        side = parts.side
        images = fn.resize(images, resize_x=side, resize_y=side, interp_type=types.INTERP_LINEAR)
        return images, label

    made = pipeline()
    made.build()

    def epoch() -> Iterator[Seen]:
        for _ in range(batch_count):
            images, labels = made.run()
            yield seen(images.as_array(), labels.as_array())

    return epoch


def mean_of(batches: list[Seen], side: int) -> float:
    """The mean of the values that were summed up."""
    count, _, values = map(sum, zip(*batches, strict=True))
    return values / (count * len(range(0, side, SPARSE.step)) ** 2 * 3)
