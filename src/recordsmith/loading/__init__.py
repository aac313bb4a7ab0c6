"""Loads batches: order, reading, decoding, batching, prefetching, state. Independent of packing."""

from recordsmith.loading.entry_spec import EntrySpec
from recordsmith.loading.examples import Examples
from recordsmith.loading.features import (
    Boxes,
    Bytes,
    Image,
    Mask,
    Padded,
    Patches,
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
