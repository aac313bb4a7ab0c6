"""Stores: where objects are kept, and how they are read and written.

An object is a file, or its equivalent in a store without files. Everything above reads and writes
objects through a `Location`: a store and a key in it.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "checks": (
            "busy_error check_key check_range check_version folder_error missing_error "
            "no_lock_notice"
        ),
        "folders": "EXPORT_NOTE FolderWriter shared_folder write_folder",
        "local.store": "LocalStore",
        "location": (
            "NOTE_BYTES Location PlaceLike as_folder as_location as_place is_url "
            "read_document read_existing read_note write_atomically write_document"
        ),
        "memory": "MemoryStore",
        "object_reader": "ObjectReader",
        "object_writer": "Data ObjectWriter pieces_of",
        "parallel_reads": "Range",
        "store": "FolderEntry ObjectInfo Store",
        "whole_writer": "WholeWriter",
    },
)
