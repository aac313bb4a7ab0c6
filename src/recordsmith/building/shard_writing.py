"""Writes shards under temporary names and verifies them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recordsmith.building.finished import (
    ShardResult,
    done_path,
    load_result,
    partial_path,
    save_result,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.files import publish, remove, temporary_name
from recordsmith.stores import write_atomically
from recordsmith.wire import Compression


@contextmanager
def open_partial_shard(folder: Path, file: str, compression: Compression) -> Iterator[ShardWriter]:
    """Open a writer for a shard that ends at `partial_path`, together with its index.

    Leaves no file if the block discards the writer or raises.
    """
    partial = partial_path(folder, file)
    writer = ShardWriter(
        folder / file,
        compression=compression,
        overwrite=True,
        temporary=temporary_name(partial),  # two processes may write the same shard
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
    """Write one shard under its temporary name and note it, unless it is already complete.

    Args:
        write: writes the records; returns the result and the hash of the samples' versions.
        fingerprint, versions, trusting: as in `load_result`.

    Returns:
        The result, and whether the shard was written now.
    """
    result = load_result(folder, fingerprint, versions, file, trusting=trusting)
    if result is not None:
        return result, False
    remove(done_path(folder, file))
    with open_partial_shard(folder, file, compression) as writer:
        result, found = write(writer)
    save_result(folder, fingerprint, found, result)
    return result, True


def survey_written(writer: ShardWriter) -> Schema:
    """Verify every checksum of a written shard, and return its schema."""
    survey = SchemaSurvey()
    records = 0
    for block in writer.written_blocks():
        survey.update(block.buffer, block.starts, block.lengths)
        records += len(block)
    if records != writer.record_count:
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            "the file does not have as many records as were written",
            found=str(records),
            expected=str(writer.record_count),
            remedy="The disk or its file system is failing.",
            path=writer.path,
        )
    return survey.finish()
