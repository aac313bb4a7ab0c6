"""Converts batches to JAX arrays and puts them on devices.

Numbers that JAX would silently truncate to 32 bits are an error; text and bytes stay on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, Sharding

from recordsmith.format.example import RaggedArray
from recordsmith.jax.shardings import Shardings, split_of, splits_of
from recordsmith.loading import convert_entry
from recordsmith.support.errors import OptionError, option
from recordsmith.support.words import suggest_names

_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def convert(batch: Mapping[str, Any], sharding: Shardings = None) -> dict[str, Any]:
    """Convert a batch to JAX arrays.

    Numbers become a `jax.Array`, ragged numbers `RaggedParts`; text and byte strings become lists
    of str and bytes on the host.

    Without `jax_enable_x64`, int64 becomes int32 and float64 float32. On the CPU an array may share
    the memory of the batch, which must not be changed then.

    Args:
        sharding: as in `batches`.

    Raises:
        OptionError: a number needs more than 32 bits; the rows cannot be divided among the devices;
            a sharded entry is ragged or not numeric.

    Example:
        for batch in map(recordsmith.jax.convert, loader):
            print(batch["label"].dtype)  # int32
    """
    if sharding is None or isinstance(sharding, Sharding):
        return {name: _convert(name, entry, sharding) for name, entry in batch.items()}
    splits_of(sharding)  # checks it
    for name, of_entry in sharding.items():
        if name not in batch:
            hint = suggest_names(name, batch, "the batch is empty")
            raise OptionError(
                f"{option('sharding')} has {name!r}, but the batch has no such entry; {hint}",
                option="sharding",
                value=name,
            )
        if of_entry is not None and not _has_numbers(batch[name]):
            raise OptionError(
                f"{option('sharding')} has {name!r}, which is not an array of numbers",
                option="sharding",
                value=name,
                remedy="Leave it out: text and bytes stay on the host.",
            )
    return {name: _convert(name, entry, sharding.get(name)) for name, entry in batch.items()}


def _has_numbers(entry: Any) -> bool:
    while isinstance(entry, RaggedArray):
        entry = entry.values
    if isinstance(entry, np.ndarray):
        return entry.dtype.kind not in "OSU"
    return isinstance(entry, jax.Array)


def _convert(name: str, entry: Any, sharding: Sharding | None) -> Any:
    if isinstance(entry, jax.Array):
        return _put(name, entry, sharding)
    if sharding is not None and isinstance(entry, RaggedArray) and _has_numbers(entry):
        raise OptionError(
            f"entry {name!r} has rows of different lengths, which cannot be sharded",
            option="sharding",
            remedy="Declare it as recordsmith.Padded, or pass a dict with a sharding for each "
            "other entry.",
        )
    return convert_entry(entry, lambda array: _put(name, array, sharding))


def _put(name: str, array: Any, sharding: Sharding | None) -> jax.Array:
    if isinstance(array, np.ndarray):
        array = _narrowed(name, array)
    if sharding is not None:
        _check_shape(name, array.shape, sharding)
    try:
        if sharding is None or sharding.is_fully_addressable:
            return jax.device_put(array, sharding)
        # axes other than rows are complete in each process, however they are split
        whole = (array.shape[0] * split_of(sharding).world_size, *array.shape[1:])
        return jax.make_array_from_process_local_data(sharding, array, whole)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"entry {name!r}, {array.dtype} {array.shape}: {error}", option="sharding"
        ) from error


def _narrowed(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in the dtype that JAX uses for it.

    JAX itself would wrap integers around, and does not support foreign byte order.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    narrow = _NARROW.get(array.dtype.name)
    if narrow is None or jax.config.jax_enable_x64:
        return array
    with np.errstate(over="ignore"):
        narrowed = array.astype(narrow)
    if array.dtype.kind in "iu":
        wrong = narrowed != array
    else:
        wrong = np.isfinite(array) & ~np.isfinite(narrowed)
    if wrong.any():
        raise OptionError(
            f"entry {name!r} has {array[wrong][0]}, {array.dtype}, which {narrow} cannot hold",
            value=array[wrong][0],
            remedy=f"Change it in {option('map_batches')}, leave the entry out, or start with "
            "jax.config.update('jax_enable_x64', True).",
        )
    return narrowed


def _check_shape(name: str, shape: tuple[int, ...], sharding: Sharding) -> None:
    """Raise OptionError unless the sharding can split the part of this process."""
    if isinstance(sharding, NamedSharding) and len(sharding.spec) > len(shape):
        raise OptionError(
            f"entry {name!r} has shape {shape}, but its sharding splits {len(sharding.spec)} axes: "
            f"{sharding.spec}",
            option="sharding",
            remedy="Pass a dict with a sharding for each entry.",
        )
    part_count = split_of(sharding).part_count
    if shape[0] % part_count:
        raise OptionError(
            f"entry {name!r} has {shape[0]} rows, which {part_count} devices cannot share",
            option="sharding",
            value=shape[0],
            expected=f"a multiple of {part_count}",
            remedy=f"Create the loader with {option('last_batch', 'drop')} or "
            f"{option('last_batch', 'pad')}, and without options that remove rows.",
        )
