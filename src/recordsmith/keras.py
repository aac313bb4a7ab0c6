"""Batches for `fit`, `evaluate` and `predict` of Keras 3, on any of its backends.

Keras reads a `PyDataset` by batch number, in shuffled order by default. Numbers are ignored here:
each call returns the loader's next batch, so nothing is shuffled twice. Keras also reads batches
just for their shapes and starts again: it requests the length whenever it begins to read, and an
unfinished iteration is undone then.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from recordsmith.loading import Iteration, Loader, check_loader
from recordsmith.support.errors import OptionError, needs_extra, option
from recordsmith.support.words import suggest_names

with needs_extra("keras"):
    import keras


def batches(
    loader: Loader,
    x: str | Sequence[str],
    y: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
) -> keras.utils.PyDataset:
    """Return a `PyDataset` of inputs, targets and weights for `fit`, `evaluate` and `predict`.

    An epoch of Keras is an iteration of the loader. An interrupted epoch begins again.

    Args:
        loader: usually with `epochs=1`: Keras repeats it.
        x, y: the name of an entry of the batches; a list of names becomes a dict of arrays.
        sample_weight: the name of the entry with a weight for each example.

    Raises:
        OptionError: an entry is missing, or not numbers of one shape; the loader is endless.

    Example:
        model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(recordsmith.keras.batches(loader, "image", "label"), epochs=2)
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
        check_loader(loader)
        if y is None and sample_weight is not None:
            raise OptionError(
                f"{option('sample_weight')} needs {option('y')}",
                option="sample_weight",
                value=sample_weight,
            )
        self._chosen = [entry for entry in (x, y, sample_weight) if entry is not None]
        _check_entries(loader, self._chosen)
        try:
            self._count = len(loader)
        except TypeError:
            raise OptionError(
                "the loader is endless, but Keras repeats it itself",
                option="epochs",
                remedy=f"Create it with {option('epochs', 1)}, or pass fit a generator over it and "
                "steps_per_epoch.",
            ) from None
        self._loader = loader
        self._lock = threading.Lock()  # TensorFlow reads in a thread of its own
        self._iteration: Iteration | None = None
        self._given_count = 0
        self._was_length_requested = False  # since the last batch
        self._is_inside = False  # an epoch of Keras
        self._is_preview = False  # the iteration was begun outside of an epoch

    def __len__(self) -> int:
        with self._lock:
            self._was_length_requested = True
            return self._count

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        with self._lock:
            if self._iteration is not None and self._given_count == self._count:
                self._iteration.close()
                self._iteration = None
            elif self._was_length_requested:
                self._undo()
            self._was_length_requested = False
            if self._iteration is None:
                self._iteration = self._begin()
            batch = next(self._iteration)
            if not len(next(iter(batch.values()))):
                raise OptionError(
                    "all records of a batch were filtered or skipped, and Keras cannot use an "
                    "empty batch",
                    option="batch_size",
                    remedy=f"Pass a larger {option('batch_size')}, or select records before "
                    "packing, or with a slice.",
                )
            self._given_count += 1
            return tuple(
                batch[entry] if isinstance(entry, str) else {name: batch[name] for name in entry}
                for entry in self._chosen
            )

    def on_epoch_begin(self) -> None:
        with self._lock:
            self._is_inside = True
            if self._is_preview:
                self._undo()

    def on_epoch_end(self) -> None:
        with self._lock:
            self._is_inside = False

    def _begin(self) -> Iteration:
        if len(self._loader) != self._count:
            raise OptionError(
                f"the next iteration of the loader has {len(self._loader)} batches, but Keras "
                f"expects {self._count}",
                remedy="Call batches(loader) after load_state_dict. To resume inside an epoch, fit "
                "the rest of it alone (epochs=initial_epoch + 1), then call batches(loader) again.",
            )
        self._is_preview, self._given_count = not self._is_inside, 0
        return iter(self._loader)

    def _undo(self) -> None:
        if self._iteration is not None:
            self._iteration.undo()
            self._iteration = None


def _check_entries(loader: Loader, chosen: list[str | Sequence[str]]) -> None:
    specs = loader.spec()
    for entry in chosen:
        if isinstance(entry, str):
            names = [entry]
        elif isinstance(entry, Sequence) and entry:
            names = list(entry)
        else:
            raise OptionError(
                f"{entry!r:.60} is not an entry", value=entry, expected="a name or a list of names"
            )
        for name in names:
            spec = specs.get(name)
            if spec is None:
                hint = suggest_names(name, specs, "they are empty")
                raise OptionError(f"the batches have no entry {name!r}; {hint}", value=name)
            if spec.kind != "numbers" or spec.is_ragged:
                found = "ragged" if spec.is_ragged else spec.kind
                raise OptionError(
                    f"{name!r} is {found}",
                    value=name,
                    expected="numbers of one shape",
                    remedy=f"Use rs.Padded, or convert it in {option('map_batches')}.",
                )
