"""WebDataset: tar files of 8 shards, read by `WebDataset` and `WebLoader`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from decode import batch_of, decode_in_worker
from rival import Batch, Loader, Options, Photo, Rival, What

SHARDS, SHUFFLE_BUFFER = 8, 1_000


def pack(photos: Sequence[Photo], out: Path) -> None:
    import webdataset as wds

    out.mkdir(parents=True, exist_ok=True)
    most = -(-len(photos) // SHARDS)
    with wds.ShardWriter(str(out / "%06d.tar"), maxcount=most, verbose=0) as writer:
        for key, path, label in photos:
            writer.write({"__key__": f"{key:09}", "jpg": path.read_bytes(), "cls": label})


class Images(Loader):
    """Shuffles the shards, and samples in a buffer; batches in the workers."""

    def __init__(self, options: Options) -> None:
        from functools import partial

        import webdataset as wds

        shards: Any = wds.WebDataset(
            f"{address(options.place)}/{{000000..{SHARDS - 1:06}}}.tar",
            shardshuffle=SHARDS if options.shuffle else False,
            detshuffle=options.shuffle,
            seed=options.seed,
            nodesplitter=wds.split_by_node,
            cache_dir=options.cache,
            cache_size=-1 if options.cache_bytes is None else options.cache_bytes,
        )
        if options.keep is not None:
            keep = options.keep
            shards = shards.select(lambda sample: keep(int(sample["__key__"])))
        if options.shuffle:
            shards = shards.shuffle(SHUFFLE_BUFFER)
        self._loader = wds.WebLoader(
            shards.map(partial(decoded, what=options.what)).batched(
                options.batch_size, collation_fn=partial(batch_of, what=options.what)
            ),
            batch_size=None,
            num_workers=options.threads,
            prefetch_factor=options.prefetch if options.threads else None,
            persistent_workers=options.threads > 0,
        )

    def epoch(self) -> Iterator[Batch]:
        yield from self._loader


def address(place: str) -> str:
    """A folder, or what its `curl` can read of a bucket that is public."""
    if not place.startswith("s3://"):
        return place
    return f"{os.environ['AWS_ENDPOINT_URL']}/{place.removeprefix('s3://')}"


def decoded(sample: dict[str, Any], what: What) -> tuple[int, Any]:
    key = int(sample["__key__"])
    return key, decode_in_worker(sample["jpg"], what, key)


RIVAL = Rival(
    title="WebDataset",
    distributions=("webdataset", "torch"),
    pages=(
        "https://webdataset.github.io/webdataset/webdataset/",
        "https://github.com/tmbdev/wds-distributed",
        "https://github.com/webdataset/webdataset/issues/271",
    ),
    chosen="eight shards, all shuffled, a buffer of 1,000 samples before they are decoded, batches "
    "made in the workers, which stay",
    pack=pack,
    loader=Images,
)
