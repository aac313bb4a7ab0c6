"""The batches of a loader as a dataset of torch, whose items are whole batches.

Without workers, a DataLoader receives the batches that the loader's threads make. With workers,
each of them has a copy of the loader that makes its share of the batches, and they agree where they
begin (`loading.worker_iterations`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch.distributed
import torch.utils.data
from torch.utils.data import default_collate, get_worker_info

from recordsmith.loading import (
    EpochProgress,
    Iteration,
    Loader,
    RaggedParts,
    Rank,
    Start,
    check_loader,
)
from recordsmith.support.errors import OptionError, option
from recordsmith.support.number_options import is_same, whole_number
from recordsmith.torch.tensors import convert
from recordsmith.torch.workers import end_with_main_process

_DIVIDING = ("DataLoaderDispatcher", "IterableDatasetShard")
"""Classes of accelerate and transformers that read a dataset for several ranks."""


class TorchBatches(torch.utils.data.IterableDataset[dict[str, Any]]):
    """The batches of a loader, as tensors: iterate over it, or pass it to a DataLoader.

        stream = DataLoader(batches(loader), batch_size=None, num_workers=0)

    Each iteration returns the batches of the loader's next iteration, in the same order, with or
    without worker processes. All streams of a loader share its iterations. Created by `batches`.
    """

    def __init__(
        self,
        loader: Loader,
        *,
        any_rank: bool = False,
        device: str | torch.device | None = None,
    ) -> None:
        """Arguments as in `batches`."""
        self._loader = loader
        self._any_rank = any_rank
        self._device = None if device is None else _usable_device(device)
        self._loaded: Mapping[str, Any] | None = None  # of a worker, for its next iteration
        self._worker_state: dict[str, Any] = {}
        self._check_rank()
        loader.for_worker(0, 1)  # raises for a loader that is already for one worker
        loader.session.workers()  # from now on they and this process share its iterations

    def __repr__(self) -> str:
        return f"batches({self._loader})"

    def __len__(self) -> int:
        """Return the number of batches of the next iteration, from all workers together."""
        session = self._loader.session
        begin = session.workers().next(session.origin(), session.later_state)
        return len(session.resumed(begin))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        end_with_main_process()
        _check_not_batched()
        if self._loader.world_size > 1:
            _check_not_divided()
        info = get_worker_info()
        if info is not None:
            if self._device is not None:
                return _failing(
                    OptionError(
                        "worker processes cannot copy to a device",
                        option="device",
                        value=str(self._device),
                        remedy=f"Pass {option('num_workers', 0)}, or copy in the training loop.",
                    )
                )
            return self._in_worker(info)
        self._check_rank()
        self._loader.session.check_read_here()
        if self._device is None:
            return map(convert, self._loader)
        return self._on_device(self._device)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the loader, as `Loader.state_dict`.

        In a worker process, returns the state of that worker, for torchdata's StatefulDataLoader.
        With the workers of torch's own DataLoader, use `Loader.state_after`.

        Raises:
            OptionError: worker processes read the loader, so its state is unknown here.
        """
        if get_worker_info() is not None:
            return dict(self._worker_state)
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from the state of a loader, or of a worker of StatefulDataLoader.

        Raises:
            OptionError: the state is invalid, or of another dataset or order.
        """
        info = get_worker_info()
        if info is not None:
            self._check_loaded(state, info)
            self._loaded = state
            return
        self._loader.load_state_dict(state)

    # -- in the main process -----------------------------------------------------------------------

    def _check_rank(self) -> None:
        check_loader(self._loader, None if self._any_rank else this_rank())

    def _on_device(self, device: torch.device) -> Iterator[dict[str, Any]]:
        """Yield batches on a device. The next one is copied while the loop uses the one before."""
        copies = torch.cuda.Stream(device) if device.type == "cuda" else None

        def copy(tensor: torch.Tensor) -> torch.Tensor:
            source = tensor if copies is None else tensor.pin_memory()
            return source.to(device, non_blocking=True)

        def share(tensor: torch.Tensor) -> torch.Tensor:
            tensor.record_stream(torch.cuda.current_stream(device))
            return tensor

        def receive(batch: dict[str, Any], after: EpochProgress) -> dict[str, Any]:
            iteration.deliver(after)
            if copies is None:
                return batch
            torch.cuda.current_stream(device).wait_stream(copies)
            return _each_tensor(batch, share)

        iteration: Iteration = iter(self._loader)
        ahead: tuple[dict[str, Any], EpochProgress] | None = None
        for batch, after in iteration.ahead():
            with nullcontext() if copies is None else torch.cuda.stream(copies):
                copied = _each_tensor(convert(batch), copy)
            if ahead is not None:
                yield receive(*ahead)
            ahead = copied, after
        if ahead is not None:
            yield receive(*ahead)
        iteration.deliver(iteration.end)

    # -- in a worker -------------------------------------------------------------------------------

    def _in_worker(self, info: Any) -> Iterator[dict[str, Any]]:
        loaded, self._loaded = self._loaded or {}, None
        batch_count = loaded.get("batch_count", 0)
        session = self._loader.session
        start = Start.of_worker(session.origin(), info, loaded.get("begin"))
        try:
            begin = session.workers().join(start, session.later_state)
        except OptionError as error:
            return _failing(error)
        state = {**self._share(info), "begin": begin, "batch_count": batch_count}
        self._worker_state = state
        loader = self._loader.for_worker(0, 1)
        loader.load_state_dict(begin)
        own = loader.for_worker(info.id, info.num_workers, skipped_count=batch_count)
        return _batches_of_worker(own, state)

    def _share(self, info: Any) -> dict[str, int]:
        """Return what must be equal to load the state of a worker."""
        return {
            "worker": info.id,
            "worker_count": info.num_workers,
            "batch_size": self._loader.batch_size,
            "world_size": self._loader.world_size,
        }

    def _check_loaded(self, state: Mapping[str, Any], info: Any) -> None:
        names = {*self._share(info), "begin", "batch_count"}
        if not isinstance(state, Mapping) or set(state) != names:
            raise OptionError(option="state", value=state, expected="a state_dict() of a worker")
        for name, own in self._share(info).items():
            if not is_same(state[name], own):
                raise OptionError(
                    f"the state is from a worker with {name} {state[name]}, but this one has {own}",
                    option="state",
                    value=state[name],
                    remedy="Resume with the same number, or load loader.state_after(n), which is "
                    "valid for any.",
                )
        whole_number("batch_count", state["batch_count"], 0)
        self._loader.session.resumed(state["begin"])  # raises if it is of another loader


def batches(
    loader: Loader, *, any_rank: bool = False, device: str | torch.device | None = None
) -> TorchBatches:
    """Return a torch dataset whose items are the whole batches of a loader, as tensors.

    Args:
        loader: tensors share its memory; worker processes have copies of it.
        any_rank: allow a loader with another rank than this process, such as when several ranks
            read the same records.
        device: copy numbers to this device, such as "cuda". The next batch is copied while the loop
            uses the current one: on CUDA from pinned memory, in a stream of its own. Resume with
            `state_dict` of the result then, since the loader is one batch ahead. None: no copies.

    Raises:
        OptionError: the loader does not have the rank and world_size of this process, or torch
            cannot use the device.

    Example:
        batches = recordsmith.torch.batches(loader)
        for batch in torch.utils.data.DataLoader(batches, batch_size=None):
            print(batch["image"].shape)  # torch.Size([8, 32, 32, 3])
    """
    return TorchBatches(loader, any_rank=any_rank, device=device)


def this_rank() -> Rank:
    """Return rank and world_size of this process: `Loader(..., **this_rank())`.

    Uses torch.distributed if it is initialized, else RANK and WORLD_SIZE of the environment, which
    torchrun sets, else rank 0 of 1.

    Raises:
        OptionError: RANK and WORLD_SIZE are invalid.

    Example:
        loader = rs.Loader(dataset, batch_size=8, shuffle=True, **recordsmith.torch.this_rank())
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return Rank(
            rank=torch.distributed.get_rank(), world_size=torch.distributed.get_world_size()
        )
    values = [os.environ.get(name) for name in ("RANK", "WORLD_SIZE")]
    if None in values:
        return Rank(rank=0, world_size=1)
    try:
        rank, world_size = (int(number or "") for number in values)
    except ValueError:
        rank, world_size = -1, 0
    if not 0 <= rank < world_size:
        raise OptionError(
            f"the environment has RANK={values[0]} and WORLD_SIZE={values[1]}",
            option="rank",
            value=values[0],
            expected="a rank of at least 0 and below the world size",
        )
    return Rank(rank=rank, world_size=world_size)


