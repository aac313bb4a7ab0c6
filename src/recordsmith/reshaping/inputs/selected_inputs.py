"""The inputs of a job that was given a Dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, dataset_of, records_of, source_of
from recordsmith.dataset.locate import Paths
from recordsmith.dataset.split_slices import is_split_slice
from recordsmith.errors import OptionError, option
from recordsmith.stores import Location


class SelectedInputs(NamedTuple):
    """The paths and splits of a job, and which of their records it reads.

    splits: None for all.
    description: of the selection, JSON-able; None for all records.
    numbers: the record numbers of each file: a range or int64, ascending.
    """

    paths: Paths
    splits: tuple[str, ...] | None
    description: Any = None
    numbers: Mapping[Location, Any] | None = None

    @property
    def split(self) -> str | None:
        """The splits as an option."""
        return None if self.splits is None else "+".join(self.splits)

    def flags(self, location: Location, count: int) -> npt.NDArray[np.bool_] | None:
        """Return which of the `count` records of a file are selected; None for all."""
        if self.numbers is None:
            return None
        selected = np.zeros(count, np.bool_)
        numbers = self.numbers.get(location, range(0))
        selected[np.asarray(numbers, np.int64)] = True
        return selected


def selected_inputs(paths_or_dataset: Paths | Dataset, split: str | None) -> SelectedInputs:
    """Return what a job reads.

    Raises:
        OptionError: the records of a Dataset are not in the order of its files, or repeat; or as in
            `recordsmith.open`.
    """
    if not isinstance(paths_or_dataset, Dataset) and not is_split_slice(split):
        return SelectedInputs(paths_or_dataset, None if split is None else (split,))
    dataset = dataset_of(paths_or_dataset, split)
    places, splits = source_of(dataset)
    records = records_of(dataset)
    if records.positions.is_everything:
        return SelectedInputs(places, splits)
    if not records.positions.is_ascending or records.repeats:
        raise OptionError(
            "this cannot read a selection that is shuffled, in another order than the files, or "
            "repeats records",
            option="dataset",
            value=dataset,
            remedy=f"Pass the records in ascending order; reshard({option('shuffle', True)}) "
            "shuffles them.",
        )
    if not len(records):
        raise OptionError("the dataset has no records", option="dataset", value=dataset)
    numbers = {part.location: part.numbers() for part in records.parts()}
    return SelectedInputs(places, splits, records.positions.describe(), numbers)
