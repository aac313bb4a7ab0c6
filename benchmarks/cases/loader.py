"""Shuffled batches for training: images, and small records.

What is compared is an epoch; what a loader's threads or workers do ahead belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import loaders
from case import OURS, Case, Peer, Task
from cases.columns import KEYS, tensorflow_features
from inputs import Inputs


def epochs_of(
    begin: Callable[..., loaders.Epochs], *needs: str, times: int = 1, **options: Any
) -> Any:
    """How a peer of `loaders` is prepared; `needs` are inputs that only it has a use for, `times`
    is how often the images are in an epoch.
    """

    def prepare(inputs: Inputs) -> Task:
        for name in needs:
            inputs.make(name)
        epoch = begin(inputs.folder, **options)
        return Task(lambda: list(epoch()), times * inputs.camera_count, digest=_digest)

    return prepare


def _digest(batches: list[loaders.Seen]) -> list[int]:
    """How many images, their classes, and their mean value, in steps of 16."""
    count, labels, values = map(sum, zip(*batches, strict=True))
    side = len(range(0, loaders.SIDE, loaders.SPARSE.step))
    return [count, labels, round(values / (count * side * side * 3) / 16)]


def _small_by_recordsmith(inputs: Inputs, threads: int) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    assert dataset.schema.features.keys() == set(KEYS)  # known in advance, as TensorFlow needs it
    features: Any = {name: rs.Scalar(name) for name in ("user", "label", "time")}
    features["dense"] = rs.Tensor("dense", (13,))
    features["items"] = rs.Ragged("items")
    features["country"] = rs.Bytes("country")
    loader = rs.Loader(dataset, features, batch_size=1024, shuffle=True, threads=threads)

    def run() -> list[int]:
        return [int(batch["user"].sum()) for batch in loader]

    return Task(run, inputs.small_count, digest=sum)


def _small_by_tensorflow(inputs: Inputs, buffer_size: int | None) -> Task:
    import tensorflow as tf

    features = tensorflow_features()
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    dataset: Any = (
        tf.data.TFRecordDataset(str(inputs.path("small.tfrecord")))
        .shuffle(buffer_size or inputs.small_count)
        .batch(1024)
        .map(lambda payloads: tf.io.parse_example(payloads, features))
        .with_options(options)
    )

    def run() -> list[int]:
        return [int(batch["user"].numpy().sum()) for batch in dataset]

    return Task(run, inputs.small_count, digest=sum)


def _keypoints(*names: str) -> Callable[[Inputs], Task]:
    """Images with their boxes and the features of these names."""

    def prepare(inputs: Inputs) -> Task:
        import recordsmith as rs

        features: Any = {"image": rs.Image(size=(224, 224), flip="horizontal"), "boxes": rs.Boxes()}
        features |= {name: rs.Keypoints(flip_pairs=_POINT_PAIRS) for name in names}
        dataset = rs.open(inputs.path("coco-keypoints-packed"))
        loader = rs.Loader(dataset, features, batch_size=32, shuffle=True, threads=2)

        def run() -> int:
            return sum(int(batch["boxes_lengths"].sum()) for batch in loader)

        return Task(run, inputs.photograph_count, digest=int)

    return prepare


_POINT_PAIRS = [(at, at + 1) for at in range(1, 17, 2)]
_IMAGES = "shuffled batches of 32 images of 224 by 224 pixels, uint8, by two threads or workers"

CASES = (
    Case(
        name="loader-images",
        title="Train from images",
        what=(
            f"JPEG files of 500 by 375 pixels and 107 kB to {_IMAGES}. Those by hand check "
            "nothing and know beforehand where each JPEG file lies."
        ),
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.recordsmith)),
            Peer(
                "by hand, libjpeg-turbo and OpenCV's resize",
                epochs_of(loaders.by_hand, "camera.offsets"),
                at_most=1 / 0.97,
            ),
            Peer(
                "by hand, OpenCV",
                epochs_of(loaders.by_hand, "camera.offsets", decoder="opencv"),
                at_most=1 / 0.95,
            ),
            Peer("tf.data", epochs_of(loaders.tensorflow), at_most=1 / 1.1),
        ),
        inputs=("camera", "camera-packed"),
        on_wall_too=True,
    ),
    Case(
        name="loader-packed",
        title="Train from images that were packed smaller",
        what=(
            f"The same images to {_IMAGES}. Packing them with a shorter side of 256 pixels is "
            "paid once, and not in this table."
        ),
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.recordsmith, packed="camera-packed-256")),
            Peer("tf.data on the originals", epochs_of(loaders.tensorflow), at_most=1 / 3),
            Peer(
                "tf.data on the smaller ones",
                epochs_of(loaders.tensorflow, packed="camera-packed-256"),
            ),
            Peer("recordsmith on the originals", epochs_of(loaders.recordsmith)),
        ),
        inputs=("camera-packed", "camera-packed-256"),
        on_wall_too=True,
    ),
    Case(
        name="loader-keypoints",
        title="Train from images with keypoints",
        what=(
            "JPEG files of 500 by 375 pixels with about three objects of 17 keypoints to shuffled "
            "batches of 32 images of 224 by 224 pixels, half of them mirrored, by two threads."
        ),
        unit="image",
        peers=(
            Peer(OURS, _keypoints("points")),
            Peer("recordsmith, boxes alone", _keypoints(), at_most=1.03),
        ),
        inputs=("coco-keypoints-packed",),
    ),
    Case(
        name="loader-small",
        title="Train from small records",
        what=(
            "The file of small Examples to shuffled batches of 1,024, all six features, both "
            "checksums of every record checked, one thread. tf.data shuffles through a buffer of "
            "all records, which is a global order as recordsmith's, and through a smaller one."
        ),
        unit="record",
        peers=(
            Peer(OURS, partial(_small_by_recordsmith, threads=0)),
            Peer("recordsmith, a thread of its own", partial(_small_by_recordsmith, threads=1)),
            Peer(
                "tf.data, a buffer of all records",
                partial(_small_by_tensorflow, buffer_size=None),
                at_most=1 / 12,
            ),
            Peer(
                "tf.data, a buffer of 10,000 records",
                partial(_small_by_tensorflow, buffer_size=10_000),
                at_most=1 / 12,
            ),
        ),
        inputs=("small.tfrecord",),
    ),
)
