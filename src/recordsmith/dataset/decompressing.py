"""All records of a compressed shard, for who keeps them where any of them can be read.

A shard without its end mark is read to where it ends, as TensorFlow reads it; but that is told.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recordsmith.errors import CorruptDataError, Defect, located
from recordsmith.files import accessing, open_file
from recordsmith.wire import Compression, RecordBlock, read_blocks


def decompress(
    path: Path,
    compression: Compression,
    record_count: int | None,
    put: Callable[[RecordBlock], None],
    advance: Callable[[int], None] = lambda _: None,
) -> list[str]:
    """Hand all records of a compressed shard to `put`, block by block.

    Args:
        record_count: how many its manifest says that there are; None: not told.
        advance: told how many more bytes of the file are dealt with.

    Returns:
        What should be known of it, in words.

    Raises:
        CorruptDataError: the shard is damaged, or has not as many records as its manifest says.
        FileAccessError: it cannot be read.
    """
    notices: list[str] = []

    def hear(error: CorruptDataError) -> None:
        if error.defect is not Defect.TRUNCATED_COMPRESSION:
            raise error
        error.path = str(path)
        notices.append(str(error))

    seen = told = 0
    with open_file(path) as file, located(path), accessing(path):
        for block in read_blocks(file, compression=compression, on_defect=hear):
            put(block)
            seen += len(block)
            at = file.tell()
            advance(at - told)
            told = at
    if record_count not in (None, seen):
        raise CorruptDataError(
            Defect.RECORD_COUNT,
            f"the shard has {seen} records, its manifest says {record_count}: it was changed "
            "after it was packed. Fetch it again.",
            path=path,
        )
    return notices
