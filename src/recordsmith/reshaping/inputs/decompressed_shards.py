"""Decompress shards to temporary files for random access.

The files lie in the hidden folder of the output and are removed with other unfinished files. Where
the output cannot rename, they lie where this process has its temporary files.
"""

from __future__ import annotations

from collections.abc import Callable

from recordsmith.dataset.decompressing import decompress
from recordsmith.dataset.names import INTERNAL_FOLDER, PARTIAL_SUFFIX
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.inputs.input_shards import Inputs, InputShard
from recordsmith.stores import Location, as_folder
from recordsmith.stores.local.scratch import ScratchFolder
from recordsmith.wire import RecordBlock
from recordsmith.work import Work


def open_records(
    inputs: Inputs, folder: Location, work: Work, *, is_shared: bool = False
) -> tuple[InputRecords, list[str]]:
    """Return the records of all inputs, decompressed if necessary, and notices.

    Args:
        is_shared: whether other machines read the decompressed files as well.

    Raises:
        CorruptDataError: a shard is damaged, or its number of records differs from the manifest.
        FileAccessError: a shard cannot be read, or the disk is full.
    """
    packed = [shard for shard in inputs.shards if shard.compression != "none"]
    work.total += sum(shard.size_bytes for shard in packed)
    is_in_folder = folder.store.can_rename or is_shared or not packed
    scratch = None if is_in_folder else ScratchFolder()
    internal = folder / INTERNAL_FOLDER if scratch is None else as_folder(scratch.path)
    unpacked = {
        shard.number: internal / f"unpacked-{shard.number}{PARTIAL_SUFFIX}" for shard in packed
    }
    notices = [*inputs.notices]
    for found in work.each(
        lambda shard: _unpack(shard, unpacked[shard.number], work.advance), packed
    ):
        notices += found
    return InputRecords(inputs.shards, unpacked, work, scratch=scratch), notices


def _unpack(shard: InputShard, target: Location, advance: Callable[[int], None]) -> list[str]:
    """Write the records of a compressed shard to `target`; return notices."""

    def put(block: RecordBlock) -> None:
        plain.write(block.frames())

    with target.open_write(is_durable=False) as plain:
        return decompress(shard.location, shard.compression, shard.record_count, put, advance)
