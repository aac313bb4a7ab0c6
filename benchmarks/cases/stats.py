"""Figures of every feature, next to merely parsing the same records in TensorFlow.

What parsing alone costs is the least that a program could take which counts with TensorFlow.
"""

from __future__ import annotations

from typing import Any

from case import OURS, Case, Peer, Task
from cases.columns import tensorflow_batches
from inputs import LARGE_BYTES, Inputs


def _recordsmith(name: str) -> Any:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith import stats

        path = inputs.path(name)
        return Task(
            lambda: stats(path),
            records=inputs.record_counts[name],
            digest=lambda found: int(found.record_count),
        )

    return prepare


def _inspect(inputs: Inputs) -> Task:
    from recordsmith import inspect

    path = inputs.path("small.tfrecord")
    return Task(
        lambda: inspect(path),
        records=inputs.small_count,
        digest=lambda found: int(found.record_count),
    )


def _tensorflow(inputs: Inputs) -> Task:
    dataset = tensorflow_batches(inputs, 1024)

    def run() -> int:
        return sum(int(batch["user"].shape[0]) for batch in dataset)

    return Task(run, records=inputs.small_count, digest=int)


def _count_all_masks(inputs: Inputs) -> Task:
    import io

    import numpy as np
    from PIL import Image

    import recordsmith as rs

    dataset = rs.open(inputs.path("masks.tfrecord"))

    def run() -> int:
        pixels = np.zeros(256, np.int64)
        for example in dataset:
            data = example["image/segmentation/class/encoded"][0]
            values = np.asarray(Image.open(io.BytesIO(data)))
            pixels += np.bincount(values.ravel(), minlength=256)
        assert pixels.sum() == len(dataset) * 500 * 375
        return len(dataset)

    return Task(run, records=inputs.mask_count, digest=int)


CASES = (
    Case(
        name="stats-small",
        title="Statistics of small records",
        what="Ranges, quantiles, distinct and frequent values of six features, some 25 values.",
        unit="record",
        peers=(
            Peer(OURS, _recordsmith("small.tfrecord")),
            Peer("rs.inspect: kinds, lengths, sizes", _inspect),
            Peer("tf.data, parse_example, no figures", _tensorflow),
        ),
        inputs=("small.tfrecord",),
    ),
    Case(
        name="stats-large",
        title="Statistics of large records",
        what=f"Two features, one of about {LARGE_BYTES // 1000} kB; what is there twice.",
        unit="record",
        peers=(Peer(OURS, _recordsmith("large.tfrecord")),),
        inputs=("large.tfrecord",),
    ),
    Case(
        name="stats-masks",
        title="Statistics of masks",
        what="Masks of 500 x 375 pixels: pixels per class of a sample, next to decoding all.",
        unit="mask",
        peers=(
            Peer(OURS, _recordsmith("masks.tfrecord")),
            Peer("Pillow and np.bincount, all masks", _count_all_masks),
        ),
        inputs=("masks.tfrecord",),
    ),
)
