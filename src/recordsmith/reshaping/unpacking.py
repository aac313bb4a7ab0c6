"""A compressed shard -> a plain temporary file, so that any of its records can be read.

The file lies in the hidden folder of the dataset that is written, under a name that goes with
whatever is unfinished there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recordsmith.building import partial_path
from recordsmith.errors import CorruptDataError, Defect, located
from recordsmith.files import accessing, open_file
from recordsmith.reshaping.inputs import Inputs, InputShard
from recordsmith.reshaping.records import Records
from recordsmith.wire import read_blocks
from recordsmith.work import Work


def unpacked_path(folder: Path, shard: InputShard) -> Path:
    """Where the records of a compressed shard wait while the dataset in `folder` is written."""
    return partial_path(folder, f".unpacked-{shard.number}")


def unpack(shard: InputShard, target: Path, advance: Callable[[int], None]) -> list[str]:
    """Write the records of a compressed shard to `target`; answers what should be known.

    Args:
        advance: told how many more bytes of the compressed file are dealt with.

    Raises:
        CorruptDataError: the shard is damaged, or has not as many records as its manifest says.
            One without its end mark is read to where it ends, and that is told.
        FileAccessError: it cannot be read, or the disk is full.
    """
    notices: list[str] = []

    def hear(error: CorruptDataError) -> None:
        if error.defect is not Defect.TRUNCATED_COMPRESSION:
            raise error
        error.path = str(shard.path)
        notices.append(str(error))

    with accessing(target, "write"):
        plain = open(target, "wb", buffering=0)  # noqa: SIM115 - closed below
    record_count = told = 0
    with plain, open_file(shard.path) as file, located(shard.path), accessing(shard.path):
        for block in read_blocks(file, compression=shard.compression, on_defect=hear):
            frames = block.frames()
            with accessing(target, "write"):
                while frames:
                    frames = frames[plain.write(frames) :]
            record_count += len(block)
            at = file.tell()
            advance(at - told)
            told = at
    if shard.record_count not in (None, record_count):
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            f"the shard has {record_count} records, its manifest says {shard.record_count}: it was "
            "changed after it was packed. Fetch it again.",
            path=shard.path,
        )
    return notices


def opened(inputs: Inputs, folder: Path, work: Work) -> tuple[Records, list[str]]:
    """The records of all inputs, compressed ones unpacked; and what should be known of them."""
    packed = [shard for shard in inputs.shards if shard.compression != "none"]
    work.total += sum(shard.size_bytes for shard in packed)
    unpacked = {shard.number: unpacked_path(folder, shard) for shard in packed}

    def unpack_one(shard: InputShard) -> list[str]:
        return unpack(shard, unpacked[shard.number], work.advance)

    notices = [*inputs.notices]
    for heard in work.each(unpack_one, packed):
        notices += heard
    records = Records(inputs.shards, unpacked, lambda measure: work.each(measure, inputs.shards))
    return records, notices
