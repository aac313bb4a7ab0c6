"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""

from recordsmith.loading.features import Image, Mask, Scalar, Tensor
from recordsmith.loading.loader import Loader
from recordsmith.loading.order import Blocks

__all__ = ["Blocks", "Image", "Loader", "Mask", "Scalar", "Tensor"]
