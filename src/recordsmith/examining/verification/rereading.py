"""Reads bytes again, bypassing the page cache, to distinguish bad memory from a damaged file.

A bad bit in the page cache looks like a damaged file. Before a file is reported as damaged, its
bytes are read again from the device.
"""

from __future__ import annotations

from recordsmith.errors import CorruptDataError, DataError, Defect
from recordsmith.stores import ObjectReader

LONGEST_BYTES = 256 << 20
"""Longer ranges are not read a second time."""

WRONG_TWICE = "A second read that bypassed the page cache returned the same error."
BEING_WRITTEN = "Another program is writing it; verify it again when that program is done."


def transient(what: str, record: int | None, offset: int | None) -> DataError:
    """Make the notice for bytes that were right when read again; `what` was wrong at first."""
    return CorruptDataError(
        Defect.TRANSIENT_READ,
        f"{what}; a second read that bypassed the page cache was right, so the file is intact",
        remedy="If this happens again, test the memory, cables and disk of this machine.",
        record=record,
        offset=offset,
    )


def read_again(file: ObjectReader, start: int, stop: int) -> bytes | None:
    """Read bytes start:stop of an object, bypassing all caches; None if that fails.

    Returns fewer bytes if the object ends earlier.
    """
    return None if stop - start > LONGEST_BYTES else file.read_uncached(start, stop)
