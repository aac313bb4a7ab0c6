"""Examples at positions, for whoever draws the positions: torch's samplers, or your own."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import torch.utils.data

from recordsmith.dataset import Dataset
from recordsmith.loading import Examples
from recordsmith.loading.examples import decoded_or_plain
from recordsmith.loading.features import Feature
from recordsmith.loading.functions import Map
from recordsmith.torch.conversion import convert, rows


class ExampleDataset(torch.utils.data.Dataset[dict[str, Any]]):
    """A map-style dataset: dicts of tensors, one for each example, at any position.

    Reads only what is asked for. `examples` makes one.
    """

    def __init__(self, examples: Examples | Dataset) -> None:
        self._examples = examples

    def __repr__(self) -> str:
        return f"examples({self._examples})"

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, position: SupportsIndex) -> dict[str, Any]:
        """The example at a position; negative ones count from the end."""
        return self.__getitems__([position])[0]

    def __getitems__(self, positions: Sequence[SupportsIndex]) -> list[dict[str, Any]]:
        """The examples at many positions, read together: what a DataLoader asks for."""
        numbers = [operator.index(position) for position in positions]
        if isinstance(self._examples, Examples):
            return rows(convert(self._examples.batch(numbers)))
        return [self._examples[number] for number in numbers]

    def set_epoch(self, epoch: int) -> None:
        """Draw other random numbers from now on: those of this epoch.

        Workers that persist have a copy, which this does not reach.
        """
        if isinstance(self._examples, Examples):
            self._examples.set_epoch(epoch)


def examples(
    dataset: Dataset,
    features: Mapping[str, Feature | str] | None = None,
    *,
    seed: int = 0,
    map_examples: Map | None = None,
) -> ExampleDataset:
    """A map-style dataset for a DataLoader with a sampler of torch's or of your own.

    Args:
        dataset: what `recordsmith.open` answers.
        features: what an example holds, as of a Loader. Without them it is `dataset[i]`: arrays and
            lists of bytes by the keys of the records, not decoded.
        seed: of what is random: flips, crops, the map's generator. They belong to a position and
            the epoch that `set_epoch` says.
        map_examples: (example, generator) -> example, in arrays, as of a Loader.

    Raises:
        OptionError: options contradict the dataset; its shards are compressed, which can only be
            read from their beginning.
    """
    return ExampleDataset(decoded_or_plain(dataset, features, seed=seed, map_examples=map_examples))
