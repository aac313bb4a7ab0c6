"""torch's `DataLoader` over the image files: nothing is packed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from decode import decode, stack
from rival import Batch, Loader, Options, Rival, UnsupportedError, What


class Files:
    """A map-style dataset: key and image of each file, by position."""

    def __init__(self, place: str, what: What, seed: int) -> None:
        if "://" in place:
            raise UnsupportedError("reads local files")
        self._paths = sorted(Path(place).glob("*/*.jpg"), key=lambda path: path.stem)
        self._what, self._seed = what, seed

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, position: int) -> tuple[int, Any]:
        import numpy as np
        import torch

        path = self._paths[position]
        # torch seeds each worker in each epoch; its own advice for NumPy's generators
        rng = np.random.default_rng(torch.initial_seed() + position)
        return int(path.stem), decode(path.read_bytes(), self._what, rng)


def collate(samples: list[tuple[int, Any]], what: What) -> Batch:
    import numpy as np

    keys, images = zip(*samples, strict=True)
    return Batch(np.array(keys, np.int64), stack(list(images), what))


class Images(Loader):
    """`DataLoader` with workers that stay."""

    def __init__(self, options: Options) -> None:
        from functools import partial

        import torch
        from torch.utils.data import DataLoader, DistributedSampler

        if options.keep is not None:
            raise UnsupportedError("choose files before, by a Subset")
        files: Any = Files(options.place, options.what, options.seed)
        self._sampler = None
        if options.world_size > 1:
            self._sampler = DistributedSampler(
                files, options.world_size, options.rank, options.shuffle, options.seed
            )
        self._loader = DataLoader(
            files,
            options.batch_size,
            shuffle=options.shuffle and self._sampler is None,
            sampler=self._sampler,
            num_workers=options.threads,
            prefetch_factor=options.prefetch if options.threads else None,
            persistent_workers=options.threads > 0,
            collate_fn=partial(collate, what=options.what),
            generator=torch.Generator().manual_seed(options.seed),
        )
        self._epoch = 0

    def epoch(self) -> Iterator[Batch]:
        if self._sampler is not None:
            self._sampler.set_epoch(self._epoch)
        self._epoch += 1
        yield from self._loader


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    paths = sorted(Path(place).glob("*/*.jpg"), key=lambda path: path.stem)
    return lambda positions: [paths[position].read_bytes() for position in positions]


RIVAL = Rival(
    title="torch DataLoader, files",
    distributions=("torch",),
    pages=("https://docs.pytorch.org/docs/stable/data.html",),
    chosen="workers that stay; arrays by a collate function, without a copy",
    pack=None,
    loader=Images,
    reader=reader,
)
