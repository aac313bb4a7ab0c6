"""Stores: where objects are kept, and how they are read and written.

An object is a file, or its equivalent in a store without files. Everything above reads and writes
objects through a `Location`: a store and a key in it. Where a store is remote, each read is a
request: callers make few, and many at the same time (`tests/dataset/test_request_counts.py`).
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "cache.folder": "CacheReport inspect_cache",
        "cache.store": "CachedStore",
        "checks": (
            "busy_error check_key check_range check_version folder_error missing_error "
            "no_lock_notice"
        ),
        "folders": "EXPORT_NOTE FolderWriter shared_folder write_folder",
        "local.caches": (
            "INDEX_FOLDER PRIVATE_MODE check_private make_private make_private_folder "
            "user_cache_folder"
        ),
        "local.scratch": "ScratchFile ScratchFolder convert_by_files release_pages scratch_array",
        "location": (
            "Location NOTE_BYTES PlaceLike as_folder as_location as_place is_url "
            "read_document read_existing read_note remote write_atomically write_document"
        ),
        "memory": "MemoryStore",
        "network.store_options": "parse_store_options read_settings",
        "object_reader": "ObjectReader",
        "object_writer": "ObjectWriter pieces_of",
        "parallel_reads": "Range",
        "store": "FolderEntry ObjectInfo Store WrappedStore",
        "whole_writer": "WholeWriter",
    },
)
