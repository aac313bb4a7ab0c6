"""Batches as PyTorch tensors on the CPU, and a dataset of single examples for samplers."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import torch.utils.data

from recordsmith.dataset import Dataset
from recordsmith.loading import Examples, Features, Maps, RaggedParts, convert_entry
from recordsmith.support.errors import OptionError, option
from recordsmith.torch.workers import end_with_main_process


def convert(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a batch to tensors that share its memory.

    Numbers become tensors, a RaggedArray becomes `RaggedParts`, byte strings a list of bytes, text
    a list of str; lists of lists where a row has several. Copies only arrays that torch cannot
    share: read-only ones, foreign byte order, negative strides. Other objects stay as they are.

    Raises:
        OptionError: torch does not support the dtype of an array, such as dates.

    Example:
        for batch in map(recordsmith.torch.convert, loader):
            print(batch["label"].dtype)  # torch.int64
    """
    return {
        name: convert_entry(
            np.asarray(entry) if isinstance(entry, np.generic) else entry,  # of one example
            partial(_tensor, name),
        )
        for name, entry in batch.items()
    }


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


class ExampleDataset(torch.utils.data.Dataset[dict[str, Any]]):
    """A map-style dataset of examples as dicts of tensors. Created by `examples`."""

    def __init__(self, examples: Examples) -> None:
        self._examples = examples

    def __repr__(self) -> str:
        return f"examples({self._examples})"

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, position: SupportsIndex) -> dict[str, Any]:
        """Return the example at a position; negative positions count from the end."""
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[SupportsIndex]) -> list[dict[str, Any]]:
        """Return the examples at many positions, read together, as a DataLoader requests them."""
        end_with_main_process()
        numbers = [operator.index(position) for position in positions]
        return _split_rows(convert(self._examples.batch(numbers)))

    def set_epoch(self, epoch: int) -> None:
        """Use the random numbers of another epoch from now on.

        Persistent workers have a copy of the dataset, which this does not change.
        """
        self._examples.set_epoch(epoch)


def examples(
    dataset: Dataset,
    features: Features | None = None,
    *,
    seed: int = 0,
    map_examples: Maps | None = None,
) -> ExampleDataset:
    """Return a map-style dataset for a DataLoader with a sampler.

    Args:
        dataset: a Dataset, as `recordsmith.open` returns it.
        features, map_examples: as in `Loader`.
        seed: for flips, crops and the map's generator, which depend on the position and the epoch
            of `set_epoch`.

    Raises:
        OptionError: options conflict with the dataset, or its shards are compressed.

    Example:
        examples = recordsmith.torch.examples(dataset, {"image": rs.Image(size=32)})
        for batch in torch.utils.data.DataLoader(examples, batch_size=8, shuffle=True):
            print(batch["image"].shape)  # torch.Size([8, 32, 32, 3])
    """
    return ExampleDataset(Examples(dataset, features, seed=seed, map_examples=map_examples))


def _split_rows(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the examples of a converted batch, one dict each; tensors share its memory."""
    columns = {name: _rows(entry) for name, entry in batch.items()}
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def _rows(entry: Any) -> list[Any]:
    if isinstance(entry, RaggedParts):
        values = entry.values
        if isinstance(values, RaggedParts):
            values = _rows(values)
        return [values[start:stop] for start, stop in pairwise(entry.row_splits.tolist())]
    return list(entry)
