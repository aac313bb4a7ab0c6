"""LanceDB: a table of Lance, read by its `StreamingDataset`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from decode import batch_of, decode
from rival import Batch, Loader, Options, Photo, Rival

_TABLE = "photos"
_ROWS = 256


def pack(photos: Sequence[Photo], out: Path) -> None:
    import lancedb
    import pyarrow as pa

    schema = pa.schema({"key": pa.int64(), "image": pa.large_binary(), "label": pa.int64()})

    def batches() -> Iterator[Any]:
        for start in range(0, len(photos), _ROWS):
            chosen = photos[start : start + _ROWS]
            columns = [
                pa.array([photo.key for photo in chosen]),
                pa.array([photo.path.read_bytes() for photo in chosen], pa.large_binary()),
                pa.array([photo.label for photo in chosen]),
            ]
            yield pa.record_batch(columns, schema)

    lancedb.connect(out).create_table(_TABLE, batches(), schema=schema)


class Images(Loader):
    """Its own threads read and decode; batches are made of its rows."""

    def __init__(self, options: Options, num_splits: int | None = None) -> None:
        """num_splits: one for each rank if None, as by default."""
        import lancedb

        self._options, self._num_splits = options, num_splits
        self._table = lancedb.connect(options.place).open_table(_TABLE)
        self._filter = None
        if options.keep is not None:  # filters are SQL
            keys = self._table.to_lance().to_table(["key"])["key"].to_pylist()
            self._filter = f"key IN ({', '.join(map(str, filter(options.keep, keys)))})"
        self._epoch, self._dataset = 0, self._make(0)

    def _make(self, epoch: int) -> Any:
        from lancedb.streaming import StreamingDataset

        options = self._options
        return StreamingDataset(
            self._table,
            num_splits=self._num_splits,
            shuffle=options.shuffle,
            shuffle_seed=options.seed,
            epoch=epoch,
            rank=options.rank,
            world_size=options.world_size,
            io_queue_depth=options.prefetch,
            columns=["key", "image"],
            filter=self._filter,
            transform=self._decode,
            transform_parallelism=options.thread_count,
        )

    def epoch(self) -> Iterator[Batch]:
        from torch.utils.data import DataLoader

        batch = partial(batch_of, what=self._options.what)
        yield from DataLoader(self._dataset, self._options.batch_size, collate_fn=batch)
        self._epoch += 1
        self._dataset = self._make(self._epoch)

    def _decode(self, rows: Any) -> list[tuple[int, Any]]:
        import numpy as np

        what = self._options.what
        keys = rows["key"].to_pylist()
        rng = np.random.default_rng([self._options.seed, self._epoch, keys[0]])
        images = [
            decode(memoryview(image.as_buffer()).cast("B"), what, rng) for image in rows["image"]
        ]
        return list(zip(keys, images, strict=True))

    def state(self) -> Any:
        return {"epoch": self._epoch, "dataset": self._dataset.state_dict()}

    def load(self, state: Any) -> None:
        self._epoch = state["epoch"]
        self._dataset = self._make(self._epoch)
        self._dataset.load_state_dict(state["dataset"])

    def load_other_ranks(self, states: Sequence[Any]) -> None:
        merge = self._dataset.merge_state_dicts
        self.load({**states[0], "dataset": merge([state["dataset"] for state in states])})


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    import lance

    table = lance.dataset(f"{place}/{_TABLE}.lance")

    def read(positions: Sequence[int]) -> list[bytes]:
        return table.take(list(positions), columns=["image"])["image"].to_pylist()  # type: ignore[no-any-return]

    return read


RIVAL = Rival(
    title="LanceDB, StreamingDataset",
    distributions=("lancedb", "pylance"),
    pages=("https://docs.lancedb.com/training/data-loading",),
    chosen="its threads, no worker processes; a global shuffle of single rows, its default",
    pack=pack,
    loader=Images,
    reader=reader,
)
