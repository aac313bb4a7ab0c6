"""What does a loader read next, and how does it say where it is?

A `Progress` is a place in the run of epochs; a `Schedule` knows the steps that follow it. As all
ranks together read an epoch from its beginning, a place is the epoch and how much of it is read,
whatever the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.shares import Share

_VERSION = 1


class PositionOrder(Protocol):
    """Which position stands at which place of an epoch."""

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        """int64, (n,): the positions at some places."""

    def describe(self) -> dict[str, Any]:
        """What must be equal for two orders to be the same; JSON-able."""


@dataclass(frozen=True)
class Progress:
    """Where a loader is.

    epoch: which is being read, counted from 0.
    start: how many of its places all ranks had read when the count of steps began.
    step: how many steps of this rank were handed out since.
    begun: the epoch in which this iteration began.
    """

    epoch: int = 0
    start: int = 0
    step: int = 0
    begun: int = 0

    @property
    def is_inside(self) -> bool:
        """Whether the epoch was begun."""
        return self.start > 0 or self.step > 0


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
        if epochs is not None and (not isinstance(epochs, int) or epochs < 1):
            raise OptionError(f"epochs is {epochs!r}; expected at least 1, or None for ever")
        self._order = order
        self._share = share
        self._epochs = epochs

    def steps(self, progress: Progress) -> Iterator[Step]:
        """The steps of an iteration, from a place in it on."""
        epoch, start, first = progress.epoch, progress.start, progress.step
        end = None if self._epochs is None else progress.begun + self._epochs
        while end is None or epoch < end:
            steps = self._share.steps(start, first)
            if not steps and end is None and not self._share.steps():
                return  # an epoch without a single step: it would go on for ever without a batch
            for number in steps:
                places = self._share.places(start, number)
                after = Progress(epoch, start, number + 1, progress.begun)
                if number == steps[-1]:
                    after = Progress(epoch + 1, begun=progress.begun)
                    if after.epoch == end:  # the next iteration begins
                        after = Progress(end, begun=end)
                yield Step(epoch, places, self._order.positions(epoch, places), after)
            epoch, start, first = epoch + 1, 0, 0

    def length(self, progress: Progress) -> int:
        """How many steps are left of the iteration.

        Raises:
            TypeError: it goes on for ever.
        """
        if self._epochs is None:
            raise TypeError("a loader that goes on for ever has no length; say epochs")
        later = progress.begun + self._epochs - progress.epoch - 1
        return len(self._share.steps(progress.start, progress.step)) + later * len(
            self._share.steps()
        )

    def state(self, progress: Progress) -> dict[str, Any]:
        """A place as a small JSON-able dict."""
        read = progress.start
        if progress.step:
            read = self._share.read_after(progress.start, progress.step - 1)
        return {
            "version": _VERSION,
            "epoch": progress.epoch,
            "read": read,
            "begun": progress.begun,
            "order": self._order.describe(),
        }

    def progress(self, state: Mapping[str, Any]) -> Progress:
        """The place that `state` told.

        Raises:
            OptionError: it is none, or one in another order.
        """
        if not isinstance(state, Mapping) or state.get("version") != _VERSION:
            raise OptionError(
                f"the state is {state!r:.80}; expected what state_dict() answered, version "
                f"{_VERSION}"
            )
        order = state.get("order")
        for name, own in self._order.describe().items():
            found = order.get(name) if isinstance(order, Mapping) else None
            if found != own:
                raise OptionError(
                    f"the state is of a loader whose {name} is {found!r}; here it is {own!r}, so "
                    "other records would be read twice or left out"
                )
        numbers = [state.get(name) for name in ("epoch", "read", "begun")]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise OptionError(
                f"the state has epoch, read and begun {numbers}; expected whole numbers"
            )
        epoch, read, begun = numbers
        return Progress(epoch, min(read, self._share.count), 0, begun)  # type: ignore[type-var, arg-type]
