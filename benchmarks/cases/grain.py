"""grain on recordsmith's source, next to grain on ArrayRecord."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loaders
from case import OURS, Case, Peer, Task
from cases.loader import epochs_of
from inputs import Inputs


def _one_by_one(inputs: Inputs, source: Any, user: Callable[[Any], int]) -> Task:
    """Read at random positions, with a call for each; `user` of what was read."""
    import numpy as np

    positions = np.random.default_rng(6).integers(0, inputs.small_count, inputs.random_count)
    chosen = positions.tolist()
    return Task(
        lambda: [source[position] for position in chosen],
        len(chosen),
        digest=lambda read: sum(map(user, read)),
    )


def _dataset(inputs: Inputs) -> Any:
    import recordsmith as rs

    dataset = rs.open(inputs.path("small.tfrecord"))
    assert len(dataset) == inputs.small_count  # the index is there, as ArrayRecord's is
    return dataset


def _user(example: Any) -> int:
    return int(example["user"][0])


def _by_source(inputs: Inputs) -> Task:
    from recordsmith.grain import examples

    return _one_by_one(inputs, examples(_dataset(inputs)), _user)


def _by_dataset(inputs: Inputs) -> Task:
    import recordsmith.grain  # noqa: F401 - what it loads, the garbage collector walks through

    return _one_by_one(inputs, _dataset(inputs), _user)


def _by_array_record(inputs: Inputs) -> Task:
    import grain

    import recordsmith as rs

    inputs.make("small.arrayrecord")
    source = grain.sources.ArrayRecordDataSource(str(inputs.path("small.arrayrecord")))
    return _one_by_one(inputs, source, lambda payload: _user(rs.decode_example(payload)))


CASES = (
    Case(
        name="grain-images",
        title="Train from images with grain",
        what=(
            "The JPEG files of 500 by 375 pixels to shuffled batches of 32 images of 224 by 224 "
            "pixels by grain: read, decoded and resized in two of its threads, by the same "
            "functions. What ArrayRecord holds needs no parsing."
        ),
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.grain_on_recordsmith)),
            Peer("ArrayRecord", epochs_of(loaders.grain, "camera.arrayrecord"), at_most=1),
            Peer("recordsmith, its source decodes", epochs_of(loaders.grain_with_image)),
            Peer("recordsmith, a loader's batches", epochs_of(loaders.grain_batches)),
        ),
        inputs=("camera", "camera-packed"),
    ),
    Case(
        name="grain-random",
        title="Random reads through grain's source",
        what=(
            "Small Examples at random positions, one by one. ArrayRecord's source gives their "
            "bytes; the others decode them."
        ),
        unit="record",
        peers=(
            Peer(OURS, _by_source),
            Peer("`dataset[i]`", _by_dataset, at_most=1.05),
            Peer("ArrayRecord, not decoded", _by_array_record, at_most=1),
        ),
        inputs=("small.tfrecord",),
    ),
)
