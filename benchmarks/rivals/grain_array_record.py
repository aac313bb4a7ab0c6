"""grain: ArrayRecord files, `MapDataset`, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from decode import batch_of, decode
from rival import Batch, Loader, Options, Photo, Rival, UnsupportedError, key_and_image, with_key


def pack(photos: Sequence[Photo], out: Path) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    out.mkdir(exist_ok=True)
    for number in range(8):
        writer = ArrayRecordWriter(
            str(out / f"train-{number:05d}-of-00008.array_record"), "group_size:1,uncompressed"
        )
        for photo in photos[number::8]:
            writer.write(with_key(photo))
        writer.close()


def source(place: str) -> Any:
    import grain

    if "://" in place:
        raise UnsupportedError("reads local files")
    return grain.sources.ArrayRecordDataSource(sorted(map(str, Path(place).glob("*.array_record"))))


class Images(Loader):
    """`MapDataset` to `IterDataset`, an epoch at a time."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._source = source(options.place)
        self._epoch = 0
        self._iterator: Any = None
        self._state: Any = None

    def epoch(self) -> Iterator[Batch]:
        self._iterator = iter(self._dataset())
        if self._state is not None:
            self._iterator.set_state(self._state)
            self._state = None
        yield from self._iterator
        self._epoch += 1

    def _dataset(self) -> Any:
        import grain

        options = self._options
        dataset = grain.MapDataset.source(self._source).seed(options.seed + self._epoch)
        if options.shuffle:
            dataset = dataset.shuffle()
        dataset = dataset[options.rank :: options.world_size].map(key_and_image)
        if options.keep is not None:
            keep = options.keep
            dataset = dataset.filter(lambda sample: keep(sample[0]))
        if options.what == "crops":
            dataset = dataset.random_map(
                lambda sample, rng: (sample[0], decode(sample[1], "crops", rng))
            )
        else:
            dataset = dataset.map(lambda sample: (sample[0], decode(sample[1], options.what)))
        reading = grain.ReadOptions(
            num_threads=options.threads,
            prefetch_buffer_size=options.threads * options.prefetch * options.batch_size,
        )
        batch = partial(batch_of, what=options.what)
        return dataset.to_iter_dataset(reading).batch(options.batch_size, batch_fn=batch)

    def state(self) -> Any:
        return {"epoch": self._epoch, "iterator": self._iterator.get_state()}

    def load(self, state: Any) -> None:
        self._epoch, self._state = state["epoch"], state["iterator"]


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    records = source(place)

    def read(positions: Sequence[int]) -> list[bytes]:
        return [bytes(key_and_image(record)[1]) for record in records.__getitems__(positions)]

    return read


RIVAL = Rival(
    title="grain, ArrayRecord",
    distributions=("grain", "array_record"),
    pages=(
        "https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
        "https://github.com/google/array_record/blob/main/docs/core_concepts.md",
    ),
    chosen="one record a group, not compressed, as advised for random access and JPEG files; a "
    "global shuffle; threads of ReadOptions",
    pack=pack,
    loader=Images,
    reader=reader,
)