def _usable_device(device: str | torch.device) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (AssertionError, RuntimeError, TypeError) as error:  # each torch has its own
        raise OptionError(
            f"torch cannot use this device ({str(error).splitlines()[0]})",
            option="device",
            value=str(device),
        ) from None


def _each_tensor(
    batch: Mapping[str, Any], function: Callable[[torch.Tensor], torch.Tensor]
) -> dict[str, Any]:
    def applied(entry: Any) -> Any:
        if isinstance(entry, RaggedParts):
            return RaggedParts(*map(function, entry))
        return function(entry) if isinstance(entry, torch.Tensor) else entry

    return {name: applied(entry) for name, entry in batch.items()}


def _batches_of_worker(loader: Loader, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for batch in loader:
        state["batch_count"] += 1
        yield convert(batch)


def _failing(error: OptionError) -> Iterator[dict[str, Any]]:
    """Raise an error when a batch is requested; before that, it would end a persistent worker."""
    yield from ()
    raise error


def _check_not_batched() -> None:
    """Raise OptionError if a DataLoader would combine several batches into one.

    A dataset can only find this in the frame of the DataLoader that requests its iterator.
    """
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    of_caller = {} if frame is None else frame.f_locals
    if of_caller.get("auto_collation") and of_caller.get("collate_fn") is default_collate:
        raise OptionError(
            "this DataLoader would combine whole batches into batches",
            option="batch_size",
            remedy=f"Pass {option('batch_size')}=None to the DataLoader.",
        )


def _check_not_divided() -> None:
    """Raise OptionError if accelerate would divide the batches of a rank among the ranks."""
    frame = inspect.currentframe()
    while frame is not None:
        if type(frame.f_locals.get("self")).__name__ in _DIVIDING:
            raise OptionError(
                "accelerate would divide the batches of this rank among all ranks again",
                option="loader",
                remedy="Do not pass it to prepare(): this_rank() has divided the records.",
            )
        frame = frame.f_back
