"""Images encoded again while they are packed, next to a loop that does nothing but that.

Decoding and encoding are nearly all of it, so the loop on one thread is the codec's own rate; what
is above it is recordsmith's. With two threads the clock must show half, where there are two
processors to be had.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from cases.pack import packing_task
from inputs import Inputs

_SIDE = 256


def _recordsmith(root_name: str, threads: int, **options: Any) -> Callable[[Inputs], Task]:
    def prepare(inputs: Inputs) -> Task:
        import cv2

        from recordsmith import ImageFiles, ImageOptions, pack

        cv2.setNumThreads(1)  # what is compared is one thread an image
        images = ImageOptions(**options)

        def run(out: Path) -> None:
            source = ImageFiles(inputs.path(root_name))
            pack(source, out, shards=1, image_options=images, threads=threads)

        out = inputs.out(f"recordsmith-{root_name}-{threads}")
        return packing_task(out, inputs.encoded_count, run)

    return prepare


def _loop(root_name: str, *, smaller: bool) -> Callable[[Inputs], Task]:
    """The codec alone: read, decode, resize, encode; nothing is written."""

    def prepare(inputs: Inputs) -> Task:
        import cv2
        import numpy as np

        cv2.setNumThreads(1)
        paths = sorted(inputs.path(root_name).iterdir())
        options = [cv2.IMWRITE_JPEG_QUALITY, 95]

        def run() -> None:
            for path in paths:
                pixels = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
                assert pixels is not None
                if smaller:
                    height, width = pixels.shape[:2]
                    scale = _SIDE / min(height, width)
                    size = round(width * scale), round(height * scale)
                    pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
                cv2.imencode(".jpg", pixels, options)

        return Task(run, inputs.encoded_count)

    return prepare


def processor_count() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _case(name: str, title: str, what: str, root_name: str, **options: Any) -> Case:
    smaller = "shorter_side" in options
    return Case(
        name=name,
        title=title,
        what=(
            f"{what}, into one shard. This machine has {processor_count()} processors. OpenCV's "
            "own threads are off."
        ),
        unit="image",
        peers=(
            Peer(OURS, _recordsmith(root_name, 1, **options)),
            Peer("recordsmith, two threads", _recordsmith(root_name, 2, **options)),
            Peer("imdecode, imencode in a loop", _loop(root_name, smaller=smaller)),
        ),
        inputs=(root_name,),
    )


CASES = (
    _case(
        "re-encode-png",
        "Pack PNG as JPEG",
        "PNG files of 500 by 375 pixels, stored as JPEG of quality 95",
        "pngs",
        format="jpeg",
    ),
    _case(
        "re-encode-smaller",
        "Pack images made smaller",
        f"JPEG files of 500 by 375 pixels, the shorter side made {_SIDE} pixels",
        "few-photographs",
        shorter_side=_SIDE,
    ),
)
