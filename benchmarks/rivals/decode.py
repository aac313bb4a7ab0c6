"""How rivals decode that leave it to a function of the user: the fastest way there is in Python.

The same decoder and resizer as recordsmith's loader has, so that what is compared is the loader.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rival import SIDE, Batch, What


def decode(data: Any, what: What, rng: Any = None) -> Any:
    """A JPEG file as uint8 (224, 224, 3): whole, or a random rectangle for "crops".

    rng: a `numpy.random.Generator`, for "crops".
    """
    if what == "bytes":
        return bytes(data)
    import cv2
    from simplejpeg import decode_jpeg

    pixels = decode_jpeg(data)
    if what == "crops":
        height, width = pixels.shape[:2]
        top, left, down, across = random_rectangle(height, width, rng)
        pixels = pixels[top : top + down, left : left + across]
    return cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def decode_in_worker(data: Any, what: What, number: int) -> Any:
    """The same in a worker process of torch, which seeds each of them in each epoch.

    number: of the image; each has random numbers of its own.
    """
    rng = None
    if what == "crops":
        import numpy as np
        import torch

        rng = np.random.default_rng(torch.initial_seed() + number)
    return decode(data, what, rng)


def random_rectangle(height: int, width: int, rng: Any) -> tuple[int, int, int, int]:
    """Top, left, height and width: 8 to 100 % of the area, sides from 3:4 to 4:3."""
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1.0)
        ratio = float((3 / 4) * (16 / 9) ** rng.random())
        across, down = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if across <= width and down <= height:
            top = int(rng.integers(0, height - down + 1))
            left = int(rng.integers(0, width - across + 1))
            return top, left, down, across
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def batch_of(samples: Sequence[tuple[int, Any]], what: What) -> Batch:
    """Keys and images of a batch."""
    import numpy as np

    keys, images = zip(*samples, strict=True)
    return Batch(np.array(keys, np.int64), stack(list(images), what))


def stack(images: list[Any], what: What) -> Any:
    """The images of a batch as one array, or the list of files.

    In a worker process of torch, a tensor in shared memory: an array would go through a pipe.
    """
    if what == "bytes":
        return images
    if (data := sys.modules.get("torch.utils.data")) and data.get_worker_info() is not None:
        return data.default_collate(images)
    import numpy as np

    return np.stack(images)
