"""Shuffled batches for training: pictures, and small records.

What is compared is an epoch; what a loader's threads or workers do ahead belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import loaders
from case import OURS, Case, Peer, Task
from inputs import Inputs


def _pictures(begin: Callable[..., loaders.Epochs], *needs: str, **options: Any) -> Any:
    """How a peer of `loaders` is prepared; `needs` are inputs that only it has a use for."""

    def prepare(inputs: Inputs) -> Task:
        for name in needs:
            inputs.make(name)
        epoch = begin(inputs.folder, **options)
        return Task(lambda: list(epoch()), inputs.camera_count, digest=_digest)

    return prepare


def _digest(batches: list[loaders.Seen]) -> list[int]:
    """How many pictures, their classes, and their mean value, in steps of 16."""
    count, labels, values = map(sum, zip(*batches, strict=True))
    side = len(range(0, loaders.SIDE, loaders.SPARSE.step))
    return [count, labels, round(values / (count * side * side * 3) / 16)]


_PICTURES = "shuffled batches of 32 pictures of 224 by 224 pixels, uint8, by two threads or workers"

CASES = (
    Case(
        name="loader-pictures",
        title="Train from pictures",
        what=(
            f"JPEG files of 500 by 375 pixels and 107 kB to {_PICTURES}. Those by hand check "
            "nothing and know beforehand where each JPEG file lies."
        ),
        unit="picture",
        peers=(
            Peer(OURS, _pictures(loaders.recordsmith)),
            Peer(
                "by hand, libjpeg-turbo and OpenCV's resize",
                _pictures(loaders.by_hand, "camera.offsets"),
                at_most=1 / 0.95,
            ),
            Peer(
                "by hand, OpenCV",
                _pictures(loaders.by_hand, "camera.offsets", decoder="opencv"),
                at_most=1 / 0.95,
            ),
            Peer("tf.data", _pictures(loaders.tensorflow), at_most=1 / 1.1),
            Peer("grain, ArrayRecord, OpenCV", _pictures(loaders.grain, "camera.arrayrecord")),
            Peer("DALI on the CPU", _pictures(loaders.dali, "camera.idx"), at_most=1 / 1.6),
            Peer("torch `DataLoader`, Pillow", _pictures(loaders.torch), at_most=1 / 1.7),
            Peer("WebDataset, Pillow", _pictures(loaders.webdataset, "camera-tars")),
        ),
        inputs=("camera", "camera-packed"),
        on_wall_too=True,
    ),
    Case(
        name="loader-packed",
        title="Train from pictures that were packed smaller",
        what=(
            f"The same pictures to {_PICTURES}. Packing them with a shorter side of 256 pixels is "
            "paid once, and not in this table."
        ),
        unit="picture",
        peers=(
            Peer(OURS, _pictures(loaders.recordsmith, packed="camera-packed-256")),
            Peer("tf.data on the originals", _pictures(loaders.tensorflow), at_most=1 / 3),
            Peer("tf.data on the smaller ones", _pictures(loaders.tensorflow, packed="camera-packed-256")),
            Peer("recordsmith on the originals", _pictures(loaders.recordsmith)),
        ),
        inputs=("camera-packed", "camera-packed-256"),
        on_wall_too=True,
    ),
)
