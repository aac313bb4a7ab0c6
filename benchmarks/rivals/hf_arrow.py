"""Hugging Face datasets: Arrow files on disk, map-style, under torch's `DataLoader`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from decode import decode, stack
from rival import Batch, Options, Photo, Rival, UnsupportedError, What
from torch_files import MapStyle


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


class Images(MapStyle):
    """The workers read and decode a batch at a time."""

    def __init__(self, options: Options) -> None:
        if options.keep is not None:
            raise UnsupportedError("Dataset.filter writes an index before")
        batch = partial(collate, what=options.what, seed=options.seed)
        super().__init__(options, stored(options.place), batch)


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
