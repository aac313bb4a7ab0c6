"""Loads batches: order, reading, decoding, batching, prefetching, state. Independent of packing."""

from recordsmith.loading.buckets import BucketBySize
from recordsmith.loading.buffer import BufferShuffle
from recordsmith.loading.examples import Examples
from recordsmith.loading.features import (
    Boxes,
    Bytes,
    Image,
    Mask,
    Padded,
    Position,
    Ragged,
    Raw,
    Scalar,
    Tensor,
    Text,
)
from recordsmith.loading.loader import Loader
from recordsmith.loading.mix import Mix
from recordsmith.loading.order import BlockShuffle
from recordsmith.loading.specs import EntrySpec
from recordsmith.loading.stats import LoaderStats

__all__ = [
    "BlockShuffle",
    "Boxes",
    "BucketBySize",
    "BufferShuffle",
    "Bytes",
    "EntrySpec",
    "Examples",
    "Image",
    "Loader",
    "LoaderStats",
    "Mask",
    "Mix",
    "Padded",
    "Position",
    "Ragged",
    "Raw",
    "Scalar",
    "Tensor",
    "Text",
]
