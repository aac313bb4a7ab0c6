"""What is a batch in PyTorch's words?

Numbers become tensors over the same memory, wherever torch can take it as it lies; bytes and text,
for which torch has no tensors, become lists. Nothing is moved to a device here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from recordsmith.errors import OptionError
from recordsmith.example import BytesArray, RaggedArray


class Ragged(NamedTuple):
    """Rows of unequal length: row i is values[row_splits[i]:row_splits[i + 1]].

    `torch.nested.nested_tensor_from_jagged(*ragged)` makes a nested tensor of it, without copying.

    values: tensor of one axis, all rows end to end.
    row_splits: int64, (rows + 1,).
    """

    values: torch.Tensor
    row_splits: torch.Tensor


def convert(batch: Mapping[str, Any]) -> dict[str, Any]:
    """A batch with tensors in place of arrays, over the same memory.

    Numbers become tensors, a RaggedArray a `Ragged`, byte strings a list of bytes, text a list of
    str; lists of lists where a row has several. Only arrays that torch cannot take as they are get
    copied: read-only ones, foreign byte order, negative strides. What is no array stays.

    Raises:
        OptionError: an array has a dtype that torch does not know, such as dates.
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
        return Ragged(_tensor(name, entry.values), _tensor(name, entry.row_splits))
    return entry


def _tensor(name: str, array: npt.NDArray[Any]) -> torch.Tensor:
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable:
        array = array.copy()  # as tensors can always be written to
    try:
        return torch.from_numpy(array)
    except ValueError:  # strides that are negative, or no whole number of values
        return torch.from_numpy(array.copy())
    except TypeError as error:
        raise OptionError(
            f"{name!r} is an array of {array.dtype}, for which torch {torch.__version__} has no "
            f"tensor ({error}): convert it in map_batches"
        ) from None


def rows(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The examples of a converted batch, one dict each; tensors share its memory."""
    columns = {name: _rows(entry) for name, entry in batch.items()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _rows(entry: Any) -> list[Any]:
    if isinstance(entry, Ragged):
        return [entry.values[start:stop] for start, stop in pairwise(entry.row_splits.tolist())]
    return list(entry)
