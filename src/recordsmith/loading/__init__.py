"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""

from recordsmith.loading.features import Scalar, Tensor
from recordsmith.loading.loader import Loader
from recordsmith.loading.order import Blocks
from recordsmith.loading.stats import LoaderStats

__all__ = ["Blocks", "Loader", "LoaderStats", "Scalar", "Tensor"]
