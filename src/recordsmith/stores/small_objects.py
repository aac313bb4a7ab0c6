"""Small objects, which are read and written whole: documents of users, and our own notes."""

from __future__ import annotations

import errno

from recordsmith.errors import FileAccessError
from recordsmith.stores.checks import check_writable, exists_error
from recordsmith.stores.location import PlaceLike, as_location
from recordsmith.stores.object_writer import Data
from recordsmith.stores.store import NO_OBJECT

DOCUMENT_BYTES = 1 << 26
"""The size limit of documents that users write: label maps, schemas, lists of names."""

NOTE_BYTES = 1 << 28
"""The size limit of files that recordsmith writes: twice the manifest of a million shards."""


def read_document(place: PlaceLike, most_bytes: int | None = None) -> bytes:
    """Read a small document, also from a pipe.

    Args:
        most_bytes: the size limit; None means DOCUMENT_BYTES.
    """
    most = DOCUMENT_BYTES if most_bytes is None else most_bytes
    location = as_location(place)
    data = location.read(0, most + 1)
    if len(data) > most:
        raise FileAccessError(
            errno.EFBIG,
            f"it is larger than {most / (1 << 20):,.3g} MiB, the limit for this kind of file",
            str(location),
            remedy="Check that it is the right file.",
        )
    return data


def read_existing(place: PlaceLike, most_bytes: int | None = None) -> bytes | None:
    """Read a small document in one request; None if it does not exist."""
    location = as_location(place)
    # a local one may be a pipe without a writer, which would block
    if not location.store.is_remote and not location.exists():
        return None
    try:
        return read_document(location, most_bytes)
    except FileAccessError as error:
        if error.errno not in NO_OBJECT:
            raise
        return None


def read_note(place: PlaceLike) -> bytes:
    """Read a file that recordsmith wrote: a regular file, not a symbolic link."""
    return read_document(as_location(place).without_links(), NOTE_BYTES)


def write_atomically(place: PlaceLike, data: Data, *, overwrite: bool = True) -> None:
    """Write an object from bytes or from pieces end to end; it appears whole or not at all.

    Safe when several processes write the same object at once: one of them wins.
    """
    location = as_location(place)
    check_writable(location.store, str(location))
    if overwrite:
        location.put(data)
    elif not location.put_if_absent(data):
        raise exists_error(str(location))
