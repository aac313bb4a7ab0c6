"""Batches records of similar size together, to reduce padding: an order on top of another.

The underlying order is cut into windows. The records of each window are sorted by size and cut into
groups, and the groups are shuffled. None of this depends on the number of ranks, so split and
resume stay exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.loading.order.shuffle import PositionOrder
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.number_options import record_count_number
from recordsmith.support.permutation import Permutations


@dataclass(frozen=True, eq=False)
class BucketBySize:
    """Batch records of similar size together, to reduce padding.

    Attributes:
        window: how many records, in the order of the epoch, are sorted by size. A larger window
            needs less padding and is less random.
        by: the size of each record, (len(dataset),), such as text lengths or image widths; for a
            Mix, those of its datasets one after the other. Default: the size in bytes.
        group: how many records of similar size are read one after the other. Default: as many as
            all ranks read in a step. A resumed job keeps its group size.

    Example:
        >>> BucketBySize(window=4096).window
        4096
    """

    window: int = 8192
    by: npt.ArrayLike | None = None
    group: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "group"):
            value = getattr(self, name)
            if name == "window" or value is not None:
                object.__setattr__(self, name, record_count_number(name, value))
        if self.by is not None:
            object.__setattr__(self, "by", _sizes(self.by))


def check_buckets(buckets: object, record_count: int) -> None:
    """Raise OptionError unless it is a BucketBySize, with a size for each record if it has any."""
    if not isinstance(buckets, BucketBySize):
        raise OptionError(option="buckets", value=buckets, expected="a BucketBySize")
    if buckets.by is not None and len(np.asarray(buckets.by)) != record_count:
        raise OptionError(
            f"{option('by')} has {len(np.asarray(buckets.by))} sizes",
            option="by",
            expected=f"one for each of the {record_count} records",
        )


class BucketOrder(PositionOrder):
    """The positions of another order, grouped by size."""

    def __init__(
        self,
        order: PositionOrder,
        buckets: BucketBySize,
        *,
        step_size: int,
        record_sizes: Callable[[Int64Array], Int64Array],
        is_shuffled: bool,
        seed: int,
    ) -> None:
        """
        Args:
            step_size: the default group size.
            record_sizes: returns the sizes in bytes of the records at some positions.
            is_shuffled: whether groups are shuffled; otherwise small ones come first.
        """
        self.count = order.count
        self._order = order
        self._buckets = buckets
        self._group = buckets.group or step_size
        self._record_sizes = record_sizes
        self._is_shuffled = is_shuffled
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        by = self._buckets.by
        digest = None if by is None else _digest(np.asarray(by))
        buckets = {"window": self._buckets.window, "by": digest, "group": self._group}
        return {**self._order.describe(), "buckets": buckets}

    def adopt(self, description: Mapping[str, Any]) -> BucketOrder:
        """Return this order with the group size of a state, unless one was passed."""
        buckets = description.get("buckets")
        group = buckets.get("group") if isinstance(buckets, Mapping) else None
        if self._buckets.group is not None or type(group) is not int or group < 1:
            return self
        return BucketOrder(
            self._order,
            self._buckets,
            step_size=group,
            record_sizes=self._record_sizes,
            is_shuffled=self._is_shuffled,
            seed=self._seed,
        )

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        # whole groups, so that steps and groups begin together in each window
        window = max(1, self._buckets.window // self._group) * self._group
        windows = places // window
        positions = np.empty_like(places)
        for number in np.unique(windows).tolist():
            chosen = np.flatnonzero(windows == number)
            begin = number * window
            sorted_positions = self._sorted(epoch, begin, min(begin + window, self.count))
            within = places[chosen] - begin
            group, rest = np.divmod(within, self._group)
            whole = len(sorted_positions) // self._group
            moved = np.flatnonzero(group < whole)  # one that is not whole stays at the end
            if self._is_shuffled:
                orders = Permutations(whole, self._seed, "buckets", epoch)
                group[moved] = orders.numbers(number, group[moved])
            positions[chosen] = sorted_positions[group * self._group + rest]
        return positions

    def _sorted(self, epoch: int, begin: int, end: int) -> Int64Array:
        """Return the positions of a window, small records first."""
        positions = self._order.positions(epoch, np.arange(begin, end))
        by = self._buckets.by
        sizes = self._record_sizes(positions) if by is None else np.asarray(by)[positions]
        return positions[sizes.argsort(kind="stable")]


def _digest(sizes: npt.NDArray[Any]) -> str:
    import hashlib

    return hashlib.blake2b(sizes.tobytes(), digest_size=8).hexdigest()


def _sizes(by: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the sizes as int64 or float64, so that equal sizes have equal bytes."""
    try:
        sizes = np.asarray(by)
    except ValueError:  # rows of unequal length
        sizes = np.empty((), object)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf":
        raise OptionError(
            f"{option('by')} has type {sizes.dtype} and shape {sizes.shape}",
            option="by",
            expected="one number for each record",
        )
    if sizes.dtype.kind == "f" and not np.isfinite(sizes).all():
        raise OptionError(
            f"{option('by')} has a size that is not finite", option="by", expected="finite numbers"
        )
    return np.array(sizes, "<f8" if sizes.dtype.kind == "f" else "<i8")
