"""recordsmith in worker processes of torch's `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import recordsmith_shards
from recordsmith_shards import as_batch
from rival import Batch, Options


class Images(recordsmith_shards.Images):
    """`recordsmith.torch.batches` in a `DataLoader` with workers that stay."""

    def __init__(self, options: Options) -> None:
        from torch.utils.data import DataLoader

        import recordsmith.torch

        super().__init__(replace(options, threads=1))
        self._stream = recordsmith.torch.batches(self._loader)
        self._batches = DataLoader(
            self._stream,
            batch_size=None,
            num_workers=options.threads,
            prefetch_factor=options.prefetch if options.threads else None,
            persistent_workers=options.threads > 0,
        )
        self._count = 0

    def epoch(self) -> Iterator[Batch]:
        for batch in self._batches:
            self._count += 1
            yield as_batch(batch)

    def state(self) -> Any:
        return self._loader.state_after(self._count)

    def load(self, state: Any) -> None:
        self._stream.load_state_dict(state)
        self._count = 0


RIVAL = replace(
    recordsmith_shards.RIVAL,
    title="recordsmith, worker processes",
    distributions=("recordsmith", "torch"),
    pages=("docs/pytorch.md",),
    chosen="a DataLoader around `recordsmith.torch.batches`; each worker decodes in one thread",
    loader=Images,
)
