"""torch's `DataLoader` over the image files: nothing is packed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from decode import batch_of, decode_in_worker
from rival import Batch, Loader, Options, Rival, UnsupportedError, What


def paths_of(place: str) -> list[Path]:
    """The image files, in the order of their keys."""
    if "://" in place:
        raise UnsupportedError("reads local files")
    return sorted(Path(place).glob("*/*.jpg"), key=lambda path: path.stem)


class Files:
    """A map-style dataset: key and image of each file, by position."""

    def __init__(self, place: str, what: What) -> None:
        self._paths, self._what = paths_of(place), what

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, position: int) -> tuple[int, Any]:
        path = self._paths[position]
        return int(path.stem), decode_in_worker(path.read_bytes(), self._what, position)


class MapStyle(Loader):
    """`DataLoader` of a map-style dataset, with workers that stay."""

    def __init__(self, options: Options, dataset: Any, collate: Callable[[Any], Batch]) -> None:
        import torch
        from torch.utils.data import DataLoader, DistributedSampler

        self._sampler = None
        if options.world_size > 1:
            self._sampler = DistributedSampler(
                dataset, options.world_size, options.rank, options.shuffle, options.seed
            )
        self._loader = DataLoader(
            dataset,
            options.batch_size,
            shuffle=options.shuffle and self._sampler is None,
            sampler=self._sampler,
            num_workers=options.threads,
            prefetch_factor=options.prefetch if options.threads else None,
            persistent_workers=options.threads > 0,
            collate_fn=collate,
            generator=torch.Generator().manual_seed(options.seed),
        )
        self._epoch = 0

    def epoch(self) -> Iterator[Batch]:
        if self._sampler is not None:
            self._sampler.set_epoch(self._epoch)
        self._epoch += 1
        yield from self._loader


class Images(MapStyle):
    """The files are read and decoded in the workers."""

    def __init__(self, options: Options) -> None:
        if options.keep is not None:
            raise UnsupportedError("choose files before, by a Subset")
        files = Files(options.place, options.what)
        super().__init__(options, files, partial(batch_of, what=options.what))


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    paths = paths_of(place)
    return lambda positions: [paths[position].read_bytes() for position in positions]


RIVAL = Rival(
    title="torch DataLoader, files",
    distributions=("torch",),
    pages=("https://docs.pytorch.org/docs/stable/data.html",),
    chosen="workers that stay; batches by its default collate function, in shared memory",
    pack=None,
    loader=Images,
    reader=reader,
)
