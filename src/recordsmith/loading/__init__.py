"""Loads batches: order, reading, decoding, batching, prefetching, state. Independent of packing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from recordsmith.loading.entry_spec import EntrySpec
from recordsmith.loading.examples import Examples
from recordsmith.loading.features import (
    Bytes,
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
    from recordsmith.loading.features.images.boxes import Boxes
    from recordsmith.loading.features.images.image import Image
    from recordsmith.loading.features.images.mask import Mask
    from recordsmith.loading.features.images.patches import Patches

__all__ = [
    "BlockShuffle",
    "Boxes",
    "BucketBySize",
    "Bytes",
    "EntrySpec",
    "Examples",
    "Image",
    "Loader",
    "LoaderStats",
    "Mask",
    "Mix",
    "Padded",
    "Patches",
    "Position",
    "Present",
    "Ragged",
    "Raw",
    "Scalar",
    "Tensor",
    "Text",
]


def __getattr__(name: str) -> Any:
    """Import the features of images when they are used: they load all image formats."""
    if name not in ("Boxes", "Image", "Mask", "Patches"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.features.images.{name.lower()}")
    return getattr(module, name)
