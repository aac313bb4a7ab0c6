"""Writes the files of layers: for each shard, one with as many Examples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from recordsmith.dataset import Layer, Shard, ShardEntry
from recordsmith.format.example import Schema
from recordsmith.stores import Location
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.publishing import move_new_files
from recordsmith.writing.building.shards import open_partial_shard, survey_written
from recordsmith.writing.layers.joining import JoinedRows


def layer_file(shard: ShardEntry, job: str) -> str:
    """The name of the file of a layer for a shard, as one job writes it."""
    return f"{shard.crc32c:08x}-{shard.size_bytes}-{job[:8]}.tfrecord"


def write_layer(
    folder: Location,
    files: Sequence[str],
    shards: Sequence[Shard],
    joined: JoinedRows,
    workers: WorkerPool,
) -> list[tuple[ShardEntry, Schema]]:
    """Write the values of a table for the records of some shards to files of these names.

    Shards that share a file have no records. Returns the entry and the schema of each shard.
    """
    starts = offsets_from_lengths([shard.record_count for shard in shards]).tolist()
    numbers = {file: number for number, file in enumerate(files)}

    def pieces(number: int) -> Iterator[tuple[BytesLike, Int64Array]]:
        for piece in joined.blocks(starts[number], starts[number + 1]):
            yield piece
            workers.check()

    def write(file: str) -> tuple[ShardEntry, Schema]:
        return write_layer_file(folder, file, pieces(numbers[file]), joined.features)

    written = dict(zip(numbers, workers.each(write, numbers), strict=True))
    move_new_files(folder, numbers)
    return [written[file] for file in files]


def write_layer_file(
    folder: Location,
    file: str,
    pieces: Iterable[tuple[BytesLike, Int64Array]],
    features: Collection[str],
) -> tuple[ShardEntry, Schema]:
    """Write one file of a layer under its temporary name.

    Args:
        folder: of the layer.
        pieces: (data, offsets) of its Examples, in the order of the records.

    Returns:
        Its entry, and the schema of its Examples.
    """
    with open_partial_shard(folder, file, "none") as writer:
        for data, offsets in pieces:
            writer.write_slices(data, offsets)
        schema = survey_written(writer, features)
        return writer.entry(), schema.packed()


def check_apart(
    folder: Location, shards: Iterable[ShardEntry], keys: Collection[tuple[int, int]]
) -> None:
    """Raise OptionError if a layer with these shards belongs to two of the dataset, as one."""
    known: dict[tuple[int, int], ShardEntry] = {}
    for shard in shards:
        if shard.key in keys and shard.record_count and known.setdefault(shard.key, shard) != shard:
            raise OptionError(
                f"{known[shard.key].file} and {shard.file} have the same bytes, so a layer cannot "
                "tell them apart",
                option="path",
                value=str(folder),
                remedy="Write the dataset again with `recordsmith reshard`, which makes its layers "
                "part of the records.",
            )


def layers_over(layers: Iterable[Layer], records: Schema) -> tuple[Layer, ...]:
    """Return layers after a dataset got records that may have their features themselves."""

    def over(layer: Layer) -> Layer:
        hidden = {*layer.hidden, *records.columns}
        kept = tuple(key for key in layer.features if key in hidden)
        return msgspec.structs.replace(layer, hidden=kept)

    return tuple(map(over, layers))
