"""Reads all records of a compressed shard, for storage that supports random access.

A shard without its end mark is read to its end, as in TensorFlow, and a notice is returned.
"""

from __future__ import annotations

from collections.abc import Callable

from recordsmith.errors import CorruptDataError, DataError, Defect, accessing, located
from recordsmith.stores import Location
from recordsmith.wire import Compression, RecordBlock, read_blocks


def decompress(
    location: Location,
    compression: Compression,
    record_count: int | None,
    put: Callable[[RecordBlock], object],
    advance: Callable[[int], None] = lambda _: None,
) -> list[str]:
    """Pass all records of a compressed shard to `put`, block by block; return notices about it."""
    notices: list[str] = []

    def collect(error: DataError) -> None:
        if error.defect is not Defect.TRUNCATED_COMPRESSION:
            raise error
        error.path = str(location)
        notices.append(str(error))

    seen = reported = 0
    with location.open_read() as file, located(location), accessing(location):
        for block in read_blocks(file, compression=compression, on_defect=collect):
            put(block)
            seen += len(block)
            place = file.tell()
            advance(place - reported)
            reported = place
    if record_count not in (None, seen):
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            "the number of records differs from the manifest, because the shard has changed",
            found=str(seen),
            expected=str(record_count),
            remedy="Fetch it again.",
            path=location,
        )
    return notices
