"""Stores: where objects are kept, and how they are read and written.

An object is a file, or its equivalent in a store without files. Everything above reads and writes
objects through a `Location`: a store and a key in it.
"""

from recordsmith.stores.checks import busy_error, check_key, folder_error, no_lock_notice
from recordsmith.stores.folders import EXPORT_NOTE, FolderWriter, shared_folder, write_folder
from recordsmith.stores.local import LocalStore
from recordsmith.stores.location import (
    NOTE_BYTES,
    Location,
    PlaceLike,
    as_folder,
    as_location,
    as_place,
    is_url,
    read_document,
    read_existing,
    read_note,
    write_atomically,
    write_document,
)
from recordsmith.stores.memory import MemoryStore
from recordsmith.stores.object_reader import ObjectReader
from recordsmith.stores.object_writer import Data, ObjectWriter
from recordsmith.stores.parallel_reads import Range
from recordsmith.stores.store import FolderEntry, ObjectInfo, Store

__all__ = [
    "EXPORT_NOTE",
    "NOTE_BYTES",
    "Data",
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
    "busy_error",
    "check_key",
    "folder_error",
    "is_url",
    "no_lock_notice",
    "read_document",
    "read_existing",
    "read_note",
    "shared_folder",
    "write_atomically",
    "write_document",
    "write_folder",
]
