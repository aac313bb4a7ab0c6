"""LitData: chunks, read by `StreamingDataset`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from decode import batch_of, decode_in_worker
from rival import Batch, Loader, Options, Photo, Rival, UnsupportedError, shard_bytes


def sample_of(photo: Photo) -> dict[str, Any]:
    import litdata

    image = litdata.Image(path=str(photo.path))  # bytes would be read 256 samples at a time
    return {"key": photo.key, "label": photo.label, "jpg": image}


def dataset_of(place: str, **options: Any) -> Any:
    """Its dataset, which returns the JPEG files: all rivals have the same decoder."""
    import litdata
    from litdata.streaming.serializers import BytesSerializer

    return litdata.StreamingDataset(place, serializers={"image": BytesSerializer()}, **options)


def pack(photos: Sequence[Photo], out: Path) -> None:
    import litdata

    litdata.optimize(
        fn=sample_of,
        inputs=list(photos),
        output_dir=str(out),
        chunk_bytes=shard_bytes(photos),
        num_workers=1,
        verbose=False,
    )


class Images(Loader):
    """`StreamingDataLoader` with its shuffle and workers that stay."""

    def __init__(self, options: Options, **more: Any) -> None:
        """`more`: for its `StreamingDataset`."""
        from functools import partial

        import litdata

        if options.keep is not None:
            raise UnsupportedError("no filter documented")
        remote = "://" in options.place
        if remote:  # the server of the benchmark has no TLS
            from litdata.streaming import downloader

            downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # noqa: SLF001
        if remote and options.cache_bytes is not None:
            more["max_cache_size"] = options.cache_bytes
        photos = dataset_of(
            options.place,
            cache_dir=options.cache if remote else None,
            shuffle=options.shuffle,
            seed=options.seed,
            transform=partial(decoded, options=options),
            **more,
        )
        self._loader = litdata.StreamingDataLoader(
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


def decoded(sample: dict[str, Any], options: Options) -> tuple[int, Any]:
    return sample["key"], decode_in_worker(sample["jpg"], options.what, sample["key"])


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    photos = dataset_of(place)
    return lambda positions: [bytes(photos[position]["jpg"]) for position in positions]


RIVAL = Rival(
    title="LitData",
    distributions=("litdata", "torch"),
    pages=("https://github.com/Lightning-AI/litData/blob/main/README.md",),
    chosen="optimize to chunks of at most 64 MB with its type for images, its StreamingDataLoader, "
    "workers that stay",
    pack=pack,
    loader=Images,
    reader=reader,
)
