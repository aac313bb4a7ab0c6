"""Hugging Face datasets: Parquet files, streamed through a shuffle buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hf_arrow import collate, dataset_of
from rival import Batch, Loader, Options, Photo, Rival

_BUFFER = 1_000


def pack(photos: Sequence[Photo], out: Path) -> None:
    import datasets
    from datasets.table import embed_table_storage

    datasets.disable_progress_bars()
    out.mkdir(exist_ok=True)
    dataset = dataset_of(photos)
    for number in range(8):  # the files are embedded as `push_to_hub` does
        shard = dataset.shard(8, number).with_format("arrow")
        embedded = shard.map(embed_table_storage, batched=True, batch_size=100, keep_in_memory=True)
        embedded.to_parquet(out / f"train-{number:05d}-of-00008.parquet")


class Images(Loader):
    """`StatefulDataLoader`, as the documentation says for what resumes."""

    def __init__(self, options: Options) -> None:
        import datasets
        from datasets.distributed import split_dataset_by_node
        from torchdata.stateful_dataloader import StatefulDataLoader

        files = f"{options.place}/*.parquet"
        dataset = datasets.load_dataset(
            "parquet", data_files=files, split="train", streaming=True, columns=["key", "image"]
        )
        dataset = dataset.cast_column("image", datasets.Image(decode=False))
        if options.world_size > 1:
            dataset = split_dataset_by_node(dataset, options.rank, options.world_size)
        if options.shuffle:
            # The default of 10 gives all of fewer than 20 files to one worker, and ends each epoch
            # with a sleep of 5 s.
            dataset = dataset.shuffle(options.seed, buffer_size=_BUFFER, max_buffer_input_shards=1)
        if options.keep is not None:
            dataset = dataset.filter(options.keep, input_columns="key")
        self._dataset = dataset
        self._loader = StatefulDataLoader(
            dataset,
            options.batch_size,
            num_workers=options.threads,
            prefetch_factor=options.prefetch if options.threads else None,
            persistent_workers=options.threads > 0,
            collate_fn=partial(collate, what=options.what, seed=options.seed),
        )
        self._epoch = 0

    def epoch(self) -> Iterator[Batch]:
        self._dataset.set_epoch(self._epoch)
        yield from self._loader
        self._epoch += 1

    def state(self) -> Any:
        return {"epoch": self._epoch, "loader": self._loader.state_dict()}

    def load(self, state: Any) -> None:
        self._epoch = state["epoch"]
        self._loader.load_state_dict(state["loader"])


RIVAL = Rival(
    title="Hugging Face datasets, Parquet streamed",
    distributions=("datasets", "pyarrow", "torchdata"),
    pages=(
        "https://huggingface.co/docs/datasets/use_with_pytorch",
        "https://huggingface.co/docs/datasets/stream",
        "https://github.com/huggingface/datasets/issues/8669",
    ),
    chosen=f"8 files, shuffled, and a buffer of {_BUFFER:,} in each worker, filled from one file "
    "at a time, as the default of 10 leaves workers without files; StatefulDataLoader",
    pack=pack,
    loader=Images,
)
