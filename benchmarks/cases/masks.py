"""Masks of objects to batches, compared with decoding their PNG files.

64 images of 640 by 480 pixels with 8 masks each, as `pack --object-masks instance` writes them. The
masks of a loader have the size of the images, follow their boxes, and none is dropped.
"""

from __future__ import annotations

import io
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_IMAGES, _OBJECTS, _HEIGHT, _WIDTH = 64, 8, 480, 640
_BOX = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]
_MASK = "image/object/mask"


def _records() -> list[dict[str, Any]]:
    """Ellipses, each with its box."""
    import numpy as np

    from recordsmith.image import encode_mask

    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:_HEIGHT, :_WIDTH]
    records = []
    for _ in range(_IMAGES):
        masks, boxes = [], []
        for _ in range(_OBJECTS):
            y, x = random.uniform(0.2, 0.8, 2) * (_HEIGHT, _WIDTH)
            high, wide = random.uniform(20, 95, 2)
            mask = ((rows - y) / high) ** 2 + ((columns - x) / wide) ** 2 < 1
            masks.append(encode_mask(mask.astype(np.uint8)))
            sides = [y - high, x - wide, y + high, x + wide] / np.array([_HEIGHT, _WIDTH] * 2)
            boxes.append(sides.clip(0, 1))
        sides_by_key = zip(_BOX, np.array(boxes, np.float32).T, strict=True)
        records.append({_MASK: masks, **dict(sides_by_key)})
    return records


def _recordsmith(inputs: Inputs) -> Task:
    import recordsmith as rs

    path = inputs.out("masks.tfrecord")
    with rs.ShardWriter(path, overwrite=True) as writer:
        for record in _records():
            writer.write_example(record)
    features = {
        "masks": rs.Mask(_MASK, size=(_HEIGHT, _WIDTH)),
        "boxes": rs.Boxes(labels=None),
    }
    dataset = rs.open(path)

    def run() -> int:
        loader = rs.Loader(dataset, features, batch_size=8, threads=1)
        return sum(int(batch["masks"].values.sum()) for batch in loader)

    return Task(run, _IMAGES * _OBJECTS, digest=int)


def _pillow(_: Inputs) -> Task:
    import numpy as np
    from PIL import Image

    files = [mask for record in _records() for mask in record[_MASK]]

    def run() -> int:
        total = 0
        for file in files:
            with Image.open(io.BytesIO(file)) as image:
                total += int(np.asarray(image).sum())
        return total

    return Task(run, len(files), digest=int)


CASE = Case(
    "object-masks",
    "Masks of objects to batches",
    "512 masks of 640 by 480 pixels, PNG. Everything is in one thread.",
    "mask",
    (Peer(OURS, _recordsmith), Peer("decoding alone, Pillow", _pillow, at_most=1.1)),
)
