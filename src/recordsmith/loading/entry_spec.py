"""Describes the entries of a batch, for frameworks that need this in advance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recordsmith.format.example import BytesArray, Column, RaggedArray


@dataclass(frozen=True)
class EntrySpec:
    """The kind, dtype and shape of an entry of a batch.

    Attributes:
        kind: `numbers`, an ndarray; `text`, an ndarray of str objects; `bytes`, a BytesArray.
        dtype: of numbers; None for others.
        shape: the first axis counts examples; None for axes that differ between batches.
        is_ragged: whether rows have different lengths, (batch, None): a RaggedArray, or an ndarray
            of lists for text. Further axes, as of ragged images, are those of a value.
    """

    kind: Literal["numbers", "text", "bytes"]
    dtype: np.dtype[Any] | None
    shape: tuple[int | None, ...]
    is_ragged: bool = False


def specs_of(
    batch: dict[str, Column], batch_size: int | None, ragged_texts: Iterable[str] = ()
) -> dict[str, EntrySpec]:
    """Return the specs of the entries of a batch."""
    return {name: _spec(entry, batch_size, name in ragged_texts) for name, entry in batch.items()}


def _spec(entry: Column, batch_size: int | None, is_ragged_text: bool) -> EntrySpec:
    values = entry.values if isinstance(entry, RaggedArray) else entry
    is_ragged = isinstance(entry, RaggedArray) or is_ragged_text or _has_lists(entry)
    # an axis of length 0 in a batch without rows may have any length
    inner = () if is_ragged and not isinstance(entry, RaggedArray) else values.shape[1:]
    axes = (None,) if is_ragged else ()
    shape = (batch_size, *axes, *(length or None for length in inner))
    if isinstance(values, BytesArray):
        return EntrySpec("bytes", None, shape, is_ragged)
    if values.dtype == object:
        return EntrySpec("text", None, shape, is_ragged)
    return EntrySpec("numbers", values.dtype, shape, is_ragged)


def _has_lists(entry: Any) -> bool:
    is_of_objects = isinstance(entry, np.ndarray) and entry.dtype == object
    return is_of_objects and any(isinstance(value, list) for value in entry.ravel())
