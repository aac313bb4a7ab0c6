"""The steps of a loader, and its state.

An `EpochProgress` is a place in the sequence of epochs; a `Schedule` computes the steps after it.
All ranks together read an epoch from its beginning, so a place is the epoch and how much of it is
read, for any number of ranks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from recordsmith.loading.order.rank_share import RankShare
from recordsmith.loading.order.shuffle import PositionOrder
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import warn_user
from recordsmith.support.number_options import is_same, whole_number

VERSION = 1
_PLACES_AT_ONCE = 16_384  # computing orders is slow in short arrays


class EpochProgress(msgspec.Struct, frozen=True):
    """How much of an epoch all ranks have read.

    epoch: the current epoch, counted from 0.
    read: how many of its places all ranks together have read.
    begun: the epoch in which this iteration began.
    """

    epoch: int = 0
    read: int = 0
    begun: int = 0


class LoopState(NamedTuple):
    """Where a loader is, and where its next iteration begins.

    is_resumed: whether the next iteration resumes there; else it begins the next epoch.
    skipped_count: how many of the worker's steps it skips.
    """

    progress: EpochProgress = EpochProgress()
    is_resumed: bool = False
    skipped_count: int = 0

    @property
    def next_progress(self) -> EpochProgress:
        """Where the next iteration begins."""
        if self.is_resumed:
            return self.progress
        epoch = self.progress.epoch + (self.progress.read > 0)
        return EpochProgress(epoch, begun=epoch)


class Step(NamedTuple):
    """The records of a batch, and the progress of the loader after it."""

    epoch: int
    places: Int64Array
    positions: Int64Array
    after: EpochProgress


class Schedule:
    """Computes the steps of one rank, starting anywhere."""

    def __init__(
        self,
        order: PositionOrder,
        share: RankShare,
        epochs: int | None,
        described: Mapping[str, Any] | None = None,
        jpeg_decoder: str | None = None,
    ) -> None:
        """Describe the steps.

        Args:
            described: what else must match when a state is loaded.
            jpeg_decoder: the library that decodes JPEG here, if any is decoded. A state of another
                one is loaded with a warning.
        """
        self.order = order
        self._described = described or {}
        self._jpeg_decoder = jpeg_decoder
        self.share = share
        self._epochs = None if epochs is None else whole_number("epochs", epochs, 1)

    def for_worker(self, worker: int, worker_count: int) -> Schedule:
        """Return the schedule of one of several workers that feed this rank in turn."""
        share = dataclasses.replace(self.share, worker=worker, worker_count=worker_count)
        return self._copy(self.order, share)

    def _copy(self, order: PositionOrder, share: RankShare) -> Schedule:
        return Schedule(order, share, self._epochs, self._described, self._jpeg_decoder)

    def steps(self, progress: EpochProgress, skipped_count: int = 0) -> Iterator[Step]:
        """Yield the steps of an iteration, starting at a place in it."""
        epoch, read, passed = progress.epoch, progress.read, 0
        end = None if self._epochs is None else progress.begun + self._epochs
        while end is None or epoch < end:
            step_count = self.share.step_count(read)
            if end is None and self.share.step_count() == 0:
                return  # epochs without steps would loop forever
            own = self.share.own(step_count, passed)
            for number, places, positions in self._in_epoch(epoch, read, own[skipped_count:]):
                after = EpochProgress(
                    epoch, read + (number + 1) * self.share.step_size, progress.begun
                )
                if number + 1 == step_count:
                    is_end = epoch + 1 == end
                    after = EpochProgress(epoch + 1, begun=epoch + 1 if is_end else progress.begun)
                yield Step(epoch, places, positions, after)
            skipped_count = max(0, skipped_count - len(own))
            epoch, read, passed = epoch + 1, 0, passed + step_count

    def _in_epoch(
        self, epoch: int, read: int, own: range
    ) -> Iterator[tuple[int, Int64Array, Int64Array]]:
        """Yield (number, places, positions) of this worker's remaining steps of an epoch."""
        at_once = max(1, _PLACES_AT_ONCE // self.share.batch_size)
        for begin in range(0, len(own), at_once):
            numbers = own[begin : begin + at_once]
            places = self.share.places(read, numbers)
            positions = self.order.positions(epoch, np.concatenate(places))
            at = 0
            for number, of_step in zip(numbers, places, strict=True):
                yield number, of_step, positions[at : at + len(of_step)]
                at += len(of_step)

    def length(self, progress: EpochProgress) -> int:
        """Return how many steps of the iteration are left."""
        if self._epochs is None:
            raise TypeError("an endless loader has no length; pass epochs")
        later = progress.begun + self._epochs - progress.epoch - 1
        step_count = self.share.step_count(progress.read) + later * self.share.step_count()
        return len(self.share.own(step_count))

    def after(self, progress: EpochProgress, step_count: int) -> EpochProgress:
        """Return the progress after `step_count` more steps, over several iterations."""
        left = self.share.step_count(progress.read)
        per_epoch = self.share.step_count()
        if step_count < left:
            return replace(progress, read=progress.read + step_count * self.share.step_size)
        if not step_count:
            return progress
        if not per_epoch:
            raise OptionError(
                "the loader has no batches", option="batch_count", value=step_count, expected="0"
            )
        further, rest = divmod(step_count - left, per_epoch)
        epoch = progress.epoch + 1 + further
        begun = progress.begun
        if self._epochs is not None:
            begun += (epoch - begun) // self._epochs * self._epochs
        return EpochProgress(epoch, rest * self.share.step_size, begun)

    def end(self, progress: EpochProgress) -> EpochProgress | None:
        """Return the progress after the iteration; None if it is endless."""
        if self._epochs is None:
            return None
        return self.later(progress, 1)

    def later(self, progress: EpochProgress, iteration_count: int) -> EpochProgress:
        """Return where an iteration begins that comes `iteration_count` after this one.

        The iteration after an endless one begins one epoch later than that did.
        """
        if not iteration_count:
            return progress
        if self._epochs is None:
            epoch = progress.epoch + iteration_count
        else:
            epoch = progress.begun + iteration_count * self._epochs
        return EpochProgress(epoch, begun=epoch)

    def state(self, progress: EpochProgress) -> dict[str, Any]:
        """Return a progress as a small JSON-able dict."""
        state = {"version": VERSION, **asdict(progress), "order": self._describe(self.order)}
        return state if self._jpeg_decoder is None else state | {"jpeg_decoder": self._jpeg_decoder}

    def _describe(self, order: PositionOrder) -> dict[str, Any]:
        return {**order.describe(), **self._described}

    def resumed(self, state: Mapping[str, Any]) -> tuple[Schedule, EpochProgress]:
        """Return a schedule with the order of a state, and its progress; OptionError if invalid."""
        if not isinstance(state, Mapping) or not is_same(state.get("version"), VERSION):
            raise OptionError(
                option="state", value=state, expected=f"a state_dict() of version {VERSION}"
            )
        numbers = [state.get(name) for name in ("epoch", "read", "begun")]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise OptionError(
                f"the state has epoch, read and begun {numbers}",
                option="state",
                value=numbers,
                expected="integers of at least 0",
            )
        progress = EpochProgress(*numbers)  # type: ignore[arg-type]
        if progress.begun > progress.epoch or progress.read > self.share.count:
            raise OptionError(
                f"the state has epoch {progress.epoch}, begun {progress.begun} and read "
                f"{progress.read}",
                option="state",
                value=numbers,
                expected=f"begun up to epoch, and read up to {self.share.count}",
            )
        order = self._order_of(state.get("order"))
        if self._epochs is not None and progress.epoch >= progress.begun + self._epochs:
            raise OptionError(
                f"the state is in epoch {progress.epoch} of an iteration that began with epoch "
                f"{progress.begun}, but {option('epochs', self._epochs)}",
                option="epochs",
                value=self._epochs,
                remedy=f"Pass at least as many {option('epochs')} as the loader that saved the "
                "state.",
            )
        other = state.get("jpeg_decoder")
        if None not in (other, self._jpeg_decoder) and other != self._jpeg_decoder:
            warn_user(
                f"the state is from a loader that decoded JPEG with {other}, but this one has "
                f"{self._jpeg_decoder}: the pixels of images differ a little"
            )
        return self._copy(order, self.share), progress

    def _order_of(self, description: object) -> PositionOrder:
        """Return the order of a state, which must equal this one."""
        if not isinstance(description, Mapping):
            raise OptionError(
                f"the state has the order {description!r:.80}",
                option="state",
                value=description,
                expected="a dict",
            )
        order = self.order.adopt(description)
        own = self._describe(order)
        for name in {**own, **description}:
            if not is_same(description.get(name), own.get(name)):
                raise OptionError(
                    f"the state is from a loader with {_shown(name, description.get(name))}, but "
                    f"this one has {_shown(name, own.get(name))}; records would be repeated or "
                    "lost",
                    option="state",
                    value=description.get(name),
                    remedy="Create the loader with the dataset and the options of the state.",
                )
        return order


def _shown(name: str, value: object) -> str:
    """Return an entry of an order as a message shows it: `9 records`, `shuffle=True`."""
    if name == "dataset":
        return f"a dataset of the digest {value}"
    return f"{value} records" if name == "record_count" else f"{name}={value!r}"
