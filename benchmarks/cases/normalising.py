"""Decoded images to what a network takes: float32, normalised, planes of channels.

Nothing is read or decoded: the images are in memory, uint8, (height, width, channels), as a decoder
leaves them. All peers work in one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from case import OURS, Case, Peer, Task
from inputs import Inputs

Layout = Literal["HWC", "CHW"]
COUNT, SIDE = 32, 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_TIMES = 16  # batches in a run


def _images() -> Any:
    import numpy as np

    return np.random.default_rng(0).integers(0, 256, (COUNT, SIDE, SIDE, 3), np.uint8)


def _task(make: Callable[[], Any]) -> Task:
    """`make`: returns a batch."""

    def run() -> Any:
        for _ in range(_TIMES):
            batch = make()
        return batch

    return Task(run, COUNT * _TIMES, digest=_digest)


def _digest(batch: Any) -> list[float]:
    """The mean and the largest value, to three digits: DALI rounds differently."""
    if hasattr(batch, "as_array"):
        batch = batch.as_array()
    return [round(float(value), 3) for value in (batch.mean(), batch.max())]


def _recordsmith(_: Inputs, layout: Layout) -> Task:
    import numpy as np

    from recordsmith.image import Normaliser

    images, write = _images(), Normaliser(np.float32, layout, MEAN, STD).write
    shape = (COUNT, 3, SIDE, SIDE) if layout == "CHW" else images.shape
    batch = np.empty(shape, np.float32)  # a loader uses the memory of batches that are gone

    def make() -> Any:
        for image, out in zip(images, batch, strict=True):
            write(image, out, 255)
        return batch

    return _task(make)


def _numpy(_: Inputs, layout: Layout) -> Task:
    """Into memory that is there, with as few passes as NumPy allows."""
    import numpy as np

    factors = (1 / (255 * np.array(STD))).astype(np.float32)
    shifts = (-np.array(MEAN) / STD).astype(np.float32)
    images = _images()
    if layout == "CHW":
        images = images.transpose(0, 3, 1, 2)
        factors, shifts = factors[:, None, None], shifts[:, None, None]
    batch = np.empty(images.shape, np.float32)

    def make() -> Any:
        for image, out in zip(images, batch, strict=True):
            np.multiply(image, factors, out=out)
            np.add(out, shifts, out=out)
        return batch

    return _task(make)


def _torchvision(_: Inputs) -> Task:
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    to_float, normalise = v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD, True)
    images = torch.from_numpy(_images()).permute(0, 3, 1, 2)
    batch = torch.empty(images.shape)

    def make() -> Any:
        for image, out in zip(images, batch, strict=True):
            out.copy_(normalise(to_float(image.contiguous())))
        return batch

    return _task(make)


def _albumentations(_: Inputs) -> Task:
    import albumentations
    import cv2
    import torch
    from albumentations.pytorch import ToTensorV2

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    transform = albumentations.Compose([albumentations.Normalize(MEAN, STD), ToTensorV2()])
    images = _images()
    batch = torch.empty((COUNT, 3, SIDE, SIDE))

    def make() -> Any:
        for image, out in zip(images, batch, strict=True):
            out.copy_(transform(image=image)["image"])
        return batch

    return _task(make)


def _dali(_: Inputs, layout: Layout) -> Task:
    from nvidia.dali import fn, pipeline_def, types

    images = _images()

    @pipeline_def(batch_size=COUNT, num_threads=1, device_id=None, prefetch_queue_depth=1)  # type: ignore[untyped-decorator]
    def pipeline() -> Any:
        frames = fn.external_source(lambda: images, layout="HWC", no_copy=True)
        return fn.crop_mirror_normalize(
            frames,
            dtype=types.FLOAT,
            output_layout=layout,
            mean=[255 * value for value in MEAN],
            std=[255 * value for value in STD],
        )

    made = pipeline()
    made.build()
    return _task(lambda: made.run()[0])


_TORCH_PEERS = (
    Peer("torchvision v2", _torchvision, at_most=1 / 2),
    Peer("albumentations", _albumentations, at_most=1 / 2),
)


def _case(layout: Layout, *others: Peer) -> Case:
    return Case(
        name=f"normalise-{layout.lower()}",
        title=f"Normalise images, {layout}",
        what=(
            f"Images of {SIDE} by {SIDE} pixels, uint8 and in memory, to float32, {layout}, with "
            "the mean and standard deviation of ImageNet; one thread."
        ),
        unit="image",
        peers=(
            Peer(OURS, partial(_recordsmith, layout=layout)),
            Peer("by hand, NumPy", partial(_numpy, layout=layout), at_most=1 / 1.5),
            *others,
            Peer("DALI on the CPU", partial(_dali, layout=layout), at_most=1 / 2),
        ),
    )


CASES = (_case("CHW", *_TORCH_PEERS), _case("HWC"))
