"""Draws records by class or by weight: each class as often as its weight says.

Records are sorted into strata: the classes, or records of equal weight. `exact_draws` computes how
often an epoch draws from each stratum. The draws of a stratum continue from epoch to epoch, lap
after lap through its records, as in a `Mix`. So all records of a stratum are drawn equally often,
and the epoch is all that a state needs.

The positions of the records, sorted by stratum, are computed once: an array of 4 bytes a record, in
a temporary file where it is large.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, readable_values
from recordsmith.format.example import FeatureSpec
from recordsmith.format.example.class_lists import (
    CLASS_LISTS,
    have_class_lists,
    positive_classes,
    rarest_classes,
)
from recordsmith.format.example.keys import CLASS_CONFIDENCE, CLASS_LABEL, CLASS_TEXT
from recordsmith.loading.order.exact_draws import ExactDraws, Shares, exact_shares, pieces
from recordsmith.loading.order.inputs import DatasetInput
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, option, shown_value
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import whole_number
from recordsmith.support.permutation import GroupPermutations, mix_bits, random_keys

_MAX_DRAWS = 1 << 52  # float64 holds them exactly
_TABLE_SIZE = 1 << 24  # of the numbers of classes: others are sorted


class ClassRecords(NamedTuple):
    """The records of each class, or of each weight.

    classes: the values of the feature, or the weights, ascending.
    record_counts: of each class.
    positions: of all records, sorted by class.
    digest: differs if the class of a record does.
    """

    classes: Any
    record_counts: Int64Array
    positions: npt.NDArray[Any]
    digest: str


def read_classes(
    dataset: Dataset, by: str, several: Literal["rarest"] | None = None, remedy: str = ""
) -> ClassRecords:
    """Return the records of each class; OptionError if a feature has floats, with the remedy."""
    if several is not None:
        check_word("several", several, ("rarest",))
    schema = dataset.view.preview_schema()[0]
    known = schema.features.get(by)
    is_list = known is not None and known.kind == "int64" and known.max_length > 1
    is_list |= by in CLASS_LISTS and have_class_lists(schema)
    texts: tuple[str, ...] = ()
    numbers: Any
    if several is not None and (is_list or by == CLASS_LABEL) and by != CLASS_TEXT:
        specs: dict[str, Any] = {by: FeatureSpec("int64", "ragged")}
        if by == CLASS_LABEL:
            specs[CLASS_CONFIDENCE] = FeatureSpec("float", "ragged")
        columns: dict[str, Any] = dataset.read_columns(specs)
        numbers = rarest_classes(positive_classes(columns[by], columns.get(CLASS_CONFIDENCE)))
    elif is_list:
        raise OptionError(
            f"{by!r} has several classes in a record",
            option="by",
            value=by,
            expected="the key of a feature with one class in each record",
            remedy=f"For the class of each record that the fewest have, pass "
            f"{option('by', CLASS_LABEL if by == CLASS_TEXT else by)} and "
            f"{option('several', 'rarest')}.",
        )
    else:
        numbers, texts = readable_values(dataset, by)
    if numbers.dtype.kind == "f":
        raise OptionError(
            f"{by!r} has floats, which are no classes", option="by", value=by, remedy=remedy
        )
    values, strata, counts = _classes_of(numbers)
    classes = [texts[n] for n in values] if texts else values.tolist()
    return ClassRecords(classes, counts, _sorted_positions(strata, counts), _digest(strata))


class DrawnInput(DatasetInput):
    """A dataset of which an epoch draws records, each any number of times."""

    has_each_once = False

    def __init__(self, dataset: Dataset, length: int | None) -> None:
        super().__init__(dataset)
        if not len(dataset):
            raise OptionError("the dataset is empty", option="dataset")
        draw_count = self.record_count if length is None else length
        self._draw_count = whole_number("length", draw_count, 1, _MAX_DRAWS)

    def __len__(self) -> int:
        """Return how many examples an epoch has."""
        return self._draw_count

    def _check_shuffle(self, shuffle: bool | BlockShuffle) -> None:
        if shuffle is not True:
            raise OptionError(
                f"a {type(self).__name__} draws records from anywhere in the dataset",
                option="shuffle",
                value=shuffle,
                expected="True",
            )


class Weighted(DrawnInput):
    """A dataset whose records are drawn by class or by weight, for a Loader.

    Without `weights`, each class is drawn equally often, however many records it has: an epoch
    repeats the records of rare classes and leaves out some of common ones, which later epochs draw.
    It needs `shuffle=True`.

    The draws are exact over all ranks together: after any number of epochs, each class has its
    share of all draws, rounded down or up, and so has each of its records. So an epoch of 100 draws
    of three classes has 33 or 34 of each, and a class with a share of 0.1 draws comes in one epoch
    of ten. Within an epoch, draws come in random order: a record that the epoch draws several times
    may come twice in a row.

    The classes or weights of a dataset are read once, which takes a pass over its records, and kept
    next to its indexes.

    Attributes:
        classes: a list of the values of `by`, ascending; without it, an array of the different
            weights.
        record_counts: how many records each of them has: a list or an array, as `classes`.
        draw_counts: how many examples of an epoch are of each, on average: as `record_counts`.

    Example:
        balanced = rs.Weighted(dataset, by="image/class/label")
        loader = rs.Loader(balanced, ["image/class/label"], batch_size=8, shuffle=True)
    """

    def __init__(
        self,
        dataset: Dataset,
        by: str | None = None,
        *,
        weights: Mapping[Any, float] | str | npt.ArrayLike | None = None,
        length: int | None = None,
        with_replacement: bool = False,
        several: Literal["rarest"] | None = None,
    ) -> None:
        """Read the classes or weights.

        Args:
            dataset: its records.
            by: the key of a feature with the class of each record: an integer or a short text.
            weights: with `by`, how often each class is drawn, relative to the others, by class;
                None for equally often, 0 for never. Without `by`, how often each record is drawn:
                the key of a feature, or an array (len(dataset),).
            length: how many examples an epoch has; by default, as many as the dataset.
            with_replacement: draw each example independently of all others, as
                `WeightedRandomSampler` of torch does: how often a class or a record comes in an
                epoch varies at random around its share, and a record may come again at once.
            several: for records with a list of classes: `rarest` is the class that the fewest
                records have, without those of confidence 0; -1 for a record without classes. This
                reads the records of the dataset, and keeps nothing. None for an error.

        Raises:
            OptionError: no record has the feature; a weight is negative or not finite, or all are
                0; a class has no weight or no record.
            CorruptDataError: an intact record does not have exactly one class or weight. One that
                cannot be read has those of most others; it is an error where it is drawn.
        """
        super().__init__(dataset, length)
        self.classes: Any
        if by is not None:
            remedy = f"For the weight of each record, pass {option('weights', by)}."
            self._records = read_classes(dataset, by, several, remedy)
            self.classes, counts = self._records.classes, self._records.record_counts
            self._shares = exact_shares(_class_weights(by, self.classes, weights), self._draw_count)
            self.record_counts: Any = counts.tolist()
            self.draw_counts: Any = self._shares.tolist()
        else:
            self._records = _by_weight(_record_weights(dataset, weights))
            self.classes, self.record_counts = self._records.classes, self._records.record_counts
            self._shares = exact_shares(self.classes, self._draw_count, self.record_counts)
            self.draw_counts = self._shares
        self._with_replacement = bool(with_replacement)

    def __repr__(self) -> str:
        strata = "classes" if isinstance(self.classes, list) else "different weights"
        return (
            f"Weighted({len(self)} draws of {self.record_count} records with "
            f"{len(self.classes)} {strata})"
        )

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> PositionOrder:
        """Return the order of an epoch."""
        self._check_shuffle(shuffle)
        order = _IndependentOrder if self._with_replacement else _ExactOrder
        return order(len(self), self._records, self._shares, seed)


class ClassOrder(PositionOrder):
    """An order of positions that are sorted by class, or by another stratum."""

    def __init__(self, count: int, records: ClassRecords) -> None:
        self.count = count
        self._sorted = records.positions
        self._record_counts = records.record_counts
        self._first_records = offsets_from_lengths(records.record_counts)
        self._digest = records.digest

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the positions themselves, also if they are in a file."""
        return {**vars(self), "_sorted": np.array(self._sorted)}

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        strata, numbers = self._records(epoch, places)
        chosen: Int64Array = self._sorted[self._first_records[strata] + numbers].astype(np.int64)
        return chosen

    @abstractmethod
    def _records(self, epoch: int, places: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the stratum at each place, and which of its records."""


class _WeightedOrder(ClassOrder):
    """The order of a Weighted."""

    with_replacement: bool

    def __init__(self, count: int, records: ClassRecords, shares: Shares, seed: int) -> None:
        """`shares`: the draws of each stratum."""
        super().__init__(count, records)
        self._shares = shares
        self._draw_order = DatasetOrder(self.count, shuffle=True, seed=seed)
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        weighted = {
            "records": self._digest,
            "draws": _digest(self._shares),
            "with_replacement": self.with_replacement,
        }
        return {**self._draw_order.describe(), "weighted": weighted}


class _ExactOrder(_WeightedOrder):
    """The draws of a stratum, epoch after epoch, are numbers of its own endless sequence."""

    with_replacement = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._draws = ExactDraws(self._shares, self.count, self._seed)
        self._laps = GroupPermutations(self._seed, "weighted")

    def _records(self, epoch: int, places: Int64Array) -> tuple[Int64Array, Int64Array]:
        draws = self._draws.epoch(epoch)
        numbers = self._draw_order.positions(epoch, places)
        strata = np.searchsorted(draws.first_draws, numbers, side="right") - 1
        numbers += self._draws.earlier(draws, strata) - draws.first_draws[strata]
        counts = self._record_counts[strata]
        laps, own = np.divmod(numbers, counts)
        return strata, self._laps.numbers(strata, counts, laps, own)


class _IndependentOrder(_WeightedOrder):
    """Each draw chooses a stratum by its share, and any of its records."""

    with_replacement = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ends = self._shares.cumsum()

    def _records(self, epoch: int, places: Int64Array) -> tuple[Int64Array, Int64Array]:
        keys = random_keys(2, self._seed, "independent", epoch)
        bits = mix_bits(places.astype(np.uint64), keys) >> np.uint64(11)
        of_strata, of_records = bits * 2.0**-53  # from 0 to less than 1
        strata = np.searchsorted(self._ends, of_strata * self._ends[-1], side="right")
        return strata, (of_records * self._record_counts[strata]).astype(np.int64)


def _class_weights(by: str, classes: list[Any], weights: object) -> Shares:
    if weights is None:
        return np.ones(len(classes))
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
    return _checked([weights[value] for value in classes])


def _record_weights(dataset: Dataset, weights: Any) -> Shares:
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


def _checked(weights: Any) -> Shares:
    """Return weights as float64; OptionError if some are no weights, or all are 0."""
    try:
        numbers = np.asarray(weights, np.float64)
    except (TypeError, ValueError, OverflowError):
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


def _by_weight(weights: Shares) -> ClassRecords:
    positions = weights.argsort(kind="stable")
    in_order = weights[positions]
    firsts = _firsts(in_order)
    result = _positions_array(len(weights))
    result[:] = positions
    counts = np.diff(firsts, append=len(weights))
    return ClassRecords(in_order[firsts], counts, result, _digest(weights))


def _firsts(in_order: npt.NDArray[Any]) -> Int64Array:
    """Return where each run of equal values begins; there is at least one."""
    return np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))


def _classes_of(numbers: npt.NDArray[Any]) -> tuple[Int64Array, npt.NDArray[Any], Int64Array]:
    """Return the distinct numbers, the number of its class for each record, and their counts."""
    if numbers.dtype.kind != "u" or numbers.max() >= _TABLE_SIZE:
        values, strata, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return values, strata, counts
    counts = np.zeros(int(numbers.max()) + 1, np.int64)
    for some in pieces(numbers):
        counts += np.bincount(some, minlength=len(counts))
    values = np.flatnonzero(counts)
    if len(values) < len(counts):
        classes = np.zeros(len(counts), numbers.dtype)
        classes[values] = np.arange(len(values))
        for some in pieces(numbers):  # in place, as there may be very many
            some[:] = classes[some]
    return values, numbers, counts[values]


def _sorted_positions(strata: npt.NDArray[Any], counts: Int64Array) -> npt.NDArray[Any]:
    """Return the positions sorted by stratum: a counting sort, some millions at a time."""
    nexts = offsets_from_lengths(counts)[:-1].copy()
    result = _positions_array(len(strata))
    start = 0
    for some in pieces(strata):
        order = some.argsort(kind="stable")
        in_order = some[order]
        firsts = _firsts(in_order)
        lengths = np.diff(firsts, append=len(some))
        within = np.arange(len(some)) - np.repeat(firsts, lengths)
        result[nexts[in_order] + within] = order + start
        nexts[in_order[firsts]] += lengths
        start += len(some)
    return result


def _positions_array(count: int) -> npt.NDArray[Any]:
    from recordsmith.stores import scratch_array

    return scratch_array(count, np.uint32 if count < 2**32 else np.int64)


def _digest(numbers: npt.NDArray[Any]) -> str:
    import hashlib

    return hashlib.blake2b(np.ascontiguousarray(numbers).data, digest_size=8).hexdigest()
