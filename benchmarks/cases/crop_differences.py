"""How often a decoded part differs from the same part of the decoded image, by chroma sampling.

Not a matter of time: what TensorFlow's `decode_and_crop_jpeg` and recordsmith return is compared
with all of the image, decoded by the same library.
"""

from __future__ import annotations

import io
import random
from functools import partial
from typing import Any

import crop_loaders
from case import Case, Peer, Settings, Table, Task
from inputs import Inputs
from measure import Worker, make_inputs, say

_CROPS_OF_EACH, _IMAGE_COUNT = 100, 20
_SAMPLINGS = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}
"""As Pillow numbers them."""


def _compare(inputs: Inputs, sampling: str) -> Task:
    import numpy as np
    import tensorflow as tf
    from PIL import Image

    from recordsmith.image import Window, decode_part, decode_pixels, read_image_header

    def by_tensorflow(data: bytes, whole: Any, window: crop_loaders.Window) -> Any:
        part = tf.io.decode_and_crop_jpeg(data, window, channels=3).numpy()
        return np.abs(part.astype(int) - crop_loaders.cut(whole, window)).max(axis=(0, 2))

    def run() -> dict[str, int]:
        rng = random.Random(0)
        found = {"crops": 0, "tensorflow": 0, "inside": 0, "levels": 0, "recordsmith": 0}
        for path, _ in inputs.camera()[:_IMAGE_COUNT]:
            out = io.BytesIO()
            with Image.open(path) as image:
                image.save(out, "JPEG", quality=90, subsampling=_SAMPLINGS[sampling])
            data = out.getvalue()
            whole, head = tf.io.decode_jpeg(data, channels=3).numpy(), read_image_header(data)
            ours = decode_pixels(data, head)
            for _ in range(_CROPS_OF_EACH):
                window = crop_loaders.CROPS.window(rng)
                columns = by_tensorflow(data, whole, window)
                part = decode_part(data, head, Window(*window))
                moved = (window[0] - part.top, window[1] - part.left, *window[2:])
                same = np.array_equal(
                    crop_loaders.cut(part.pixels, moved), crop_loaders.cut(ours, window)
                )
                found["crops"] += 1
                found["tensorflow"] += bool(columns.any())
                found["inside"] += bool(columns[1:-1].any())
                found["levels"] = max(found["levels"], int(columns.max()))
                found["recordsmith"] += not same
        return found

    return Task(run, _CROPS_OF_EACH * _IMAGE_COUNT, digest=lambda found: found)


CASE = Case(
    name="crop-differences",
    title="Parts that differ from those of whole images",
    what=(
        "ImageNet's random crops of JPEG files of 500 by 375 pixels, decoded alone, compared with "
        "the same pixels of the whole image, decoded by the same library."
    ),
    unit="crop",
    peers=tuple(Peer(name, partial(_compare, sampling=name)) for name in _SAMPLINGS),
    inputs=("camera",),
)


def report(settings: Settings) -> Table:
    """One row for each sampling."""
    say(CASE.name)
    make_inputs(settings, CASE.inputs)
    rows: list[tuple[str, ...]] = []
    data: list[dict[str, Any]] = []
    for peer in CASE.peers:
        worker = Worker(settings, CASE, peer)
        try:
            found = None if worker.missing else worker.warm_up()
        finally:
            worker.close()
        if found is None:
            rows.append((peer.name, "not installed", "", "", "", ""))
            continue
        shares = [f"{found[name] / found['crops']:.1%}" for name in ("tensorflow", "inside")]
        ours = f"{found['recordsmith'] / found['crops']:.1%}"
        rows.append((peer.name, f"{found['crops']:,}", *shares, str(found["levels"]), ours))
        data.append({"sampling": peer.name, **found})
    header = (
        "",
        "crops",
        "TensorFlow differs",
        "not only in the outermost columns",
        "by at most (of 255)",
        "recordsmith differs",
    )
    return Table(CASE.name, CASE.title, CASE.what, header, tuple(rows), data={"rows": data})
