"""Records of like size in one batch, so that little is padded: an order on top of another.

The order below is cut into windows; the records of each are sorted by size and cut into groups,
and the groups come in a random order. None of that depends on how places are shared out among
ranks, so that split and resume stay exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.options import record_count_number
from recordsmith.loading.order import PositionOrder
from recordsmith.permutation import Permutations


@dataclass(frozen=True, eq=False)
class Buckets:
    """How records of like size come together.

    window: how many records, in the order of the epoch, are sorted by size; larger ones leave less
        to pad, and less to chance.
    by: numbers, (len(dataset),): the sizes, such as lengths of texts or widths of pictures, by
        position (of a Mix: those of its datasets, one behind the other). None: how many bytes
        each record has, which costs nothing to know.
    group: how many records of like size come one after the other; as many as all ranks take in a
        step, if not said. A job that is resumed keeps the groups that it had.
    """

    window: int = 8192
    by: npt.ArrayLike | None = None
    group: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "group"):
            value = getattr(self, name)
            if name == "window" or value is not None:
                object.__setattr__(self, name, record_count_number(f"{name} of the buckets", value))
        if self.by is not None:
            object.__setattr__(self, "by", _sizes(self.by))


class BucketOrder(PositionOrder):
    """The positions of another order, brought together by size."""

    def __init__(
        self,
        order: PositionOrder,
        buckets: Buckets,
        *,
        step_size: int,
        record_sizes: Callable[[Int64Array], Int64Array],
        is_shuffled: bool,
        seed: int,
    ) -> None:
        """
        Args:
            step_size: how many records make a group, if `buckets` do not say.
            record_sizes: positions -> how many bytes their records have.
            is_shuffled: whether groups come in a random order; else small ones come first.
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
        """This order with the groups of a state, unless groups of a certain size were asked for."""
        told = description.get("buckets")
        group = told.get("group") if isinstance(told, Mapping) else None
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
        """The positions of a window, small records first."""
        positions = self._order.positions(epoch, np.arange(begin, end))
        by = self._buckets.by
        sizes = self._record_sizes(positions) if by is None else np.asarray(by)[positions]
        return positions[sizes.argsort(kind="stable")]


def _digest(sizes: npt.NDArray[Any]) -> str:
    return hashlib.blake2b(sizes.tobytes(), digest_size=8).hexdigest()


def _sizes(by: npt.ArrayLike) -> npt.NDArray[Any]:
    """What a user gave as sizes, in a type of which equal sizes have equal bytes."""
    try:
        sizes = np.asarray(by)
    except ValueError:  # rows of unequal length
        sizes = np.empty((), object)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf":
        raise OptionError(
            f"by of the buckets is of type {sizes.dtype} and shape {sizes.shape}; expected one "
            "number for each record"
        )
    if sizes.dtype.kind == "f" and not np.isfinite(sizes).all():
        raise OptionError("by of the buckets has a size that is not finite")
    return np.array(sizes, "<f8" if sizes.dtype.kind == "f" else "<i8")
