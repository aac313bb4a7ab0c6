"""Converts batches to PyTorch tensors on the CPU.

Numbers become tensors that share the memory of the arrays where possible; bytes and text become
lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from recordsmith.errors import OptionError, option
from recordsmith.example import BytesArray, RaggedArray
from recordsmith.loading.adapters import RaggedParts


def convert(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a batch to tensors that share its memory.

    Numbers become tensors, a RaggedArray becomes `RaggedParts`, byte strings a list of bytes, text
    a list of str; lists of lists where a row has several. Copies only arrays that torch cannot
    share: read-only ones, foreign byte order, negative strides. Other objects stay as they are.

    Raises:
        OptionError: torch does not support the dtype of an array, such as dates.
    """
    return {name: _converted(name, entry) for name, entry in batch.items()}


def _converted(name: str, entry: Any) -> Any:
    if isinstance(entry, np.ndarray):
        return entry.tolist() if entry.dtype.kind in "OSU" else _tensor(name, entry)
    if isinstance(entry, np.generic):  # of one example
        return _converted(name, np.asarray(entry))
    if isinstance(entry, BytesArray):
        return entry.tolist()
    if isinstance(entry, RaggedArray):
        if isinstance(entry.values, BytesArray):
            return entry.tolist()
        return RaggedParts(_tensor(name, entry.values), _tensor(name, entry.row_splits))
    return entry


def _tensor(name: str, array: npt.NDArray[Any]) -> torch.Tensor:
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable:
        array = array.copy()  # as tensors can always be written to
    if array.dtype.name == "bfloat16":  # a type that NumPy lacks
        return _tensor(name, array.view(np.int16)).view(torch.bfloat16)
    try:
        return torch.from_numpy(array)
    except ValueError:  # strides that are negative, or no whole number of values
        return torch.from_numpy(array.copy())
    except TypeError as error:
        raise OptionError(
            f"torch {torch.__version__} does not support {array.dtype}, the dtype of {name!r} "
            f"({error})",
            value=array.dtype,
            remedy=f"Convert it in {option('map_batches')}.",
        ) from None


def rows(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the examples of a converted batch, one dict each; tensors share its memory."""
    columns = {name: _rows(entry) for name, entry in batch.items()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _rows(entry: Any) -> list[Any]:
    if isinstance(entry, RaggedParts):
        return [entry.values[start:stop] for start, stop in pairwise(entry.row_splits.tolist())]
    return list(entry)
