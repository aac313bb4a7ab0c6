"""What the adapters of frameworks share: checks of the loader, and the entries of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.format.example import BytesArray, RaggedArray
from recordsmith.loading.loader import Loader
from recordsmith.support.errors import OptionError, option


class RaggedParts(NamedTuple):
    """Rows of unequal length: row i is values[row_splits[i]:row_splits[i + 1]]. A pytree.

    Attributes:
        values: the framework's array, whose first axis has all rows end to end; or RaggedParts of
            rows that are ragged themselves.
        row_splits: integers, (rows + 1,).
    """

    values: Any
    row_splits: Any


class Rank(TypedDict):
    """The rank of this process and the number of ranks, as a Loader takes them."""

    rank: int
    world_size: int


def convert_entry(entry: Any, to_tensor: Callable[[Any], Any]) -> Any:
    """Convert an entry of a batch: text and bytes to lists, arrays of numbers with `to_tensor`.

    Ragged numbers become `RaggedParts`; objects that are not of a loader stay as they are.
    """
    values = entry
    while isinstance(values, RaggedArray):
        values = values.values
    is_text = isinstance(values, np.ndarray) and values.dtype.kind in "OSU"
    if is_text or isinstance(values, BytesArray):
        return entry.tolist()
    if isinstance(entry, RaggedArray):
        return RaggedParts(convert_entry(entry.values, to_tensor), to_tensor(entry.row_splits))
    return to_tensor(entry) if isinstance(entry, np.ndarray) else entry


def check_loader(
    loader: Any, rank: Rank | None = None, how: str = "Loader(..., **this_rank())"
) -> None:
    """Raise OptionError unless it is a loader, with the rank of this process if passed."""
    if not isinstance(loader, Loader):
        raise OptionError(
            option="loader",
            value=loader,
            expected="a recordsmith.Loader",
            remedy="Create a Loader from it first." if isinstance(loader, Dataset) else "",
        )
    if rank is not None and (loader.rank, loader.world_size) != tuple(rank.values()):
        raise OptionError(
            f"the loader reads for rank {loader.rank} of {loader.world_size}, but this process is "
            f"rank {rank['rank']} of {rank['world_size']}",
            option="rank",
            value=loader.rank,
            remedy=f"Create the loader with {how}, or pass {option('any_rank', True)} if several "
            "ranks read the same records.",
        )
