"""What does a loader read next, and how does it say where it is?

A `Progress` is a place in the run of epochs; a `Schedule` knows the steps that follow it. As all
ranks together read an epoch from its beginning, a place is the epoch and how much of it is read,
whatever the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.options import whole_number
from recordsmith.loading.order import PositionOrder
from recordsmith.loading.shares import Share

_VERSION = 1
_PLACES_AT_ONCE = 16_384  # orders are arithmetic on arrays, which short ones make dear


@dataclass(frozen=True)
class Progress:
    """Where a loader is.

    epoch: which is being read, counted from 0.
    read: how many of its places all ranks together have read.
    begun: the epoch in which this iteration began.
    """

    epoch: int = 0
    read: int = 0
    begun: int = 0

    @property
    def is_inside(self) -> bool:
        """Whether the epoch was begun."""
        return self.read > 0


class Step(NamedTuple):
    """What makes a batch: places of an epoch, and where the loader is when it was handed out."""

    epoch: int
    places: Int64Array
    positions: Int64Array
    after: Progress


class Schedule:
    """The steps of one rank, from any place on."""

    def __init__(self, order: PositionOrder, share: Share, epochs: int | None) -> None:
        """`epochs`: how many an iteration takes; None for ever."""
        self._order = order
        self.share = share
        self._epochs = None if epochs is None else whole_number("epochs", epochs, 1)

    def for_worker(self, worker: int, worker_count: int) -> Schedule:
        """The schedule of one of several processes that feed this rank in turn."""
        share = replace(self.share, worker=worker, worker_count=worker_count)
        return Schedule(self._order, share, self._epochs)

    def steps(self, progress: Progress, skipped_count: int = 0) -> Iterator[Step]:
        """The steps of an iteration, from a place in it on.

        Args:
            skipped_count: how many of this worker's steps are left out at the beginning.
        """
        epoch, read, passed = progress.epoch, progress.read, 0
        end = None if self._epochs is None else progress.begun + self._epochs
        while end is None or epoch < end:
            step_count = self.share.step_count(read)
            if end is None and self.share.step_count() == 0:
                return  # an epoch without a single step: it would go on for ever without a batch
            own = self.share.own(step_count, passed)
            for number, places, positions in self._in_epoch(epoch, read, own[skipped_count:]):
                after = Progress(epoch, read + (number + 1) * self.share.step_size, progress.begun)
                if number + 1 == step_count:
                    is_end = epoch + 1 == end
                    after = Progress(epoch + 1, begun=epoch + 1 if is_end else progress.begun)
                yield Step(epoch, places, positions, after)
            skipped_count = max(0, skipped_count - len(own))
            epoch, read, passed = epoch + 1, 0, passed + step_count

    def _in_epoch(
        self, epoch: int, read: int, own: range
    ) -> Iterator[tuple[int, Int64Array, Int64Array]]:
        """(number, places, positions) of this worker's steps of the rest of an epoch."""
        at_once = max(1, _PLACES_AT_ONCE // self.share.batch_size)
        for begin in range(0, len(own), at_once):
            numbers = own[begin : begin + at_once]
            places = self.share.places(read, numbers)
            positions = self._order.positions(epoch, np.concatenate(places))
            at = 0
            for number, of_step in zip(numbers, places, strict=True):
                yield number, of_step, positions[at : at + len(of_step)]
                at += len(of_step)

    def length(self, progress: Progress) -> int:
        """How many steps are left of the iteration.

        Raises:
            TypeError: it goes on for ever.
        """
        if self._epochs is None:
            raise TypeError("a loader that goes on for ever has no length; say epochs")
        later = progress.begun + self._epochs - progress.epoch - 1
        step_count = self.share.step_count(progress.read) + later * self.share.step_count()
        return len(self.share.own(step_count))

    def after(self, progress: Progress, step_count: int) -> Progress:
        """Where a rank is that has taken so many steps more, one iteration after the other."""
        left = self.share.step_count(progress.read)
        per_epoch = self.share.step_count()
        if step_count < left:
            return replace(progress, read=progress.read + step_count * self.share.step_size)
        if not step_count:
            return progress
        if not per_epoch:
            raise OptionError(f"there are no batches, so there is no place after {step_count}")
        further, rest = divmod(step_count - left, per_epoch)
        epoch = progress.epoch + 1 + further
        begun = progress.begun
        if self._epochs is not None:
            begun += (epoch - begun) // self._epochs * self._epochs
        return Progress(epoch, rest * self.share.step_size, begun)

    def end(self, progress: Progress) -> Progress | None:
        """Where a rank is that has ended the iteration; None if it goes on for ever."""
        if self._epochs is None:
            return None
        return self.later(progress, 1)

    def later(self, progress: Progress, iteration_count: int) -> Progress:
        """Where an iteration begins that comes so many after the one which has this place.

        One that goes on for ever is followed by one that begins an epoch later than it did.
        """
        if not iteration_count:
            return progress
        if self._epochs is None:
            epoch = progress.epoch + iteration_count
        else:
            epoch = progress.begun + iteration_count * self._epochs
        return Progress(epoch, begun=epoch)

    def state(self, progress: Progress) -> dict[str, Any]:
        """A place as a small JSON-able dict."""
        return {"version": _VERSION, **asdict(progress), "order": self._order.describe()}

    def progress(self, state: Mapping[str, Any]) -> Progress:
        """The place that `state` told, in whose order the steps are from now on.

        Raises:
            OptionError: it is none, or one in another order.
        """
        if not isinstance(state, Mapping) or state.get("version") != _VERSION:
            raise OptionError(
                f"the state is {state!r:.80}; expected what state_dict() answered, version "
                f"{_VERSION}"
            )
        numbers = [state.get(name) for name in ("epoch", "read", "begun")]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise OptionError(
                f"the state has epoch, read and begun {numbers}; expected whole numbers"
            )
        progress = Progress(*numbers)  # type: ignore[arg-type]
        if progress.begun > progress.epoch or progress.read > self.share.count:
            raise OptionError(
                f"the state has epoch {progress.epoch}, begun {progress.begun} and read "
                f"{progress.read} of {self.share.count}; no loader can be there"
            )
        order = self._order_of(state.get("order"))
        if self._epochs is not None and progress.epoch >= progress.begun + self._epochs:
            raise OptionError(
                f"the state is in epoch {progress.epoch} of an iteration that began with epoch "
                f"{progress.begun}, but this loader takes {self._epochs}: say as many epochs as "
                "the loader had that the state is of, or more"
            )
        self._order = order
        return progress

    def _order_of(self, found: object) -> PositionOrder:
        """The order of a state, which must be this one."""
        if not isinstance(found, Mapping):
            raise OptionError(f"the state has the order {found!r:.80}; expected a dict")
        order = self._order.adopt(found)
        own = order.describe()
        for name in {**own, **found}:
            if found.get(name) != own.get(name):
                raise OptionError(
                    f"the state is of a loader whose {name} is {found.get(name)!r}; here it is "
                    f"{own.get(name)!r}, so other records would be read twice or left out"
                )
        return order
