"""Batches of a loader as JAX arrays: on one device, or spread over many.

    for batch in recordsmith.jax.batches(loader, sharding):
        state = train_step(state, batch["image"], batch["label"])

`conversion` puts a batch on devices, `stream` does so a few batches ahead of the loop, `shardings`
finds which rows each process has.
"""

try:
    from recordsmith.jax.conversion import JaxRagged, convert
    from recordsmith.jax.shardings import this_rank
    from recordsmith.jax.stream import JaxBatches, batches
except ModuleNotFoundError as error:
    from recordsmith.errors import MissingExtraError

    if error.name != "jax":
        raise  # it is there, but something that it needs is not
    raise MissingExtraError("jax", "jax") from error

__all__ = ["JaxBatches", "JaxRagged", "batches", "convert", "this_rank"]
