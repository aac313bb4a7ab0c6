"""Loaders of images, side by side: shuffled batches of 32, 224 by 224 pixels, uint8, by two
threads or workers each.

Each function imports what it needs, prepares, and returns what begins an epoch. An epoch yields for
each batch how many images it has, the sum of their classes, and the sum of a few of their values:
decoders and resizers differ by single values, so all peers must agree on these but for a little.
Nothing is imported before it is asked for: the start of a process is measured with these too.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

SIDE, BATCH, WORKERS, SHUFFLE_BUFFER = 224, 32, 2, 1_000
SPARSE = slice(None, None, 32)
"""The rows and columns that are summed up: 49 of each image."""

Seen = tuple[int, int, int]
Epochs = Callable[[], Iterator[Seen]]


def seen(images: Any, labels: Any) -> Seen:
    """A batch: arrays, uint8 (count, height, width, channels) and the classes."""
    sparse = images[:, SPARSE, SPARSE]
    return len(images), int(labels.sum()), int(sparse.sum(dtype="int64"))


def recordsmith(folder: Path, packed: str = "camera-packed", threads: int = WORKERS) -> Epochs:
    loader = image_loader(folder, packed, threads)

    def epoch() -> Iterator[Seen]:
        for batch in loader:
            yield seen(batch["image"], batch["label"])

    return epoch


def image_loader(
    folder: Path,
    packed: str = "camera-packed",
    threads: int = WORKERS,
    map_examples: Callable[[Any], Any] | None = None,
) -> Any:
    """What recordsmith and its adapters read with."""
    import recordsmith as rs

    return rs.Loader(
        rs.open(folder / packed),
        {
            "image": rs.Image("image/encoded", size=(SIDE, SIDE)),
            "label": rs.Scalar("image/class/label"),
        },
        batch_size=BATCH,
        shuffle=True,
        threads=threads,
        map_examples=map_examples,
    )


def by_hand(folder: Path, decoder: str = "simplejpeg") -> Epochs:
    """The least there is to do: read, decode, resize into the batch. No checksums, no Examples."""
    import cv2
    import numpy as np

    if decoder == "simplejpeg":
        from simplejpeg import decode_jpeg as decode
    else:
        decode = _by_opencv
    cv2.setNumThreads(1)
    table = json.loads((folder / "camera.offsets").read_text())
    places, labels = [entry[:2] for entry in table], np.array([entry[2] for entry in table])
    (shard,) = (folder / "camera-packed").glob("*.tfrecord")
    file = os.open(shard, os.O_RDONLY)
    rng = np.random.default_rng(0)

    def make(chosen: Any) -> tuple[Any, Any]:
        images = np.empty((len(chosen), SIDE, SIDE, 3), np.uint8)
        for row, number in enumerate(chosen.tolist()):
            start, size = places[number]
            pixels = decode(os.pread(file, size, start))
            cv2.resize(pixels, (SIDE, SIDE), dst=images[row], interpolation=cv2.INTER_LINEAR)
        return images, labels[chosen]

    def epoch() -> Iterator[Seen]:
        order = rng.permutation(len(places))
        batches = (order[at : at + BATCH] for at in range(0, len(order), BATCH))
        return (seen(images, labels) for images, labels in in_threads(make, batches))

    return epoch


def in_threads(make: Callable[[Any], Any], batches: Iterator[Any]) -> Iterator[Any]:
    """What `make` returns for each batch, in order; threads work one batch ahead."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(WORKERS) as pool:
        ahead = deque(pool.submit(make, chosen) for chosen in islice(batches, WORKERS + 1))
        while ahead:
            made = ahead.popleft().result()
            ahead.extend(pool.submit(make, chosen) for chosen in islice(batches, 1))
            yield made


def _by_opencv(data: Any) -> Any:
    import cv2
    import numpy as np

    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


def tensorflow(
    folder: Path, packed: str = "camera-packed", buffer_size: int = SHUFFLE_BUFFER
) -> Epochs:
    dataset = tensorflow_dataset(folder, packed, buffer_size)

    def epoch() -> Iterator[Seen]:
        for images, labels in dataset:
            yield seen_tensors(images, labels)

    return epoch


def seen_tensors(images: Any, labels: Any) -> Seen:
    """The same of tensors, by TensorFlow: numpy() of all would copy it."""
    import tensorflow as tf

    sparse = tf.cast(images[:, SPARSE, SPARSE], "int64")
    return len(images), int(tf.reduce_sum(labels)), int(tf.reduce_sum(sparse))


def tensorflow_dataset(folder: Path, packed: str, buffer_size: int = SHUFFLE_BUFFER) -> Any:
    """As the guides have it, with as many threads as the others."""
    import tensorflow as tf

    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def make(payload: Any) -> tuple[Any, Any]:
        example = tf.io.parse_single_example(payload, features)
        pixels = tf.io.decode_jpeg(example["image/encoded"], channels=3)
        pixels = tf.cast(tf.image.resize(pixels, (SIDE, SIDE)), tf.uint8)
        return pixels, example["image/class/label"]

    options = tf.data.Options()
    options.threading.private_threadpool_size = WORKERS
    options.threading.max_intra_op_parallelism = 1
    return (
        tf.data.TFRecordDataset([str(path) for path in (folder / packed).glob("*.tfrecord")])
        .shuffle(buffer_size)
        .map(make, num_parallel_calls=WORKERS)
        .batch(BATCH)
        .prefetch(2)
        .with_options(options)
    )


