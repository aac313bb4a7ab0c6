"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""

from recordsmith.loading.features import (
    Boxes,
    Bytes,
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

__all__ = [
    "Blocks",
    "Boxes",
    "Bytes",
    "Loader",
    "Padded",
    "Position",
    "Ragged",
    "Raw",
    "Scalar",
    "Tensor",
    "Text",
]
