"""A compressed shard -> a plain temporary file, so that any of its records can be read.

The file lies in the hidden folder of the dataset that is written, under a name that goes with
whatever is unfinished there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recordsmith.building import partial_path
from recordsmith.dataset.decompressing import decompress
from recordsmith.files import accessing
from recordsmith.reshaping.inputs import Inputs, InputShard
from recordsmith.reshaping.records import Records
from recordsmith.wire import RecordBlock
from recordsmith.work import Work


def open_records(inputs: Inputs, folder: Path, work: Work) -> tuple[Records, list[str]]:
    """The records of all inputs, compressed ones unpacked; and what should be known of them.

    Raises:
        CorruptDataError: a shard is damaged, or has not as many records as its manifest says.
        FileAccessError: one cannot be read, or the disk is full.
    """
    packed = [shard for shard in inputs.shards if shard.compression != "none"]
    work.total += sum(shard.size_bytes for shard in packed)
    unpacked = {shard.number: partial_path(folder, f".unpacked-{shard.number}") for shard in packed}
    notices = [*inputs.notices]
    for heard in work.each(
        lambda shard: _unpack(shard, unpacked[shard.number], work.advance), packed
    ):
        notices += heard
    return Records(inputs.shards, unpacked, work), notices


def _unpack(shard: InputShard, target: Path, advance: Callable[[int], None]) -> list[str]:
    """Write the records of a compressed shard to `target`; answers what should be known.

    `advance` is told how many more bytes of the compressed file are dealt with.
    """
    with accessing(target, "write"):
        plain = open(target, "wb", buffering=0)  # noqa: SIM115 - closed below

    def put(block: RecordBlock) -> None:
        frames = block.frames()
        with accessing(target, "write"):
            while frames:
                frames = frames[plain.write(frames) :]

    with plain:
        return decompress(shard.path, shard.compression, shard.record_count, put, advance)
