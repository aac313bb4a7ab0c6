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
        ragged_rank: how many axes after the first differ between rows, (batch, None, ...): those of
            a RaggedArray, 2 if its rows are ragged, too, or of an ndarray of lists for text.
    """

    kind: Literal["numbers", "text", "bytes"]
    dtype: np.dtype[Any] | None
    shape: tuple[int | None, ...]
    ragged_rank: int = 0

    @property
    def is_ragged(self) -> bool:
        """Whether rows have different lengths."""
        return self.ragged_rank > 0


def specs_of(
    batch: dict[str, Column], batch_size: int | None, ragged_texts: Iterable[str] = ()
) -> dict[str, EntrySpec]:
    """Return the specs of the entries of a batch."""
    return {name: _spec(entry, batch_size, name in ragged_texts) for name, entry in batch.items()}


def _spec(entry: Column, batch_size: int | None, is_ragged_text: bool) -> EntrySpec:
    values: Any = entry
    ragged_rank = 0
    while isinstance(values, RaggedArray):
        values, ragged_rank = values.values, ragged_rank + 1
    inner = values.shape[1:]
    if is_ragged_text or _has_lists(entry):
        ragged_rank, inner = 1, ()
    # an axis of length 0 in a batch without rows may have any length
    shape = (batch_size, *[None] * ragged_rank, *(length or None for length in inner))
    if isinstance(values, BytesArray):
        return EntrySpec("bytes", None, shape, ragged_rank)
    if values.dtype == object:
        return EntrySpec("text", None, shape, ragged_rank)
    return EntrySpec("numbers", values.dtype, shape, ragged_rank)


def _has_lists(entry: Any) -> bool:
    is_of_objects = isinstance(entry, np.ndarray) and entry.dtype == object
    return is_of_objects and any(isinstance(value, list) for value in entry.ravel())