def tensorflow_adapter(folder: Path) -> Epochs:
    """recordsmith.tensorflow."""
    dataset = adapted_dataset(folder)

    def epoch() -> Iterator[Seen]:
        for batch in dataset:
            yield seen_tensors(batch["image"], batch["label"])

    return epoch


def adapted_dataset(folder: Path) -> Any:
    from recordsmith.tensorflow.stream import batches

    return batches(image_loader(folder))


def grain(folder: Path) -> Epochs:
    """ArrayRecord, read and decoded by grain's threads; OpenCV, as TensorFlow is not needed."""
    import grain

    source: Any = grain.sources.ArrayRecordDataSource(str(folder / "camera.arrayrecord"))
    return _by_grain(source, lambda record: (memoryview(record)[1:], record[0]))


def grain_on_recordsmith(folder: Path) -> Epochs:
    """The same on TFRecord, whose examples the source decodes."""
    import recordsmith as rs
    from recordsmith.grain import examples

    def parts(example: dict[str, Any]) -> tuple[Any, int]:
        return example["image/encoded"][0], example["image/class/label"][0]

    return _by_grain(examples(rs.open(folder / "camera-packed")), parts)


def _by_grain(source: Any, parts: Callable[[Any], tuple[Any, int]]) -> Epochs:
    """`parts`: what the source gives -> JPEG file and class."""
    import cv2

    cv2.setNumThreads(1)

    def make(element: Any) -> dict[str, Any]:
        encoded, label = parts(element)
        pixels = _by_opencv(encoded)
        image = cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        return {"image": image, "label": label}

    return _grain_epochs(source, make)


def grain_with_image(folder: Path) -> Epochs:
    """The source decodes the images too."""
    import recordsmith as rs
    from recordsmith.grain import examples

    features: Any = {
        "image": rs.Image("image/encoded", size=(SIDE, SIDE)),
        "label": rs.Scalar("image/class/label"),
    }
    return _grain_epochs(examples(rs.open(folder / "camera-packed"), features), None)


def _grain_epochs(source: Any, make: Callable[[Any], Any] | None) -> Epochs:
    import grain

    reading = grain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=2 * BATCH)
    shuffled = grain.MapDataset.source(source).shuffle(seed=0)
    mapped = shuffled if make is None else shuffled.map(make)
    dataset = mapped.to_iter_dataset(reading).batch(BATCH)

    def epoch() -> Iterator[Seen]:
        for batch in dataset:
            yield seen(batch["image"], batch["label"])

    return epoch


def grain_batches(folder: Path) -> Epochs:
    """A Loader's batches as a dataset of grain."""
    from recordsmith.grain import batches

    dataset = batches(image_loader(folder))

    def epoch() -> Iterator[Seen]:
        for batch in dataset:
            yield seen(batch["image"], batch["label"])

    return epoch


class _Files:
    """The camera's files as torch wants them: a sequence."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted((folder / "camera").glob("*/*.jpg"), key=lambda path: path.name)
        classes = sorted({path.parent.name for path in self.paths})
        self.labels = [classes.index(path.parent.name) for path in self.paths]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        with open(self.paths[number], "rb") as file:
            return _by_pillow(file), self.labels[number]


def _by_pillow(file: Any) -> Any:
    import numpy as np
    from PIL import Image

    image = Image.open(file).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return np.array(image)


def torch(folder: Path) -> Epochs:
    """A folder of files, Pillow, two worker processes that stay."""
    from torch.utils.data import DataLoader

    files: Any = _Files(folder)
    loader = DataLoader(files, BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)

    def epoch() -> Iterator[Seen]:
        for images, labels in loader:
            yield seen(images.numpy(), labels.numpy())

    return epoch


def slow_map(example: dict[str, Any]) -> dict[str, Any]:
    """What pure Python does to an example, for some milliseconds."""
    total = 0
    for number in range(50_000):
        total += number & 3
    return {**example, "label": example["label"] + total * 0}


def torch_adapter(
    folder: Path,
    workers: int,
    packed: str = "camera-packed",
    map_examples: Callable[[Any], Any] | None = None,
) -> Epochs:
    """recordsmith.torch under torch's DataLoader: two threads, or worker processes of one each."""
    from torch.utils.data import DataLoader

    from recordsmith.torch.stream import batches

    loader = image_loader(folder, packed, 1 if workers else WORKERS, map_examples)
    stream = DataLoader(
        batches(loader), batch_size=None, num_workers=workers, persistent_workers=workers > 0
    )

    def epoch() -> Iterator[Seen]:
        for batch in stream:
            yield seen(batch["image"].numpy(), batch["label"].numpy())

    return epoch
