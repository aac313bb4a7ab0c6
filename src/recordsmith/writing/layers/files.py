"""Writes the files of a layer: for each shard, one with as many Examples."""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.dataset import Shard, ShardEntry
from recordsmith.format.example import Schema
from recordsmith.stores import Location
from recordsmith.support.buffers import offsets_from_lengths
from recordsmith.support.work import WorkerPool
from recordsmith.writing.building.publishing import move_new_files
from recordsmith.writing.building.shards import open_partial_shard, survey_written
from recordsmith.writing.layers.joining import JoinedRows


def write_layer(
    folder: Location,
    files: Sequence[str],
    shards: Sequence[Shard],
    joined: JoinedRows,
    workers: WorkerPool,
) -> list[tuple[ShardEntry, Schema]]:
    """Write the values of a table for the records of some shards to files of these names.

    Returns the entry and the schema of each.
    """
    starts = offsets_from_lengths([shard.record_count for shard in shards]).tolist()

    def write(number: int) -> tuple[ShardEntry, Schema]:
        with open_partial_shard(folder, files[number], "none") as writer:
            for data, offsets in joined.blocks(starts[number], starts[number + 1]):
                writer.write_slices(data, offsets)
                workers.check()
            schema = survey_written(writer, joined.features)
            return writer.entry(), schema.packed()

    written = workers.each(write, range(len(shards)))
    move_new_files(folder, files)
    return written
