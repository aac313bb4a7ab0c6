"""Draws records by class or by weight: each class as often as its weight says.

Records are sorted into strata: the classes, or records of about the same weight. An epoch has a
fixed number of draws from each stratum, and the draws of a stratum continue from epoch to epoch,
lap after lap through its records, as in a `Mix`. So all records of a stratum are drawn equally
often, and the epoch is all that a state needs.

The positions of the records, sorted by stratum, are computed once: an array of 4 bytes a record, in
a temporary file where it is large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.dataset import Dataset
from recordsmith.dataset.measuring import readable_values
from recordsmith.errors import OptionError, option, shown_value
from recordsmith.loading.number_options import whole_number
from recordsmith.loading.order.inputs import DatasetInput
from recordsmith.loading.order.mix import shared_out
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder
from recordsmith.permutation import GroupPermutations, mix_bits

_STRATA = 256  # of records with many different weights
_TABLE_SIZE = 1 << 24  # of the numbers of classes: others are sorted
_AT_ONCE = 1 << 20


class Weighted(DatasetInput):
    """A dataset whose records are drawn by class or by weight, for a Loader.

    Without `weights`, each class is drawn equally often, however many records it has: an epoch
    repeats the records of rare classes and leaves out some of common ones, which later epochs draw.
    It needs `shuffle=True`. The numbers of draws are exact in each epoch, over all ranks.

    The classes or weights of a dataset are read once, which takes a pass over its records, and kept
    next to its indexes.

    Attributes:
        classes: the values of `by`, ascending; of weights, the mean weight of each stratum.
        record_counts: how many records each class has.
        draw_counts: how many examples of each class an epoch draws.

    Example:
        balanced = rs.Weighted(dataset, by="image/class/label")
        loader = rs.Loader(balanced, ["image/class/label"], batch_size=8, shuffle=True)
    """

    has_each_once = False

    def __init__(
        self,
        dataset: Dataset,
        by: str | None = None,
        *,
        weights: Mapping[Any, float] | str | npt.ArrayLike | None = None,
        length: int | None = None,
        with_replacement: bool = False,
    ) -> None:
        """Read the classes or weights.

        Args:
            dataset: its records.
            by: the key of a feature with the class of each record: an integer or a short text.
            weights: with `by`, how often each class is drawn, relative to the others, by class;
                None for equally often, 0 for never. Without `by`, how often each record is drawn:
                the key of a feature, or an array (len(dataset),). Records of more than 256
                different weights are drawn by the mean weight of 256 groups of similar weight.
            length: how many examples an epoch has; by default, as many as the dataset.
            with_replacement: draw each example independently of the others, so that a record may
                come again at once; by default, after all others of its class.

        Raises:
            OptionError: no record has the feature; a weight is negative or not finite, all are 0,
                or one is so small that an epoch draws nothing; a class has no weight or no record.
            CorruptDataError: an intact record does not have exactly one class or weight. One that
                cannot be read has those of most others; it is an error where it is drawn.
        """
        super().__init__(dataset)
        if not len(dataset):
            raise OptionError("the dataset is empty", option="dataset")
        draw_count = self.record_count if length is None else length
        draw_count = whole_number("length", draw_count, 1)
        if by is not None:
            numbers, texts = readable_values(dataset, by)
            if numbers.dtype.kind == "f":
                raise OptionError(
                    f"{by!r} has floats, which are no classes",
                    option="by",
                    value=by,
                    remedy=f"For the weight of each record, pass {option('weights', by)}.",
                )
            values, strata, counts = _classes_of(numbers)
            self.classes: list[Any] = [texts[n] for n in values] if texts else values.tolist()
            shares = _class_weights(by, self.classes, weights)
        else:
            strata, counts, shares = _strata_of(_record_weights(dataset, weights), draw_count)
            self.classes = [
                share / count for share, count in zip(shares, counts.tolist(), strict=True)
            ]
        self.record_counts: list[int] = counts.tolist()
        self.draw_counts = shared_out(draw_count, shares)
        for value, share, count in zip(self.classes, shares, self.draw_counts, strict=True):
            if share and not count:
                raise OptionError(
                    f"{shown_value(value)} has the share {share / sum(shares):.3g} of the weights, "
                    f"too small for one of the {draw_count:,} examples of an epoch",
                    option="length",
                    value=length,
                    remedy=f"Pass a larger {option('length')}, or the weight 0.",
                )
        self._with_replacement = bool(with_replacement)
        self._sorted = _sorted_positions(strata, counts)
        self._digest = _digest(strata)

    def __len__(self) -> int:
        """Return how many examples an epoch has."""
        return sum(self.draw_counts)

    def __repr__(self) -> str:
        classes = f"{self.record_count} records in {len(self.classes)} classes"
        return f"Weighted({len(self)} draws of {classes})"

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        """Return the order of an epoch."""
        if shuffle is not True:
            raise OptionError(
                "a Weighted draws records from anywhere in the dataset",
                option="shuffle",
                value=shuffle,
                expected="True",
            )
        return _WeightedOrder(
            self._sorted,
            self.record_counts,
            self.draw_counts,
            seed=seed,
            with_replacement=self._with_replacement,
            digest=self._digest,
        )


class _WeightedOrder(PositionOrder):
    """Draw j of a stratum in epoch e is number e * draws + j of its own endless sequence."""

    def __init__(
        self,
        positions: npt.NDArray[Any],
        record_counts: list[int],
        draw_counts: list[int],
        *,
        seed: int,
        with_replacement: bool,
        digest: str,
    ) -> None:
        """`positions`: of all records, sorted by stratum."""
        self.count = sum(draw_counts)
        self._sorted = positions
        self._record_counts = np.array(record_counts, np.int64)
        self._draw_counts = np.array(draw_counts, np.int64)
        self._first_draws = offsets_from_lengths(self._draw_counts)
        self._first_records = offsets_from_lengths(self._record_counts)
        self._draw_order = DatasetOrder(self.count, shuffle=True, seed=seed)
        self._with_replacement = with_replacement
        self._laps = GroupPermutations(seed, "weighted")
        self._seed = seed
        self._digest = digest

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the positions themselves, also if they are in a file."""
        return {**vars(self), "_sorted": np.array(self._sorted)}

    def describe(self) -> dict[str, Any]:
        weighted = {
            "records": self._digest,
            "draws": _digest(self._draw_counts),
            "with_replacement": self._with_replacement,
        }
        return {**self._draw_order.describe(), "weighted": weighted}

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        draws = self._draw_order.positions(epoch, places)
        strata = np.searchsorted(self._first_draws, draws, side="right") - 1
        counts = self._record_counts[strata]
        numbers = draws - self._first_draws[strata] + epoch * self._draw_counts[strata]
        if self._with_replacement:
            key = mix_bits(strata.astype(np.uint64), np.uint64(self._seed & (2**64 - 1)))
            bits = mix_bits(numbers.astype(np.uint64), key) >> np.uint64(11)
            own = (bits.astype(np.float64) * 2.0**-53 * counts).astype(np.int64)
        else:
            laps, own = np.divmod(numbers, counts)
            own = self._laps.numbers(strata, counts, laps, own)
        chosen: Int64Array = self._sorted[self._first_records[strata] + own].astype(np.int64)
        return chosen


