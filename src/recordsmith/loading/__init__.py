"""Positions -> batches: order, fetch, decode, batch, prefetch, state. Knows nothing of packing."""
