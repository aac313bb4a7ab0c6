"""Decodes single examples at any position, for samplers of other libraries and for previews."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

from recordsmith.dataset import Dataset, Positions, integer_positions
from recordsmith.loading.batches.batch_maker import make_batch_maker
from recordsmith.loading.batches.user_functions import Maps, UserFunctions
from recordsmith.loading.features.declaration import Features
from recordsmith.loading.order.inputs import LoaderInput, as_input
from recordsmith.loading.order.schedule import EpochProgress, Step
from recordsmith.support.number_options import seed_number, whole_number


class Examples:
    """A sequence of decoded examples: dicts with one row of each entry of a batch.

    Reads only the examples requested. Safe to use from several threads; can be pickled if its map
    can.

    Example:
        examples = rs.Examples(dataset, {"image": rs.Image(size=64), "label": "image/class/label"})
        print(examples[17]["image"].shape)  # (64, 64, 3)
    """

    def __init__(
        self,
        dataset: Dataset | LoaderInput,
        features: Features | None = None,
        *,
        seed: int = 0,
        map_examples: Maps | None = None,
    ) -> None:
        """Create the sequence. Reads only the schema, or the first records where it is unknown.

        Args:
            dataset, features, map_examples: as in `Loader`.
            seed: for flips, crops and the map's generator. They depend on the position and the
                epoch, so an example is the same each time it is read.

        Raises:
            OptionError: options conflict with the dataset, or its shards are compressed.
        """
        source = as_input(dataset)
        self._record_count = source.record_count
        self._epoch = 0
        functions = UserFunctions.checked(map_examples=map_examples)
        self._maker = make_batch_maker(
            source, features, seed=seed_number(seed), functions=functions
        )

    def __repr__(self) -> str:
        names = ", ".join(self._maker.names)
        return f"Examples({len(self)} examples{names and ': '}{names})"

    def __len__(self) -> int:
        return self._record_count

    def set_epoch(self, epoch: int) -> None:
        """Use the random numbers of another epoch from now on."""
        self._epoch = whole_number("epoch", epoch, 0)

    def __getitem__(self, position: SupportsIndex) -> dict[str, Any]:
        """Return the example at a position; negative positions count from the end."""
        batch = self.batch([operator.index(position)])
        return {name: entry[0] for name, entry in batch.items()}

    def batch(self, positions: Positions) -> dict[str, Any]:
        """Return the examples at many positions as one batch, in that order.

        Args:
            positions: integers, or a boolean mask, as in `Dataset.read_records`.

        Raises:
            IndexError: a position is out of range.
            OptionError: the positions are not integers, or a mask has the wrong length.
            CorruptDataError: a record is damaged, or does not match the features.
        """
        chosen = integer_positions(positions, len(self))
        return self._maker.make(Step(self._epoch, chosen, chosen, EpochProgress())).batch
