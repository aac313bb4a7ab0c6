"""Batches for `fit`, `evaluate` and `predict` of Keras 3, on any of its backends.

Keras reads a `PyDataset` by the numbers of its batches, and shuffles these if it is not told to
leave them; here a number is passed over, each call gives the loader's next batch, so that nothing
shuffles twice. Keras also takes batches only to look at their shapes, and begins again: it asks for
the length whenever it begins to read, and an iteration that has not ended is taken back then.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from recordsmith.errors import MissingExtraError, OptionError, names_like
from recordsmith.loading import Loader
from recordsmith.loading.loader import Iteration
from recordsmith.loading.suitable import check_loader

try:
    import keras
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise  # it is there, but its backend is not
    raise MissingExtraError("keras", "keras") from None


def batches(
    loader: Loader,
    x: str | Sequence[str],
    y: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
) -> keras.utils.PyDataset:
    """What `fit`, `evaluate` and `predict` take: a `PyDataset` of inputs, targets and weights.

    An epoch of Keras is an iteration of the loader. One that was broken off begins again.

    Args:
        loader: its `epochs` are 1, usually: Keras repeats it.
        x, y: the name of an entry of the batches; a list of names becomes a dict of arrays.
        sample_weight: the name of the entry that has a weight for each example.

    Raises:
        OptionError: there is no such entry, or it is not numbers of one shape; the loader goes on
            for ever, or uses memory again.
    """
    return _Batches(loader, x, y, sample_weight)


class _Batches(keras.utils.PyDataset):
    def __init__(
        self,
        loader: Loader,
        x: str | Sequence[str],
        y: str | Sequence[str] | None,
        sample_weight: str | None,
    ) -> None:
        super().__init__()
        check_loader(loader, reuse="Keras takes batches ahead")
        if y is None and sample_weight is not None:
            raise OptionError("sample_weight weighs targets, but there is no y")
        self._chosen = [entry for entry in (x, y, sample_weight) if entry is not None]
        _check_entries(loader, self._chosen)
        try:
            self._count = len(loader)
        except TypeError:
            raise OptionError(
                "this loader goes on for ever, but Keras repeats it itself: make it with epochs=1, "
                "or give fit a generator over it, and steps_per_epoch"
            ) from None
        self._loader = loader
        self._lock = threading.Lock()  # TensorFlow reads in a thread of its own
        self._iteration: Iteration | None = None
        self._given_count = 0
        self._is_asked = False  # for the length, since the last batch
        self._is_inside = False  # an epoch of Keras
        self._is_look = False  # the iteration was begun outside of an epoch

    def __len__(self) -> int:
        with self._lock:
            self._is_asked = True
            return self._count

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        with self._lock:
            if self._iteration is not None and self._given_count == self._count:
                self._iteration.close()
                self._iteration = None
            elif self._is_asked:
                self._take_back()
            self._is_asked = False
            if self._iteration is None:
                self._iteration = self._begin()
            batch = next(self._iteration)
            if not len(next(iter(batch.values()))):
                raise OptionError(
                    "filter or skip_errors left out all records of a batch, and the loss of none "
                    "is no number: say a larger batch_size, or select records before they are "
                    "packed, or by a slice"
                )
            self._given_count += 1
            return tuple(_picked(batch, entry) for entry in self._chosen)

    def on_epoch_begin(self) -> None:
        with self._lock:
            self._is_inside = True
            if self._is_look:
                self._take_back()

    def on_epoch_end(self) -> None:
        with self._lock:
            self._is_inside = False

    def _begin(self) -> Iteration:
        if len(self._loader) != self._count:
            raise OptionError(
                f"the next iteration of the loader has {len(self._loader)} batches, but Keras was "
                f"told {self._count}: call batches(loader) after load_state_dict; and where the "
                "first epoch is the rest of one, fit it alone (epochs=initial_epoch + 1), then "
                "call batches(loader) again"
            )
        self._is_look, self._given_count = not self._is_inside, 0
        return iter(self._loader)

    def _take_back(self) -> None:
        if self._iteration is not None:
            self._iteration.take_back()
            self._iteration = None


def _check_entries(loader: Loader, chosen: list[str | Sequence[str]]) -> None:
    specs = loader.spec()
    for entry in chosen:
        if isinstance(entry, str):
            names = [entry]
        elif isinstance(entry, Sequence) and entry:
            names = list(entry)
        else:
            raise OptionError(f"{entry!r:.60} names no entry; expected a name or a list of names")
        for name in names:
            spec = specs.get(name)
            if spec is None:
                raise OptionError(f"batches have no {name!r}; {names_like(name, specs, 'nothing')}")
            if spec.kind != "numbers" or spec.is_ragged:
                found = "ragged" if spec.is_ragged else spec.kind
                raise OptionError(
                    f"{name!r} is {found}; Keras wants numbers of one shape: take rs.Padded, or "
                    "let map_batches make numbers of it"
                )


def _picked(batch: dict[str, Any], entry: str | Sequence[str]) -> Any:
    return batch[entry] if isinstance(entry, str) else {name: batch[name] for name in entry}
