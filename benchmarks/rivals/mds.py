"""MosaicML streaming: shards of MDS, read by `StreamingDataset`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from decode import batch_of, decode_in_worker
from rival import Batch, Loader, Options, Photo, Rival, UnsupportedError, shard_bytes

if find_spec("torchvision") is None:
    # only its datasets of images need torchvision, which has no build for every torch
    sys.modules["streaming.vision"] = ModuleType("streaming.vision")


def pack(photos: Sequence[Photo], out: Path, hashes: Sequence[str] = ()) -> None:
    from streaming import MDSWriter

    columns = {"key": "int", "label": "int", "jpg": "bytes"}
    limit = shard_bytes(photos)
    with MDSWriter(out=str(out), columns=columns, size_limit=limit, hashes=hashes) as writer:
        for key, path, label in photos:
            writer.write({"key": key, "label": label, "jpg": path.read_bytes()})


class Images(Loader):
    """`StreamingDataLoader` with its default shuffle and workers that stay."""

    def __init__(self, options: Options, validate_hash: str | None = None) -> None:
        from functools import partial

        from streaming import StreamingDataLoader, StreamingDataset
        from streaming.base.util import clean_stale_shared_memory

        if options.keep is not None:
            raise UnsupportedError("no filter documented: mosaicml/streaming issue 800")
        clean_stale_shared_memory()  # of a killed process: advice of the FAQ; waits for all ranks

        class Photos(StreamingDataset):  # type: ignore[misc]
            def __getitem__(self, position: int) -> tuple[int, Any]:
                sample = super().__getitem__(position)
                image = decode_in_worker(sample["jpg"], options.what, int(position))
                return int(sample["key"]), image

        is_remote = "://" in options.place or options.cache is not None
        photos: Any = Photos(
            remote=options.place if is_remote else None,
            local=options.cache if is_remote else options.place,
            cache_limit=options.cache_bytes if is_remote else None,
            batch_size=options.batch_size,
            shuffle=options.shuffle,
            shuffle_seed=options.seed,
            validate_hash=validate_hash,
        )
        if "://" in options.place:
            for stream in photos.streams:  # forked workers would share its connection
                stream._downloader.clean_up()  # noqa: SLF001
        self._loader = StreamingDataLoader(
            photos,
            batch_size=options.batch_size,
            num_workers=options.threads,
            prefetch_factor=options.prefetch if options.threads else None,
            persistent_workers=options.threads > 0,
            collate_fn=partial(batch_of, what=options.what),
        )

    def epoch(self) -> Iterator[Batch]:
        yield from self._loader

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    from streaming import StreamingDataset

    photos = StreamingDataset(local=place, batch_size=1)
    return lambda positions: [photos[position]["jpg"] for position in positions]


_DOCS = "https://docs.mosaicml.com/projects/streaming/en/stable"

RIVAL = Rival(
    title="MosaicML streaming",
    distributions=("mosaicml-streaming", "torch"),
    pages=(
        f"{_DOCS}/preparing_datasets/basic_dataset_conversion.html",
        f"{_DOCS}/dataset_configuration/shuffling.html",
        f"{_DOCS}/distributed_training/fast_resumption.html",
        f"{_DOCS}/getting_started/faqs_and_tips.html",
    ),
    chosen="the default shuffle py1e, a batch size for the dataset too, workers that stay; "
    "shards of at most 64 MiB, within the advised 50 to 100 MB",
    pack=pack,
    loader=Images,
    reader=reader,
)
