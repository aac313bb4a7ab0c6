"""recordsmith.torch under PyTorch's DataLoader, next to the loader alone."""

from __future__ import annotations

from typing import Any

import loaders
from case import OURS, Case, Peer
from cases.loader import epochs_of

_WHAT = (
    "The JPEG files of 500 by 375 pixels and 107 kB to shuffled batches of 32 images of 224 by "
    "224 pixels, uint8, as tensors. "
)


_MAP: Any = {"map_examples": loaders.slow_map}
_TEN_TIMES: Any = {"times": 10, "packed": "camera-packed-10-times"}

CASES = (
    Case(
        name="torch",
        title="PyTorch's DataLoader without workers",
        what=_WHAT + "Two threads decode.",
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.torch_adapter, workers=0)),
            Peer("the loader alone", epochs_of(loaders.recordsmith), at_most=1 / 0.9),
            Peer("a folder of files, Pillow, two workers", epochs_of(loaders.torch)),
        ),
        inputs=("camera", "camera-packed"),
        on_wall_too=True,
    ),
    Case(
        name="torch-workers",
        title="PyTorch's DataLoader with two workers",
        what=(
            _WHAT
            + "Two worker processes of one thread each; the loader alone has two threads. Each "
            "image ten times: in a short epoch it shows that one worker makes the first batch, "
            "and the other the last one, alone."
        ),
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.torch_adapter, workers=2, **_TEN_TIMES)),
            Peer("the loader alone", epochs_of(loaders.recordsmith, **_TEN_TIMES), at_most=1 / 0.9),
        ),
        inputs=("camera-packed-10-times",),
        on_wall_too=True,
    ),
    Case(
        name="torch-map",
        title="PyTorch's DataLoader with a slow map in Python",
        what=(
            _WHAT + "`map_examples` is a loop in pure Python of about 3 ms for each image, which "
            "threads cannot run at the same time. Two worker processes of one thread each, or two "
            "threads."
        ),
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.torch_adapter, workers=2, **_MAP)),
            Peer("threads instead of workers", epochs_of(loaders.torch_adapter, workers=0, **_MAP)),
        ),
        inputs=("camera-packed",),
    ),
)
