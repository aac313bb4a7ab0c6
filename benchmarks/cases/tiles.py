"""Restart intervals added to JPEGs without loss, which jpeglib can only remove.

The peer reads and writes the same coefficients, through files in memory.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_MEMORY = Path("/dev/shm")  # without a disk


def _files(inputs: Inputs) -> list[bytes]:
    return [path.read_bytes() for path, _ in inputs.camera()]


def _intervals(inputs: Inputs) -> Task:
    from recordsmith.image.kernel.tiling import with_interval

    files = _files(inputs)

    def run() -> None:
        for data in files:
            with_interval(data, 4)

    return Task(run, len(files))


def _checked(inputs: Inputs) -> Task:
    from recordsmith import ImageOptions
    from recordsmith.image import store_image

    files, options = _files(inputs), ImageOptions(tiles=True)

    def run() -> None:
        for data in files:
            store_image(data, options)

    return Task(run, len(files))


def _jpeglib(inputs: Inputs) -> Task:
    import jpeglib

    files = [str(path) for path, _ in inputs.camera()]
    folder = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
    target = str(folder / "written.jpg")

    def run() -> Any:
        for path in files:
            image = jpeglib.read_dct(path)
            image.load()
            image.write_dct(target)

    return Task(run, len(files))


CASES = (
    Case(
        name="tiles",
        title="Tiles",
        what=(
            "JPEG files of 500 by 375 pixels and 107 kB: a restart marker after every four MCUs is "
            "added without decoding pixels. `pack --tiles` also decodes both files to compare "
            "their pixels."
        ),
        unit="image",
        peers=(
            Peer(OURS, _intervals),
            Peer("with the comparison of pixels", _checked),
            Peer("jpeglib, reading and writing the coefficients", _jpeglib, at_most=2.0),
        ),
        inputs=("camera",),
    ),
)
