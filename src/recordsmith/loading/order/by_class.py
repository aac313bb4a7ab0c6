"""Batches of k classes with m examples each, as losses that compare examples need them.

The classes of all batches, epoch after epoch, are one endless sequence of laps through all classes,
and so are the records of a class. A class comes once in each lap, so the number of the lap is how
often it came before, and the epoch is all that a state needs.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.loading.order.shuffle import BlockShuffle, PositionOrder
from recordsmith.loading.order.weighted import ClassOrder, ClassRecords, DrawnInput, read_classes
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError
from recordsmith.support.number_options import count_number, whole_number
from recordsmith.support.permutation import GroupPermutations


class ByClass(DrawnInput):
    """A dataset whose batches have some classes and some examples of each, for a Loader.

    For metric learning: triplets, contrastive losses and prototypes. Each batch of each rank has
    `classes` different classes, and `examples` different records of each of them, one class after
    the other. A class with fewer records repeats them in the batch, evenly. It needs
    `shuffle=True` and the batch size `classes * examples`.

    All classes are drawn equally often, however many records they have, and so are all records of a
    class: none comes again before all others came, over all epochs and ranks. If the ranks do not
    divide the batches of an epoch, the Loader needs `last_batch="drop"` or `"pad"`. Filters and
    skipped errors remove rows, and nothing replaces them.

    The classes of a dataset are read once, which takes a pass over its records, and kept next to
    its indexes.

    Attributes:
        classes, examples: as they were passed.
        batch_size: their product.
        class_values: a list of the values of `by`, ascending.
        record_counts: int64, (class_values,): how many records each class has.

    Example:
        pairs = rs.ByClass(dataset, by="image/class/label", classes=3, examples=2)
        loader = rs.Loader(pairs, ["image/class/label"], batch_size=6, shuffle=True)
        for batch in loader:
            labels = batch["image/class/label"].reshape(3, 2)  # a row for each class
    """

    def __init__(
        self,
        dataset: Dataset,
        by: str,
        *,
        classes: int,
        examples: int,
        length: int | None = None,
        several: Literal["rarest"] | None = None,
    ) -> None:
        """Read the classes.

        Args:
            dataset: its records.
            by: the key of a feature with the class of each record: an integer or a short text.
            classes: how many different classes a batch has.
            examples: how many examples a batch has of each.
            length: how many examples an epoch has, in whole batches; by default, about as many as
                the dataset.
            several: for records with a list of classes, as in `Weighted`.

        Raises:
            OptionError: no record has the feature; the dataset has fewer classes, or the length is
                not in whole batches.
            CorruptDataError: an intact record does not have exactly one class. One that cannot be
                read has that of most others; it is an error where it is drawn.
        """
        super().__init__(dataset, length)
        self.classes = count_number("classes", classes)
        self.examples = count_number("examples", examples)
        self.batch_size: int = count_number("batch_size", self.classes * self.examples)
        rest = self._draw_count % self.batch_size
        if length is not None and rest:
            raise OptionError(
                option="length",
                value=length,
                expected=f"a multiple of {self.batch_size}, the examples of a batch",
            )
        self._draw_count = max(self._draw_count - rest, self.batch_size)
        self._class_records = read_classes(dataset, by, several)
        self.class_values = self._class_records.classes
        self.record_counts = self._class_records.record_counts
        whole_number("classes", self.classes, 1, len(self.class_values))

    def __repr__(self) -> str:
        return (
            f"ByClass({len(self)} draws of {self.record_count} records: {self.examples} of each of "
            f"{self.classes} classes in a batch)"
        )

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        """Return the order of an epoch."""
        self._check_shuffle(shuffle)
        return _BatchOrder(len(self), self._class_records, self.classes, self.examples, seed)


class _BatchOrder(ClassOrder):
    def __init__(
        self, count: int, records: ClassRecords, classes: int, examples: int, seed: int
    ) -> None:
        super().__init__(count, records)
        self._seed = seed
        self._class_laps = _Laps(classes, seed, "classes")
        self._record_laps = _Laps(examples, seed, "records of classes")

    def describe(self) -> dict[str, Any]:
        sizes = {"classes": self._class_laps.size, "examples": self._record_laps.size}
        known = {"record_count": self.count, "shuffle": True, "seed": self._seed}
        return {**known, "by_class": {"records": self._digest, **sizes}}

    def _records(self, epoch: int, places: Int64Array) -> tuple[Int64Array, Int64Array]:
        examples = self._record_laps.size
        draws, numbers = np.divmod(places + epoch * self.count, examples)
        draws, inverse = np.unique(draws, return_inverse=True)
        class_counts = np.full_like(draws, len(self._record_counts))
        own, laps = self._class_laps.numbers(np.zeros_like(draws), class_counts, draws)
        classes = own[inverse]
        numbers += laps[inverse] * examples
        return classes, self._record_laps.numbers(classes, self._record_counts[classes], numbers)[0]


class _Laps:
    """Endless sequences of the members of groups, each lap in another order.

    Each `size` neighbours, counted from the beginning, are different members if there are as many:
    where a lap ends within such a batch, the next begins with members that the batch does not have.
    """

    def __init__(self, size: int, *key: int | str) -> None:
        """`key`: as in `Permutations`."""
        self.size = size
        self._orders = GroupPermutations(*key)

    def numbers(
        self, groups: Int64Array, counts: Int64Array, places: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return the members at some places of the sequences of groups, and their laps."""
        size = self.size
        laps, own = np.divmod(places, counts)
        # few members keep their order until a lap begins with a batch: they stay `counts` apart
        is_few = counts < 2 * size
        orders = np.where(is_few, laps // (size // np.gcd(counts, size)), laps)
        numbers = self._orders.numbers(groups, counts, orders, own)
        taken = laps * counts % size  # by the batch in which a lap begins, of the lap before
        seams = np.flatnonzero(~is_few & (own < size) & (taken > 0))
        if not seams.size:
            return numbers, laps
        keys = np.stack([groups, laps, counts, taken])[:, seams]
        keys, inverse = np.unique(keys, axis=1, return_inverse=True)
        group, lap, count, taken = keys[:, :, np.newaxis]
        span = np.arange(size)
        firsts, lasts = (
            self._orders.numbers(
                *(table.ravel() for table in np.broadcast_arrays(group, count, of_lap, ends))
            ).reshape(-1, size)
            for of_lap, ends in ((lap, span), (lap - 1, count - 1 - span))
        )
        row = np.arange(len(firsts))[:, np.newaxis] * counts.max()
        is_taken = np.isin(firsts + row, (lasts + row)[span < taken])
        firsts = np.take_along_axis(firsts, is_taken.argsort(axis=1, kind="stable"), axis=1)
        numbers[seams] = firsts[inverse.ravel(), own[seams]]
        return numbers, laps
