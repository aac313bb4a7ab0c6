"""What is a batch in JAX's words, on which devices?

Numbers that JAX would cut to 32 bits in silence are an error; text and bytes, of which JAX has no
arrays, stay on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, Sharding

from recordsmith.errors import OptionError, names_like
from recordsmith.example import BytesArray, RaggedArray
from recordsmith.jax.shardings import Shardings, split_of, splits_of

_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


class Ragged(NamedTuple):
    """Rows of unequal length: row i is values[row_splits[i]:row_splits[i + 1]]. A pytree.

    values: (value_count,).
    row_splits: integers, (row_count + 1,).
    """

    values: jax.Array
    row_splits: jax.Array


def convert(batch: Mapping[str, Any], sharding: Shardings = None) -> dict[str, Any]:
    """A batch with JAX arrays: numbers as `jax.Array`, ragged ones as `Ragged`, text as lists of
    str, and byte strings as lists of bytes, both on the host.

    Without `jax_enable_x64` JAX has 32 bits: int64 become int32, float64 float32. On the CPU an
    array may be the memory of the batch itself, which must not be changed then.

    Args:
        sharding: as of `batches`.

    Raises:
        OptionError: a number does not fit into 32 bits; the rows cannot be divided by the devices;
            an entry that is spread over devices is ragged or no numbers.
    """
    if sharding is None or isinstance(sharding, Sharding):
        return {name: _convert(name, entry, sharding) for name, entry in batch.items()}
    splits_of(sharding)  # says what it is, if it is none
    for name, of_entry in sharding.items():
        if name not in batch:
            hint = names_like(name, batch, "it has none at all")
            raise OptionError(f"there is a sharding for {name!r}, but no such entry; {hint}")
        if of_entry is not None and not _has_numbers(batch[name]):
            raise OptionError(
                f"there is a sharding for {name!r}, which is no array of numbers: text and bytes "
                "stay on the host, so leave it out"
            )
    return {name: _convert(name, entry, sharding.get(name)) for name, entry in batch.items()}


def _has_numbers(entry: Any) -> bool:
    if isinstance(entry, RaggedArray):
        entry = entry.values
    if isinstance(entry, np.ndarray):
        return entry.dtype.kind not in "OSU"
    return isinstance(entry, jax.Array)


def _convert(name: str, entry: Any, sharding: Sharding | None) -> Any:
    if not _has_numbers(entry):
        is_array = isinstance(entry, (BytesArray, RaggedArray, np.ndarray))
        return entry.tolist() if is_array else entry
    if not isinstance(entry, RaggedArray):
        return _put(name, entry, sharding)
    if sharding is not None:
        raise OptionError(
            f"entry {name!r} has rows of unequal length, which cannot be spread over devices: make "
            "it a recordsmith.Padded, or give a sharding for each other entry by name"
        )
    return Ragged(_put(name, entry.values, None), _put(name, entry.row_splits, None))


def _put(name: str, array: Any, sharding: Sharding | None) -> jax.Array:
    if isinstance(array, np.ndarray):
        array = _narrowed(name, array)
    if sharding is not None:
        _check_shape(name, array.shape, sharding)
    try:
        if sharding is None or sharding.is_fully_addressable:
            return jax.device_put(array, sharding)
        # axes that are not rows are whole in each process, however they are cut
        whole = (array.shape[0] * split_of(sharding).world_size, *array.shape[1:])
        return jax.make_array_from_process_local_data(sharding, array, whole)
    except (TypeError, ValueError) as error:
        raise OptionError(f"entry {name!r}, {array.dtype} {array.shape}: {error}") from error


def _narrowed(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in the dtype that JAX will have it in.

    JAX itself would wrap integers around, and takes no foreign byte order.
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
            f"entry {name!r} has {array[wrong][0]}, {array.dtype}, which does not fit into "
            f"{narrow}, and JAX has no more bits: make the number smaller in map_batches, leave "
            "the entry out, or begin with jax.config.update('jax_enable_x64', True)"
        )
    return narrowed


def _check_shape(name: str, shape: tuple[int, ...], sharding: Sharding) -> None:
    """Whether this process's part of an array can be cut as the sharding does."""
    if isinstance(sharding, NamedSharding) and len(sharding.spec) > len(shape):
        raise OptionError(
            f"entry {name!r} has shape {shape}, but its sharding cuts {len(sharding.spec)} axes: "
            f"{sharding.spec}; give one by name for each entry"
        )
    part_count = split_of(sharding).part_count
    if shape[0] % part_count:
        raise OptionError(
            f"entry {name!r} has {shape[0]} rows, which {part_count} devices cannot share: make "
            "the loader with ends='drop' or ends='pad', and leave out what makes batches smaller"
        )
