"""Writes the files of layers: one for each shard, named by its bytes and the job."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from recordsmith.dataset import Layer, ShardEntry
from recordsmith.format.example import Schema
from recordsmith.stores import Location
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import OptionError
from recordsmith.writing.building.shards import open_partial_shard, survey_written


def layer_file(shard: ShardEntry, job: str) -> str:
    """The name of the file of a layer for a shard, as one job writes it."""
    return f"{shard.crc32c:08x}-{shard.size_bytes}-{job[:8]}.tfrecord"


def write_layer_file(
    folder: Location,
    shard: ShardEntry,
    job: str,
    pieces: Iterable[tuple[BytesLike, Int64Array]],
    features: Collection[str],
) -> tuple[ShardEntry, Schema]:
    """Write the file of a layer for a shard under its temporary name.

    Args:
        folder: of the layer.
        pieces: (data, offsets) of its Examples, in the order of the records.

    Returns:
        Its entry, and the schema of its Examples.
    """
    with open_partial_shard(folder, layer_file(shard, job), "none") as writer:
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