def _class_weights(by: str, classes: list[Any], weights: object) -> list[float]:
    """Return the weight of each class."""
    if weights is None:
        return [1.0] * len(classes)
    if not isinstance(weights, Mapping):
        raise OptionError(
            option="weights",
            value=weights,
            expected=f"the weight of each class of {by!r} by class, or None",
        )
    for problem, odd in (
        ("no weight for the classes", set(classes) - weights.keys()),
        ("no record has the classes", weights.keys() - set(classes)),
    ):
        if odd:
            shown = ", ".join(sorted(map(shown_value, list(odd)[:5])))
            raise OptionError(
                f"{problem} {shown} of {by!r}",
                option="weights",
                value=weights,
                remedy="Give a weight to each class that records have; 0 leaves one out.",
            )
    return _checked([weights[value] for value in classes]).tolist()  # type: ignore[no-any-return]


def _record_weights(dataset: Dataset, weights: Any) -> npt.NDArray[np.float64]:
    """Return the weight of each record."""
    if weights is None:
        raise OptionError(
            f"neither {option('by')} nor {option('weights')} is given",
            option="by",
            value=None,
            expected="the key of a feature with classes",
        )
    values = weights
    if isinstance(weights, str):
        values, texts = readable_values(dataset, weights)
        if texts:
            raise OptionError(
                f"{weights!r} has texts, which are no weights",
                option="weights",
                value=weights,
                remedy=f"For classes, pass {option('by', weights)}.",
            )
    checked = _checked(values)
    if checked.shape != (len(dataset),):
        raise OptionError(
            f"{option('weights')} has shape {checked.shape}",
            option="weights",
            expected=f"one weight for each of the {len(dataset)} records",
        )
    return checked


