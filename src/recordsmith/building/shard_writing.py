"""Write a shard to where it waits for its name, and prove it: its bytes, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recordsmith.building.finished import (
    ShardResult,
    complete_result,
    done_path,
    keep_result,
    partial_path,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.files import publish, remove, temporary_name, write_atomically
from recordsmith.wire import Compression


@contextmanager
def writing_partial(folder: Path, file: str, compression: Compression) -> Iterator[ShardWriter]:
    """A writer for a shard; when the block ends, the shard lies, with its index, at `partial_path`.

    Nothing is left of one that the block discards, or in which it fails.
    """
    partial = partial_path(folder, file)
    writer = ShardWriter(
        folder / file,
        compression=compression,
        overwrite=True,
        temporary=temporary_name(partial),  # two may write the same shard at once
    )
    try:
        yield writer
        if writer.is_open:
            write_atomically(partial_path(folder, f"{file}.index"), writer.index_pieces())
            publish(writer.release(), partial)
    except BaseException:
        writer.discard()
        raise


def complete_shard(
    folder: Path,
    file: str,
    compression: Compression,
    write: Callable[[ShardWriter], tuple[ShardResult, str | None]],
    *,
    fingerprint: str,
    versions: Callable[[], str | None],
    trusting: bool,
) -> tuple[ShardResult, bool]:
    """Write one shard under its temporary name and note that it is done, unless that is so already.

    Args:
        write: writes the records, and answers what came of them and the hash of their versions.
        fingerprint, versions, trusting: as in `complete_result`.

    Returns:
        What came of the shard, and whether it was written now.
    """
    result = complete_result(folder, fingerprint, versions, file, trusting=trusting)
    if result is not None:
        return result, False
    remove(done_path(folder, file))
    with writing_partial(folder, file, compression) as writer:
        result, found = write(writer)
    keep_result(folder, fingerprint, found, result)
    return result, True


def read_back(writer: ShardWriter) -> Schema:
    """Prove what was written, every checksum, and count its features."""
    survey = SchemaSurvey()
    records = 0
    for block in writer.written_blocks():
        survey.update(block.buffer, block.starts, block.lengths)
        records += len(block)
    if records != writer.record_count:
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            f"{writer.record_count} records were written, {records} came back; the disk or its "
            "file system is failing",
            path=writer.path,
        )
    return survey.finish()
