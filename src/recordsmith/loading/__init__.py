"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""

from recordsmith.loading.buckets import Buckets
from recordsmith.loading.buffer import Buffer
from recordsmith.loading.features import Image, Mask, Scalar, Tensor
from recordsmith.loading.loader import Loader
from recordsmith.loading.mix import Mix
from recordsmith.loading.order import Blocks

__all__ = ["Blocks", "Buckets", "Buffer", "Image", "Loader", "Mask", "Mix", "Scalar", "Tensor"]
