"""A DataModule for Lightning: its checkpoints have the place of the training data.

module = DataModule(lambda: rs.Loader(..., **recordsmith.torch.this_rank()))
trainer.fit(model, datamodule=module, ckpt_path="last.ckpt")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from recordsmith.loading import Loader
from recordsmith.support.errors import OptionError, needs_extra

with needs_extra("lightning"):
    from lightning.pytorch import LightningDataModule
    from torch.utils.data import DataLoader

    from recordsmith.torch.stream import batches

__all__ = ["DataModule"]


class DataModule(LightningDataModule):
    """Loaders for `Trainer.fit`, which resumes in the middle of an epoch with the next batch.

    Loaders are made in each process, after the Trainer has begun distributed training, so that
    `this_rank()` is right. Checkpoints may be loaded with another number of processes.

    Example:
        module = recordsmith.lightning.DataModule(lambda: rs.Loader(dataset, batch_size=8))
        print(len(module.train_dataloader()))  # and trainer.fit(model, datamodule=module)
    """

    def __init__(
        self,
        train: Callable[[], Loader],
        validation: Callable[[], Loader] | None = None,
        *,
        num_workers: int = 0,
        pin_memory: bool = False,
    ) -> None:
        """Prepare; nothing is read.

        Args:
            train, validation: make the loaders of this process.
            num_workers, pin_memory: of the DataLoaders. Without workers, the loader's threads
                decode, which needs less memory.
        """
        super().__init__()
        self._make_train, self._make_validation = train, validation
        self._options = {"batch_size": None, "num_workers": num_workers, "pin_memory": pin_memory}
        self._train: Loader | None = None
        self._state: Mapping[str, Any] | None = None
        self._done_before = 0  # batches of the Trainer when the state was loaded

    def train_dataloader(self) -> Any:
        """Return the batches of the next epoch."""
        if self._train is None:
            self._train = self._made(self._make_train)
            self._step_count = len(self._train)
            if self._state is not None:
                self._train.load_state_dict(self._state)
        return _Stream(DataLoader(batches(self._train), **self._options), self._step_count)

    def val_dataloader(self) -> Any:
        """Return the batches to validate with."""
        if self._make_validation is None:
            return []
        return DataLoader(batches(self._made(self._make_validation)), **self._options)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the training data after the batches that were trained on."""
        if self._train is None:
            return {}
        assert self.trainer is not None
        done: int = self.trainer.fit_loop.epoch_loop.batch_progress.total.processed
        return {"loader": self._train.state_after(done - self._done_before), "done": done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        if state:
            self._state, self._done_before = state["loader"], state["done"]

    @staticmethod
    def _made(make: Callable[[], Loader]) -> Loader:
        loader = make()
        if not isinstance(loader, Loader):
            raise OptionError(
                option="train", value=loader, expected="a function that returns a Loader"
            )
        return loader


class _Stream:
    """The batches of an epoch, whose length is that of a whole one, also for the rest of one."""

    def __init__(self, stream: Any, length: int) -> None:
        self._stream, self._length = stream, length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        # the Trainer creates iterators that it never uses: workers begin with the first batch
        yield from self._stream
