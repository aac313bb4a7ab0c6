"""Small records in batches of the size that training takes, one after the other."""

from __future__ import annotations

from functools import partial
from typing import Any

from case import OURS, Case, Peer, Task
from cases.columns import KEYS, tensorflow_batches
from inputs import Inputs


def _recordsmith(size: int, inputs: Inputs) -> Task:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    assert dataset.schema.features.keys() == set(KEYS)  # known in advance, as TensorFlow needs it

    def run() -> int:
        batches: Any = dataset.batches(size, KEYS)
        return sum(int(batch["user"].sum()) for batch in batches)

    return Task(run, records=inputs.small_count, digest=int)


def _tensorflow(size: int, inputs: Inputs) -> Task:
    dataset = tensorflow_batches(inputs, size)

    def run() -> int:
        return sum(int(batch["user"].numpy().sum()) for batch in dataset)

    return Task(run, records=inputs.small_count, digest=int)


CASES = tuple(
    Case(
        name=f"batches-{size}",
        title=f"Read in batches of {size}",
        what=(
            "The same file in batches, all features decoded, one column summed up; both checksums "
            "of every record checked."
        ),
        unit="record",
        peers=(
            Peer(OURS, partial(_recordsmith, size)),
            Peer("tf.data, parse_example", partial(_tensorflow, size), at_most=1 / 15),
        ),
        inputs=("small.tfrecord",),
    )
    for size in (32, 256)
)
