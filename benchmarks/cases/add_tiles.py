"""Restart intervals added to JPEG files without loss, next to reading and writing coefficients."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_CHECKED_COUNT = 20


def _each(inputs: Inputs, convert: Callable[[Any], Any], items: list[Any], threads: int) -> Task:
    """Convert all items; results are not kept, as new memory costs page faults."""

    def run() -> None:
        if threads == 1:
            for item in items:
                convert(item)
            return
        parts = [items[first::threads] for first in range(threads)]
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: [None for item in part if convert(item) is None], parts))

    def has_same_pixels(_: object) -> list[bool]:
        import cv2
        import numpy as np

        def decode(data: bytes) -> Any:
            return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)

        files = [path for path, _ in inputs.camera()[:_CHECKED_COUNT]]
        results = map(convert, items[:_CHECKED_COUNT])
        return [
            np.array_equal(decode(file.read_bytes()), decode(result))
            for file, result in zip(files, results, strict=True)
        ]

    return Task(run, len(items), digest=has_same_pixels)


def _files(inputs: Inputs) -> list[Any]:
    return [path for path, _ in inputs.camera()[: inputs.encoded_count]]


def _add_tiles(inputs: Inputs, threads: int) -> Task:
    from recordsmith.image.storing.lossless import add_tiles

    return _each(inputs, add_tiles, [path.read_bytes() for path in _files(inputs)], threads)


def _unverified(inputs: Inputs) -> Task:
    from recordsmith.jpeg import with_interval

    def convert(data: bytes) -> bytes:
        return with_interval(data, 4)[1]

    return _each(inputs, convert, [path.read_bytes() for path in _files(inputs)], 1)


def _by_jpeglib(inputs: Inputs, threads: int) -> Task:
    import jpeglib

    folder = inputs.out("coefficients")
    folder.mkdir(exist_ok=True)

    def convert(path: Any) -> bytes:
        target = folder / path.name
        image = jpeglib.read_dct(str(path))
        image.load()
        image.write_dct(str(target))
        data: bytes = target.read_bytes()
        return data

    return _each(inputs, convert, _files(inputs), threads)


CASE = Case(
    name="add-tiles",
    title="Divide JPEG files into tiles",
    what=(
        "JPEG files of 500 by 375 pixels and 107 kB. recordsmith also decodes each file and its "
        "result, and compares the pixels; jpeglib reads the coefficients and writes them, from "
        "file to file, without intervals."
    ),
    unit="image",
    peers=(
        Peer(OURS, partial(_add_tiles, threads=1)),
        Peer("recordsmith, two threads", partial(_add_tiles, threads=2)),
        Peer("recordsmith, four threads", partial(_add_tiles, threads=4)),
        Peer("recordsmith, without comparing pixels", _unverified),
        Peer("jpeglib, `read_dct` and `write_dct`", partial(_by_jpeglib, threads=1), at_most=2),
        Peer("jpeglib, two threads", partial(_by_jpeglib, threads=2)),
    ),
    inputs=("camera",),
)
