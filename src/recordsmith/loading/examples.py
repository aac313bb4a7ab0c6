"""Single examples of a dataset, at any position, decoded as in a loader's batches.

For whoever draws positions himself: samplers of other libraries, a look at one picture.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.loading.features import Feature
from recordsmith.loading.functions import Changes, Map
from recordsmith.loading.making import batch_maker
from recordsmith.loading.options import seed_number, whole_number
from recordsmith.loading.ordering import check_readable_at_positions
from recordsmith.loading.schedule import Progress, Step


class Examples:
    """A sequence of decoded examples: dicts of what a batch has for one of its rows.

        examples = Examples(dataset, {"image": Image(size=224), "label": "image/class/label"})
        examples[17]["image"]  # uint8, (224, 224, 3)

    Reads only what is asked for. Safe to read from several threads; it may travel to another
    process by pickle, if its map can.
    """

    def __init__(
        self,
        dataset: Dataset,
        features: Mapping[str, Feature | str] | None = None,
        *,
        seed: int = 0,
        map_examples: Map | None = None,
    ) -> None:
        """Nothing is read yet but what shows that the features are there.

        Args:
            dataset, features, map_examples: as of a Loader.
            seed: of what is random: flips, crops, the map's generator. They belong to a position
                and the epoch that was set; an example is the same each time it is asked for.

        Raises:
            OptionError: options contradict the dataset; its shards are compressed, which can only
                be read from their beginning.
        """
        check_readable_at_positions(dataset)
        self._dataset = dataset
        self._epoch = 0
        changes = Changes(map_examples=map_examples)
        self._maker = batch_maker(dataset, features, seed=seed_number(seed), changes=changes)

    def __repr__(self) -> str:
        return f"Examples({', '.join(self._maker.names)}; {len(self)} of them)"

    def __len__(self) -> int:
        return len(self._dataset)

    def set_epoch(self, epoch: int) -> None:
        """Draw other random numbers from now on: those of this epoch."""
        self._epoch = whole_number("epoch", epoch, 0)

    def __getitem__(self, position: SupportsIndex) -> dict[str, Any]:
        """The example at a position; negative ones count from the end.

        Raises:
            IndexError: there is no such position.
            CorruptDataError: the record is damaged, or not what was declared.
        """
        batch = self.batch([operator.index(position)])
        return {name: entry[0] for name, entry in batch.items()}

    def batch(self, positions: Sequence[int] | Int64Array) -> dict[str, Any]:
        """The examples at many positions as one batch, like those of a Loader; in that order."""
        chosen = np.array(positions, np.int64)
        if chosen.ndim != 1:
            raise OptionError(f"positions have shape {chosen.shape}; expected one axis")
        count = len(self)
        wrong = chosen[(chosen < -count) | (chosen >= count)]
        if len(wrong):
            raise IndexError(f"position {wrong[0]} of {count} examples")
        chosen %= max(1, count)
        return self._maker.make(Step(self._epoch, chosen, chosen, Progress())).batch


def decoded_or_plain(
    dataset: Dataset,
    features: Mapping[str, Feature | str] | None,
    *,
    seed: int,
    map_examples: Map | None,
) -> Examples | Dataset:
    """What adapters read at positions: Examples, or without features the dataset as it is.

    Raises:
        OptionError: as of Examples; there is a map, and nothing is decoded.
    """
    if features is not None:
        return Examples(dataset, features, seed=seed, map_examples=map_examples)
    if map_examples is not None:
        raise OptionError("map_examples changes decoded examples: say features as well")
    check_readable_at_positions(dataset)
    return dataset