def _checked(weights: Any) -> npt.NDArray[np.float64]:
    """Return weights as float64; OptionError if some are no weights, or all are 0."""
    try:
        numbers = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if bad.size or not numbers.any():
        problem = (
            "all weights are 0" if not bad.size else f"weight {bad[0]} is {numbers.flat[bad[0]]}"
        )
        raise OptionError(
            problem,
            option="weights",
            expected="finite numbers of at least 0, some of them positive",
        )
    return numbers


def _strata_of(
    weights: npt.NDArray[np.float64], draw_count: int
) -> tuple[Int64Array, Int64Array, list[float]]:
    """Return the stratum of each record, and the number of records and the weight of each.

    Records of similar weight are together: up to 255 groups, each with a draw in every epoch, and
    one of those that are never drawn.
    """
    values, strata = np.unique(weights, return_inverse=True)
    if len(values) > _STRATA:
        logs = np.log2(values[values > 0])
        groups = (logs - logs[0]) * ((_STRATA - 2) / (logs[-1] - logs[0]))
        group_of = np.zeros(len(values), np.int64)
        group_of[values > 0] = groups.astype(np.int64) + 1
        strata = group_of[strata]
    shares = np.bincount(strata, weights)
    # those too light for a draw join the next heavier ones
    draws = np.cumsum(shares) * (draw_count / shares.sum())
    ends, last = [], 0.0
    for number in np.flatnonzero(shares).tolist():
        if draws[number] - last >= 1:
            ends.append(number)
            last = draws[number]
    ends[-1:] = [len(shares) - 1]
    is_drawn = shares > 0
    joined = np.where(is_drawn, np.searchsorted(ends, np.arange(len(shares))) + 1, 0)
    _, strata, counts = np.unique(joined[strata], return_inverse=True, return_counts=True)
    return strata, counts, np.bincount(strata, weights).tolist()


def _classes_of(numbers: npt.NDArray[Any]) -> tuple[Int64Array, npt.NDArray[Any], Int64Array]:
    """Return the distinct numbers, the number of its class for each record, and their counts."""
    if numbers.dtype.kind != "u" or numbers.max() >= _TABLE_SIZE:
        values, strata, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return values, strata, counts
    counts = np.zeros(int(numbers.max()) + 1, np.int64)
    for some in _parts(numbers):
        counts += np.bincount(some, minlength=len(counts))
    values = np.flatnonzero(counts)
    if len(values) < len(counts):
        classes = np.zeros(len(counts), numbers.dtype)
        classes[values] = np.arange(len(values))
        for some in _parts(numbers):  # in place, as there may be very many
            some[:] = classes[some]
    return values, numbers, counts[values]


def _parts(numbers: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, len(numbers), _AT_ONCE):
        yield numbers[start : start + _AT_ONCE]


def _sorted_positions(strata: npt.NDArray[Any], counts: Int64Array) -> npt.NDArray[Any]:
    """Return the positions sorted by stratum: a counting sort, some millions at a time."""
    from recordsmith.stores.local.scratch import scratch_array

    nexts = offsets_from_lengths(counts)[:-1].copy()
    result = scratch_array(len(strata), np.uint32 if len(strata) < 2**32 else np.int64)
    start = 0
    for some in _parts(strata):
        order = some.argsort(kind="stable")
        in_order = some[order]
        is_first = np.ones(len(some), np.bool_)
        is_first[1:] = in_order[1:] != in_order[:-1]
        firsts = np.flatnonzero(is_first)
        lengths = np.diff(firsts, append=len(some))
        within = np.arange(len(some)) - np.repeat(firsts, lengths)
        result[nexts[in_order] + within] = order + start
        nexts[in_order[firsts]] += lengths
        start += len(some)
    return result


def _digest(numbers: npt.NDArray[Any]) -> str:
    import hashlib

    return hashlib.blake2b(np.ascontiguousarray(numbers).data, digest_size=8).hexdigest()
