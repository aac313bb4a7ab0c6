"""Examples at positions, for torch's samplers or your own."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import torch.utils.data

from recordsmith.dataset import Dataset
from recordsmith.loading import Examples
from recordsmith.loading.batches.user_functions import Map
from recordsmith.loading.examples import decoded_or_plain
from recordsmith.loading.features.declaration import Features
from recordsmith.torch.conversion import convert, rows


class ExampleDataset(torch.utils.data.Dataset[dict[str, Any]]):
    """A map-style dataset of examples as dicts of tensors. Created by `examples`."""

    def __init__(self, examples: Examples | Dataset) -> None:
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
        numbers = [operator.index(position) for position in positions]
        if isinstance(self._examples, Examples):
            return rows(convert(self._examples.batch(numbers)))
        return [self._examples[number] for number in numbers]

    def set_epoch(self, epoch: int) -> None:
        """Use the random numbers of another epoch from now on.

        Persistent workers have a copy of the dataset, which this does not change.
        """
        if isinstance(self._examples, Examples):
            self._examples.set_epoch(epoch)


def examples(
    dataset: Dataset,
    features: Features | None = None,
    *,
    seed: int = 0,
    map_examples: Map | None = None,
) -> ExampleDataset:
    """Return a map-style dataset for a DataLoader with a sampler.

    Args:
        dataset: a Dataset, as `recordsmith.open` returns it.
        features: as of a Loader. Without them, examples are `dataset[i]`: arrays and lists of bytes
            by key, not decoded.
        seed: for flips, crops and the map's generator, which depend on the position and the epoch
            of `set_epoch`.
        map_examples: as of a Loader; called with arrays.

    Raises:
        OptionError: options conflict with the dataset, or its shards are compressed.
    """
    return ExampleDataset(decoded_or_plain(dataset, features, seed=seed, map_examples=map_examples))
