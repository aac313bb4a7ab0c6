"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""

from recordsmith.loading.buckets import Buckets
from recordsmith.loading.buffer import Buffer
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
from recordsmith.loading.order import Blocks
from recordsmith.loading.specs import EntrySpec
from recordsmith.loading.stats import LoaderStats

__all__ = [
    "Blocks",
    "Boxes",
    "Buckets",
    "Buffer",
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
