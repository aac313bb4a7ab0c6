"""Batches of a loader as JAX arrays: on one device, or spread over many.

    for batch in recordsmith.jax.batches(loader, sharding):
        state = train_step(state, batch["image"], batch["label"])

`conversion` puts a batch on devices, `stream` does so a few batches ahead of the loop, `shardings`
finds which rows each process has.
"""

from recordsmith.support.errors import needs_extra

with needs_extra("jax"):
    from recordsmith.jax.conversion import convert
    from recordsmith.jax.shardings import this_rank
    from recordsmith.jax.stream import JaxBatches, batches
    from recordsmith.loading import RaggedParts

__all__ = ["JaxBatches", "RaggedParts", "batches", "convert", "this_rank"]
