"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""

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
from recordsmith.loading.order import Blocks
from recordsmith.loading.stats import LoaderStats

__all__ = [
    "Blocks",
    "Boxes",
    "Bytes",
    "Image",
    "Loader",
    "LoaderStats",
    "Mask",
    "Padded",
    "Position",
    "Ragged",
    "Raw",
    "Scalar",
    "Tensor",
    "Text",
]
