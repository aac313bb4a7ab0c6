"""Writes shards under temporary names, and verifies those of this and of other processes."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from recordsmith.building.finished import (
    ShardResult,
    done_location,
    load_result,
    partial_location,
    save_result,
)
from recordsmith.building.publishing import for_each
from recordsmith.dataset import Manifest, ShardWriter, read_publish_note
from recordsmith.dataset.documents import NOT_AS_EXPECTED
from recordsmith.dataset.names import INTERNAL_FOLDER, PARTIAL_SUFFIX
from recordsmith.errors import CorruptDataError, Defect, FileAccessError, MissingFileError
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.stores import Location, read_note
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
        result, versions_hash = write(writer)
    result = replace(result, plan=fingerprint)
    save_result(folder, versions_hash, result)
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


# -- shards of other processes: another job may have written one of the same name and size -------


def check_written(
    folder: Location, results: Sequence[ShardResult], earlier: Manifest | None
) -> None:
    """Check shards by their notes and sizes, without reading them.

    Args:
        earlier: the manifest in the folder, which may be that of the same plan.
    """
    internal = folder / INTERNAL_FOLDER
    final, waiting = (
        {name: size for name, _, size, *_ in place.list_entries()} if place.is_folder() else {}
        for place in (folder, internal)
    )
    published = set()
    if earlier is not None:
        published = {(earlier.last_fingerprint, shard) for shard in earlier.shards}
    begun = read_publish_note(folder)
    renamed_plan = None if begun is None else begun.fingerprint  # of a job that was killed

    def check(result: ShardResult) -> None:
        size = waiting.get(f"{result.file}{PARTIAL_SUFFIX}")
        if size is None:  # it may have its final name already
            size = final.get(result.file)
            if size == result.size_bytes and (result.plan, result.entry) in published:
                return  # the note was removed when it was published
            if folder.store.can_rename and renamed_plan != result.plan:
                raise _missing(folder, result)
        if size != result.size_bytes or not _is_noted(folder, result):
            raise _missing(folder, result)

    for_each(results, check, folder)


def _is_noted(folder: Location, result: ShardResult) -> bool:
    """Whether the note of a shard is about this result."""
    try:
        note = json.loads(read_note(done_location(folder, result.file)))
        noted = (note["plan"], note["size_bytes"], note["crc32c"])
    except (MissingFileError, *NOT_AS_EXPECTED):
        return False
    return noted == (result.plan, result.size_bytes, result.crc32c)


def _missing(folder: Location, result: ShardResult) -> FileAccessError:
    return FileAccessError(
        errno.ENOENT,
        "a worker has written it, but it is not here",
        str(folder / result.file),
        remedy="All machines must see the folder of the dataset under the same path. Run the task "
        "again if the file was removed or another job replaced it.",
    )
