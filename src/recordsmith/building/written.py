"""Checks that the shards in a folder are those which other processes reported.

Another job may have written a shard of the same name and size, now or earlier.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence

from recordsmith.building.finished import (
    ShardResult,
    done_location,
    partial_location,
    size_and_checksum,
)
from recordsmith.building.publishing import for_each
from recordsmith.dataset import Manifest, read_publish_note
from recordsmith.dataset.documents import NOT_AS_EXPECTED
from recordsmith.dataset.names import INTERNAL_FOLDER, PARTIAL_SUFFIX
from recordsmith.errors import FileAccessError, MissingFileError
from recordsmith.stores import Location, read_note
from recordsmith.work import Work


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


def check_written_bytes(folder: Location, results: Sequence[ShardResult], work: Work) -> None:
    """Check unpublished shards that have no notes, by their bytes; raises as `check_written`."""

    def check(result: ShardResult) -> None:
        try:
            found = size_and_checksum(partial_location(folder, result.file))
        except MissingFileError:
            found = None
        if found != (result.size_bytes, result.crc32c):
            raise _missing(folder, result)

    work.each(check, results)


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
