"""Stores: where objects are kept, and how they are read and written.

An object is a file, or its equivalent in a store without files. Everything above reads and writes
objects through a `Location`: a store and a key in it.
"""

from recordsmith.stores.folder_writer import FolderWriter
from recordsmith.stores.local import LocalStore, read_file
from recordsmith.stores.location import (
    Location,
    PlaceLike,
    as_folder,
    as_location,
    as_place,
)
from recordsmith.stores.memory import MemoryStore
from recordsmith.stores.small_objects import (
    NOTE_BYTES,
    check_target,
    read_document,
    read_note,
    write_atomically,
)
from recordsmith.stores.store import (
    Data,
    FolderContents,
    FolderEntry,
    ObjectInfo,
    ObjectReader,
    ObjectWriter,
    Range,
    Store,
    check_key,
)

__all__ = [
    "NOTE_BYTES",
    "Data",
    "FolderContents",
    "FolderEntry",
    "FolderWriter",
    "LocalStore",
    "Location",
    "MemoryStore",
    "ObjectInfo",
    "ObjectReader",
    "ObjectWriter",
    "PlaceLike",
    "Range",
    "Store",
    "as_folder",
    "as_location",
    "as_place",
    "check_key",
    "check_target",
    "read_document",
    "read_file",
    "read_note",
    "write_atomically",
]
