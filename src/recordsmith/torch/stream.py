"""A loader's batches as a dataset of torch's, whose items are whole batches.

Without workers a DataLoader gets the batches of the loader, which its threads make. Each worker
process has a copy of the loader that takes its turn among them; where they begin is in `turns`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch.utils.data
from torch.utils.data import default_collate, get_worker_info

from recordsmith.errors import OptionError, option
from recordsmith.loading import Loader
from recordsmith.loading.adapter_checks import check_loader, check_rank
from recordsmith.torch.conversion import convert
from recordsmith.torch.launcher import this_rank
from recordsmith.torch.parcels import parcel
from recordsmith.torch.turns import State, TurnEntry, Turns, of_worker


class TorchBatches(torch.utils.data.IterableDataset[dict[str, Any]]):
    """The batches of a loader, as tensors: iterate over it, or give it to a DataLoader.

        stream = DataLoader(batches(loader), batch_size=None, num_workers=0)

    Each iteration returns the batches of the loader's next iteration, in the same order, with or
    without worker processes. Created by `batches`.
    """

    def __init__(self, loader: Loader, *, any_rank: bool = False) -> None:
        """As `batches`."""
        check_loader(loader)
        self._loader = loader
        self._any_rank = any_rank
        self._turns = Turns()
        self._load_count = 0
        self._given: Mapping[str, Any] | None = None  # a worker's state, for its next iteration
        self._worker_state: dict[str, Any] = {}
        self._check_rank()
        self._origin()  # refuses a loader that is one worker's already

    def __repr__(self) -> str:
        return f"batches({self._loader})"

    def __len__(self) -> int:
        """Return the number of batches of the next iteration, from all workers together.

        Raises:
            TypeError: the iteration is endless.
        """
        return len(self._at(self._turns.next(self._here(), self._later)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        _refuse_batches_of_batches()
        info = get_worker_info()
        if info is not None:
            return self._in_worker(info)
        self._check_rank()
        self._check_read_here()
        return map(convert, self._loader)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the loader, as `Loader.state_dict`.

        In a worker process, returns the state of that worker, for torchdata's StatefulDataLoader.
        With the workers of torch's own DataLoader, use `Loader.state_after`.

        Raises:
            OptionError: worker processes read the loader, so its state is unknown here.
        """
        if get_worker_info() is not None:
            return dict(self._worker_state)
        self._check_read_here()
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from the state of a loader, or of a worker of StatefulDataLoader.

        Raises:
            OptionError: the state is invalid, or of another dataset or order.
        """
        info = get_worker_info()
        if info is not None:
            self._check_given(state, info)
            self._given = state
            return
        self._loader.load_state_dict(state)
        self._load_count += 1
        self._turns.note_loaded(self._here())

    # -- in the main process -----------------------------------------------------------------------

    def _check_rank(self) -> None:
        if not self._any_rank:
            check_rank(self._loader, this_rank())

    def _check_read_here(self) -> None:
        if self._turns.has_any(self._here()):
            raise OptionError(
                "worker processes of a DataLoader have read from this loader, so its state is "
                "unknown in this process",
                remedy="Use loader.state_after(n) with the number of batches that your loop has "
                "received; to read in this process, load that state first.",
            )

    def _here(self) -> TurnEntry:
        """What all iterations have in common whose workers this process begins now."""
        return TurnEntry(os.getpid(), self._load_count, self._origin())

    # -- in a worker -------------------------------------------------------------------------------

    def _in_worker(self, info: Any) -> Iterator[dict[str, Any]]:
        given, self._given = self._given or {}, None
        handed_out_count = given.get("handed_out_count", 0)
        entry = of_worker(self._load_count, self._origin(), info)
        try:
            begin = self._turns.join(replace(entry, begin=given.get("begin")), self._later)
        except OptionError as error:
            return _failing(error)
        state = {**self._share(info), "begin": begin, "handed_out_count": handed_out_count}
        self._worker_state = state
        loader = self._at(begin).for_worker(
            info.id, info.num_workers, skipped_count=handed_out_count
        )
        return _hand_out(loader, state)

    def _share(self, info: Any) -> dict[str, int]:
        """What must be equal for a worker's state to be loaded."""
        return {
            "worker": info.id,
            "worker_count": info.num_workers,
            "batch_size": self._loader.batch_size,
            "world_size": self._loader.world_size,
        }

    def _check_given(self, state: Mapping[str, Any], info: Any) -> None:
        names = {*self._share(info), "begin", "handed_out_count"}
        if not isinstance(state, Mapping) or set(state) != names:
            raise OptionError(option="state", value=state, expected="a state_dict() of a worker")
        for name, own in self._share(info).items():
            if state[name] != own:
                raise OptionError(
                    f"the state is from a worker with {name} {state[name]}, but this one has {own}",
                    option="state",
                    value=state[name],
                    remedy="Resume with the same number, or load loader.state_after(n), which is "
                    "valid for any.",
                )
        self._at(state["begin"])  # for what it refuses

    # -- in both -----------------------------------------------------------------------------------

    def _origin(self) -> State:
        """Where the loader would begin."""
        return self._loader.for_worker(0, 1).state_dict()

    def _at(self, state: State) -> Loader:
        """A copy of the loader that goes on there."""
        copy = self._loader.for_worker(0, 1)
        copy.load_state_dict(state)
        return copy

    def _later(self, state: State) -> State:
        """Where the iteration begins that comes after the one which begins there."""
        return self._at(state).for_worker(0, 1, iteration=1).state_dict()


def batches(loader: Loader, *, any_rank: bool = False) -> TorchBatches:
    """Return a torch dataset whose items are the whole batches of a loader, as tensors.

        for batch in DataLoader(batches(loader), batch_size=None): ...

    Args:
        loader: tensors share its memory; worker processes have copies of it.
        any_rank: allow a loader with another rank than this process, such as when several ranks
            read the same records.

    Raises:
        OptionError: the loader does not have the rank and world_size of this process.
    """
    return TorchBatches(loader, any_rank=any_rank)


def _hand_out(loader: Loader, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A worker's batches; its state is kept up to date."""
    for batch in loader:
        state["handed_out_count"] += 1
        yield parcel(convert(batch))


def _failing(error: OptionError) -> Iterator[dict[str, Any]]:
    """Fails when a batch is asked for; a worker that persists would die of it before."""
    yield from ()
    raise error


def _refuse_batches_of_batches() -> None:
    """Raise OptionError if a DataLoader asks that would put several batches into one.

    Nothing tells a dataset what is done with its items but the frame that asks for its iterator.
    """
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    asked = {} if frame is None else frame.f_locals
    if asked.get("auto_collation") and asked.get("collate_fn") is default_collate:
        raise OptionError(
            "this DataLoader would combine whole batches into batches",
            option="batch_size",
            remedy=f"Pass {option('batch_size')}=None to the DataLoader.",
        )
