"""How often each stratum is drawn in each epoch: whole numbers, within one of its exact share.

A stratum with a share of 2.3 draws has at least two in each epoch, and 0.3 are carried over: after
any number of epochs, its draws are its exact share, rounded down or up. So each carried draw has a
first and a last epoch, as a job with a release time and a deadline. Between them it comes at a time
of its own, which is random, so that strata of similar shares are spread over the epochs. Only where
this would leave more draws than the epochs before a deadline have room for, those with the earliest
deadlines come first, which always succeeds (Liu and Layland, Scheduling algorithms for
multiprogramming in a hard-real-time environment, 1973).

An epoch is computed from the one before it, in time proportional to the number of strata.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.permutation import mix_bits, random_keys

_BITS = 52
_UNIT = 1 << _BITS  # parts of a draw are integers, so that they add up exactly
_HALF_BITS = _BITS // 2
_AT_ONCE = 1 << 20
_MARGIN = 1e-6  # of a draw, for the rounding of sums

Shares = npt.NDArray[np.float64]


class EpochDraws(NamedTuple):
    """The draws of an epoch, stratum by stratum.

    first_draws: int64, (strata + 1,): where those of each stratum begin, and the end.
    lags, next_lags: int64, of strata with parts: by how much their draws are below their share,
        before the epoch and after it.
    """

    epoch: int
    first_draws: Int64Array
    lags: Int64Array
    next_lags: Int64Array


class ExactDraws:
    """Whole numbers of draws for each epoch. Thread-safe."""

    def __init__(self, shares: Shares, draw_count: int, seed: int) -> None:
        """`shares`: draws of an epoch by stratum, not whole; `draw_count`: their sum."""
        whole = np.floor(shares)
        parts = np.rint((shares - whole) * _UNIT).astype(np.int64)
        self._whole = whole.astype(np.int64)
        rest = ((draw_count - int(self._whole.sum())) << _BITS) - _exact_sum(parts)
        heaviest = int(shares.argmax())  # it takes what is rounded
        more, parts[heaviest] = divmod(int(parts[heaviest]) + rest, _UNIT)
        self._whole[heaviest] += more
        self._whole += parts >> _BITS  # a part that was rounded up to 1
        parts &= _UNIT - 1
        self._has_parts = np.flatnonzero(parts)
        self._parts = parts[self._has_parts]
        self._carried_count = draw_count - int(self._whole.sum())
        bits = mix_bits(self._has_parts.astype(np.uint64), random_keys(1, seed, "draws")[0])
        self._own_times = (bits >> np.uint64(64 - _BITS)).astype(np.int64)
        self._latest: tuple[EpochDraws, ...] = ()

    def epoch(self, epoch: int) -> EpochDraws:
        lags, first = np.zeros(len(self._parts), np.int64), 0
        for draws in self._latest:
            if draws.epoch == epoch:
                return draws
            if first <= draws.epoch < epoch:
                lags, first = draws.next_lags, draws.epoch + 1
        for _ in range(first, epoch) if len(self._parts) else ():
            lags = self._next(lags)
        next_lags = self._next(lags)
        counts = self._whole.copy()
        counts[self._has_parts] += (lags + self._parts - next_lags) >> _BITS
        draws = EpochDraws(epoch, offsets_from_lengths(counts), lags, next_lags)
        self._latest = *self._latest[-1:], draws  # two: threads may be in neighbouring epochs
        return draws

    def earlier(self, draws: EpochDraws, strata: Int64Array) -> Int64Array:
        """Return how often some strata were drawn in all epochs before one."""
        counts = self._whole[strata] * draws.epoch
        if len(self._parts):
            places = np.minimum(np.searchsorted(self._has_parts, strata), len(self._parts) - 1)
            carried = (self._parts[places] * float(draws.epoch) - draws.lags[places]) / _UNIT
            is_own = self._has_parts[places] == strata
            counts += np.where(is_own, np.rint(carried), 0).astype(np.int64)
        return counts

    def _next(self, lags: Int64Array) -> Int64Array:
        """Return the lags after an epoch that began with these."""
        lags = lags + self._parts
        due = lags >= _UNIT
        lags -= due * np.int64(_UNIT)
        count = self._carried_count - int(due.sum())
        if not count:
            return lags
        may_come = np.flatnonzero(lags > 0)
        parts, left = self._parts[may_come], _UNIT - lags[may_come]
        drawn = may_come[_smallest((left - self._own_times[may_come]) / parts, count)]
        drawn_lags = lags.copy()
        drawn_lags[drawn] -= _UNIT
        if not self._has_room(drawn_lags):
            drawn = may_come[_smallest(-(-left // parts), count)]
            drawn_lags = lags
            drawn_lags[drawn] -= _UNIT
        return drawn_lags

    def _has_room(self, lags: Int64Array) -> bool:
        """Whether the epochs until each deadline have room for all draws due until then.

        Until epoch T, the draws of all strata are those of T epochs. Those of strata without a
        deadline until then must not exceed their shares, or too few are left for the others.
        """
        deadlines = -(-np.where(lags < 0, -lags, _UNIT - lags) // self._parts)
        order = deadlines.argsort(kind="stable")
        deadlines = deadlines[order]
        lasts = np.flatnonzero(deadlines[1:] > deadlines[:-1])
        later_lags, later_parts = (
            (numbers[order] / _UNIT)[::-1].cumsum()[::-1][lasts + 1]
            for numbers in (lags, self._parts)
        )
        return bool((later_lags + later_parts * deadlines[lasts] >= _MARGIN).all())


def exact_shares(weights: Shares, draw_count: int, counts: npt.ArrayLike = 1) -> Shares:
    """Return the draws of an epoch by stratum, not whole: (strata,).

    Args:
        weights: (strata,), at least 0, not all 0; of any size.
        counts: how many records have each weight.
    """
    _, exponent = np.frexp(weights.max())
    shares: Shares = np.ldexp(weights, -exponent) * counts  # sums of the weights could overflow
    # the same on all machines: NumPy's sums depend on the processor
    shares *= draw_count / math.fsum(float(some.cumsum()[-1]) for some in pieces(shares))
    return shares


def _exact_sum(numbers: Int64Array) -> int:
    """Return the sum of numbers up to 2 ** 52, which may not fit in int64."""
    low = numbers & ((1 << _HALF_BITS) - 1)
    return (int((numbers >> _HALF_BITS).sum()) << _HALF_BITS) + int(low.sum())


def _smallest(keys: npt.NDArray[Any], count: int) -> Int64Array:
    """Return the places of the smallest keys; of equal keys, the first ones."""
    limit = np.partition(keys, count - 1)[count - 1]
    below = np.flatnonzero(keys < limit)
    return np.concatenate([below, np.flatnonzero(keys == limit)[: count - len(below)]])


def pieces(numbers: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield an array some millions of numbers at a time."""
    for start in range(0, len(numbers), _AT_ONCE):
        yield numbers[start : start + _AT_ONCE]
