"""Read files that are compressed with gzip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, cast

from recordsmith.errors import CorruptDataError, Defect, accessing, located
from recordsmith.stores import Location
from recordsmith.wire.compression import GZIP_MAGIC, Inflater

_PIECE_BYTES = 1 << 20


def is_gzip(location: Location) -> bool:
    """Whether a file is compressed with gzip, by its first bytes."""
    return location.read(0, len(GZIP_MAGIC)) == GZIP_MAGIC


def inflated(location: Location) -> Iterator[bytes]:
    """Decompress a gzip file in pieces."""
    name = str(location)
    with location.open_read() as file, located(name), accessing(name):
        inflater = Inflater(cast(BinaryIO, file), "gzip")
        while piece := inflater.read(_PIECE_BYTES):
            yield piece
        if not inflater.is_complete:
            raise CorruptDataError(
                Defect.TRUNCATED_COMPRESSION,
                "the compressed file is truncated",
                remedy="Fetch the file again.",
            )
