"""Parts of images for training: ImageNet's random crop, and patches of large images.

As in `loader`, an epoch is measured. Each batch is freed before the next is taken: arrays that are
kept cost page faults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import crop_loaders
from case import OURS, Case, Peer, Task
from inputs import Inputs
from loaders import Epochs, Seen

BEFORE = "4fc24a33"
"""The last commit that decodes whole images for every crop."""

_BEFORE = f"recordsmith before ({BEFORE}), plain JPEG"
_HAND = "by hand, whole images"
_TENSORFLOW = "tf.data, `decode_and_crop_jpeg`"
_PLAIN, _TILED = "plain JPEG", "tiled JPEG"
_MEAN_TOLERANCE = 8  # of 255 levels, for the parts of an epoch


def _parts_of(
    begin: Callable[..., Epochs],
    parts: crop_loaders.Parts,
    *needs: str,
    epochs: int = 1,
    **options: Any,
) -> Callable[[Inputs], Task]:
    """How a peer is prepared: `needs` are the inputs that only it uses, without the name of the
    images; a run has so many epochs.
    """

    def prepare(inputs: Inputs) -> Task:
        for need in needs:
            inputs.make(f"{parts.camera}{need}")
        begin_epoch = begin(inputs.folder, parts, **options)
        count = inputs.cameras[parts.camera].count

        def run() -> list[Seen]:
            return [seen for _ in range(epochs) for seen in begin_epoch()]

        return Task(run, epochs * count, digest=partial(_digest, inputs, parts, epochs))

    return prepare


def _digest(
    inputs: Inputs, parts: crop_loaders.Parts, epochs: int, batches: list[Seen]
) -> list[Any]:
    """Of an epoch: how many images, their classes, and whether the mean value is near that of whole
    images.
    """
    count, labels, _ = map(sum, zip(*batches, strict=True))
    difference = crop_loaders.mean_of(batches, parts.side) - _mean_of_whole(inputs, parts.camera)
    return [count / epochs, labels / epochs, abs(difference) < _MEAN_TOLERANCE or difference]


def _mean_of_whole(inputs: Inputs, camera: str) -> float:
    import numpy as np
    from PIL import Image

    means = []
    for path, _ in inputs.camera(camera):
        with Image.open(path) as image:
            image.draft("RGB", (image.width // 8, image.height // 8))
            means.append(np.asarray(image).mean())
    return float(np.mean(means))


def _case(
    name: str,
    title: str,
    what: str,
    parts: crop_loaders.Parts,
    *,
    is_tiled: bool,
    at_most: dict[str, float],
    epochs: int = 1,
) -> Case:
    """The target of each peer is in `at_most`, by its name.

    epochs: of a run of recordsmith, so that it is long enough to measure.
    """

    def prepare(
        begin: Callable[..., Epochs], *needs: str, **options: Any
    ) -> Callable[[Inputs], Task]:
        return _parts_of(begin, parts, *needs, **options)

    ours = partial(prepare, crop_loaders.recordsmith, epochs=epochs)
    first, second = (_TILED, _PLAIN) if is_tiled else (_PLAIN, _TILED)
    forms = {_PLAIN: ours(), _TILED: ours(packed="tiles")}
    before = prepare(crop_loaders.recordsmith)
    rows = {
        _HAND: prepare(crop_loaders.by_hand, ".offsets"),
        _TENSORFLOW: prepare(crop_loaders.tensorflow),
        "DALI on the CPU": prepare(crop_loaders.dali, ".idx"),
        "grain, ArrayRecord, OpenCV": prepare(crop_loaders.grain, ".arrayrecord"),
        "torch `DataLoader`, torchvision": prepare(crop_loaders.torchvision),
    }
    return Case(
        name=name,
        title=title,
        what=f"{what}. Of recordsmith's rows, the first reads {first}; other loaders, plain JPEG.",
        unit="image",
        peers=(
            Peer(OURS, forms[first]),
            Peer(f"recordsmith, {second}", forms[second]),
            Peer(_BEFORE, before, at_most.get(_BEFORE), commit=BEFORE),
            *(Peer(row, task, at_most.get(row)) for row, task in rows.items()),
        ),
        inputs=tuple(f"{parts.camera}{form}" for form in ("", "-packed", "-tiles")),
        on_wall_too=True,
    )


_CROPS = "ImageNet's random crop, 8 to 100 % of the area, to 224 by 224 pixels, from JPEG files of"
_PATCHES = "Random patches of 512 by 512 pixels of JPEG files of 4,000 by 3,000 pixels and 3.3 MB"

CASES = (
    _case(
        "crops-plain",
        "Train from random crops",
        f"{_CROPS} 500 by 375 pixels and 107 kB",
        crop_loaders.CROPS,
        is_tiled=False,
        at_most={_TENSORFLOW: 1 / 1.08, _HAND: 1 / 1.1},
    ),
    _case(
        "crops-tiled",
        "Train from random crops of tiled images",
        f"{_CROPS} 500 by 375 pixels and 107 kB",
        crop_loaders.CROPS,
        is_tiled=True,
        at_most={_TENSORFLOW: 1 / 1.25, _HAND: 1 / 1.3},
    ),
    _case(
        "crops-large",
        "Train from random crops of larger images",
        f"{_CROPS} 1,600 by 1,200 pixels and 680 kB",
        crop_loaders.LARGE_CROPS,
        is_tiled=True,
        at_most={_BEFORE: 1 / 1.3},
    ),
    _case(
        "patches-plain",
        "Train from patches of large images",
        _PATCHES,
        crop_loaders.PATCHES,
        is_tiled=False,
        epochs=8,
        at_most={_HAND: 1 / 1.5},
    ),
    _case(
        "patches-tiled",
        "Train from patches of large tiled images",
        _PATCHES,
        crop_loaders.PATCHES,
        is_tiled=True,
        epochs=8,
        at_most={_HAND: 1 / 12, _TENSORFLOW: 1 / 6},
    ),
)
