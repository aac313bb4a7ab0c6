"""Loads batches: order, reading, decoding, batching, prefetching, state. Independent of packing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from recordsmith.loading.entry_spec import EntrySpec
from recordsmith.loading.episodes.episodes import Episodes
from recordsmith.loading.examples import Examples
from recordsmith.loading.features import (
    Bytes,
    Normalise,
    Padded,
    Position,
    Present,
    Ragged,
    Raw,
    Scalar,
    Tensor,
    Text,
)
from recordsmith.loading.loader import Loader
from recordsmith.loading.loader_stats import LoaderStats
from recordsmith.loading.order.buckets import BucketBySize
from recordsmith.loading.order.mix import Mix
from recordsmith.loading.order.shuffle import BlockShuffle

if TYPE_CHECKING:
    from recordsmith.loading.augment.colour_jitter import ColorJitter
    from recordsmith.loading.augment.mixing import Cutmix, Mixup
    from recordsmith.loading.augment.random_erasing import RandomErasing
    from recordsmith.loading.features.images.boxes import Boxes
    from recordsmith.loading.features.images.image import Image
    from recordsmith.loading.features.images.mask import Mask
    from recordsmith.loading.features.images.patches import Patches
    from recordsmith.loading.order.packed import Packed
    from recordsmith.loading.order.weighted import Weighted

__all__ = [
    "BlockShuffle",
    "Boxes",
    "BucketBySize",
    "Bytes",
    "ColorJitter",
    "Cutmix",
    "EntrySpec",
    "Episodes",
    "Examples",
    "Image",
    "Loader",
    "LoaderStats",
    "Mask",
    "Mix",
    "Mixup",
    "Normalise",
    "Packed",
    "Padded",
    "Patches",
    "Position",
    "Present",
    "Ragged",
    "RandomErasing",
    "Raw",
    "Scalar",
    "Tensor",
    "Text",
    "Weighted",
]


_LATER = {
    "Boxes": "features.images.boxes",
    "ColorJitter": "augment.colour_jitter",
    "Cutmix": "augment.mixing",
    "Image": "features.images.image",
    "Mask": "features.images.mask",
    "Mixup": "augment.mixing",
    "Packed": "order.packed",
    "Patches": "features.images.patches",
    "RandomErasing": "augment.random_erasing",
    "Weighted": "order.weighted",
}


def __getattr__(name: str) -> Any:
    """Import what many loaders do not need when it is used, such as all image formats."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
