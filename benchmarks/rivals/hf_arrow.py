"""Hugging Face datasets: Arrow files on disk, map-style, under torch's `DataLoader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from decode import decode, stack
from rival import Batch, Loader, Options, Photo, Rival, UnsupportedError, What


def dataset_of(photos: Sequence[Photo]) -> Any:
    """A dataset of paths; writing it embeds the files."""
    import datasets

    columns = {
        "key": [photo.key for photo in photos],
        "image": [str(photo.path) for photo in photos],
        "label": [photo.label for photo in photos],
    }
    return datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())


def pack(photos: Sequence[Photo], out: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    dataset_of(photos).save_to_disk(out, num_shards=8)


def collate(samples: list[dict[str, Any]], what: What, seed: int) -> Batch:
    """Decode the samples that a worker read."""
    import numpy as np
    import torch

    rng = np.random.default_rng(torch.initial_seed() + seed + samples[0]["key"])
    keys = np.array([sample["key"] for sample in samples], np.int64)
    images = [decode(sample["image"]["bytes"], what, rng) for sample in samples]
    return Batch(keys, stack(images, what))


def stored(place: str) -> Any:
    import datasets

    if "://" in place:
        raise UnsupportedError("maps local files into memory")
    return datasets.load_from_disk(place).cast_column("image", datasets.Image(decode=False))


class Images(Loader):
    """`DataLoader`, whose workers stay; they read and decode a batch at a time."""

    def __init__(self, options: Options) -> None:
        import torch
        from torch.utils.data import DataLoader, DistributedSampler

        if options.keep is not None:
            raise UnsupportedError("Dataset.filter writes an index before")
        dataset = stored(options.place)
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
            collate_fn=partial(collate, what=options.what, seed=options.seed),
            generator=torch.Generator().manual_seed(options.seed),
        )
        self._epoch = 0

    def epoch(self) -> Iterator[Batch]:
        if self._sampler is not None:
            self._sampler.set_epoch(self._epoch)
        self._epoch += 1
        yield from self._loader


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    dataset = stored(place)
    return lambda positions: [image["bytes"] for image in dataset[list(positions)]["image"]]


RIVAL = Rival(
    title="Hugging Face datasets, Arrow",
    distributions=("datasets", "pyarrow", "torch"),
    pages=("https://huggingface.co/docs/datasets/use_with_pytorch",),
    chosen="map-style, in worker processes that stay, a batch with each read; a global shuffle",
    pack=pack,
    loader=Images,
    reader=reader,
)
