"""Writes shards under temporary names and verifies them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from recordsmith.building.finished import (
    ShardResult,
    load_result,
    partial_location,
    save_result,
)
from recordsmith.dataset import ShardWriter
from recordsmith.errors import CorruptDataError, Defect, FileAccessError
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.stores import Location
from recordsmith.wire import Compression

_Result = TypeVar("_Result")


@contextmanager
def open_partial_shard(
    folder: Location, file: str, compression: Compression
) -> Iterator[ShardWriter]:
    """Open a writer for a shard that ends at `partial_location`, together with its index.

    Leaves no file if the block discards the writer or raises.
    """
    writer = ShardWriter(
        folder / file, compression=compression, temporary=partial_location(folder, file)
    )
    try:
        yield writer
        if writer.is_open:
            pieces = _undisturbed(folder, writer.index_pieces)
            partial_location(folder, f"{file}.index").put(pieces)
            writer.publish()
    except BaseException:
        writer.discard()
        raise


def complete_shard(
    folder: Location,
    file: str,
    compression: Compression,
    write: Callable[[ShardWriter], tuple[ShardResult, str | None]],
    *,
    fingerprint: str,
    versions: Callable[[], str | None],
    trusting: bool,
    keeps_skipped: bool = True,
) -> tuple[ShardResult, bool]:
    """Write one shard under its temporary name and note it, unless it is already complete.

    Args:
        write: writes the records; returns the result and the hash of the samples' versions.
        fingerprint, versions, trusting, keeps_skipped: as in `load_result`.

    Returns:
        The result, and whether the shard was written now.
    """
    result = load_result(
        folder, fingerprint, versions, file, trusting=trusting, keeps_skipped=keeps_skipped
    )
    if result is not None:
        return result, False
    with open_partial_shard(folder, file, compression) as writer:
        result, found = write(writer)
    result = replace(result, plan=fingerprint)
    save_result(folder, found, result)
    return result, True


def _undisturbed(place: Location, read: Callable[[], _Result]) -> _Result:
    """Read a shard again if a job of the same plan writes it meanwhile, with the same bytes."""
    while True:
        try:
            return read()
        except FileAccessError as error:
            if place.store.can_rename or error.errno != errno.ESTALE:
                raise


def survey_written(writer: ShardWriter) -> Schema:
    """Verify every checksum of a written shard, and return its schema."""
    writer.seal()
    return _undisturbed(writer.location, lambda: _survey(writer))


def _survey(writer: ShardWriter) -> Schema:
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
            path=writer.location,
        )
    return survey.finish()
