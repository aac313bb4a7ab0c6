"""How much of an image's time is Python, which only one thread at a time can run?

Decoders, the resize, reading and checksums let other threads run; what is left of an image does
not. It is measured by leaving out the others, and shows how many cores one process can feed.
"""

from __future__ import annotations

import dataclasses
import statistics
from functools import partial
from typing import Any

import loaders
from case import OURS, Case, Peer, Settings, Table, Task
from inputs import Inputs
from measure import compare

_WITHOUT_PIXELS = "decoding and resizing left out"
_PYTHON = "and images of 11 by 8 pixels: no bytes to read, check and copy"


def _prepare(inputs: Inputs, packed: str, *, with_pixels: bool) -> Task:
    if not with_pixels:
        _leave_out_pixels()
    epoch = loaders.recordsmith(inputs.folder, packed, threads=1)
    return Task(lambda: list(epoch()), inputs.camera_count)


def _leave_out_pixels() -> None:
    """Make the decoder always return the same pixels, and the resize do nothing."""
    import cv2
    import simplejpeg

    pixels: list[Any] = []
    decode = simplejpeg.decode_jpeg

    def decode_once(*arguments: Any, **named: Any) -> Any:
        if not pixels:
            pixels.append(decode(*arguments, **named))
        return pixels[0]

    def resize(*_: Any, dst: Any = None, **__: Any) -> Any:
        return dst

    simplejpeg.decode_jpeg = decode_once
    cv2.resize = resize


CASE = Case(
    name="loader-python",
    title="Time in Python",
    what=(
        "The images of 500 by 375 pixels to batches of 224 by 224, by one thread. What is left "
        "when nothing but Python has something to do is about the time in which no other thread "
        "can run Python; the kernels' share of it is small and counted with it."
    ),
    unit="image",
    peers=(
        Peer(OURS, partial(_prepare, packed="camera-packed", with_pixels=True)),
        Peer(_WITHOUT_PIXELS, partial(_prepare, packed="camera-packed", with_pixels=False)),
        Peer(_PYTHON, partial(_prepare, packed="camera-packed-8", with_pixels=False)),
    ),
    inputs=("camera-packed", "camera-packed-8"),
)


def report(settings: Settings) -> Table:
    """The table, and the number of cores that follows from it."""
    table = compare(CASE, settings)
    cpu = {
        entry["peer"]: statistics.median(entry["cpu_seconds_per_record"])
        for entry in table.data["peers"]
    }
    cores = cpu[OURS] / cpu[_PYTHON]
    note = (
        f"Of {cpu[OURS] * 1e6:,.0f} µs an image, {cpu[_PYTHON] * 1e6:.3g} are Python: it would "
        f"become the limit of one process at about {cores:.0f} cores that do nothing else. A "
        "training job has a process, a rank, for each device, and shares the images out."
    )
    data = {**table.data, "cores": cores}
    return dataclasses.replace(table, notes=(note,), data=data)
