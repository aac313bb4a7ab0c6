"""The user's cache folder: where it is, what is in it, and how to empty it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recordsmith.stores.local import block_files
from recordsmith.stores.local.caches import INDEX_FOLDER, user_cache_folder
from recordsmith.stores.local.store import LocalStore
from recordsmith.support.serialization import fields_to_json

_INDEX = re.compile(re.escape(INDEX_FOLDER) + r"/[0-9a-f]{32}\.(index|columns)")


@dataclass(frozen=True)
class CacheReport:
    """What a cache folder contains.

    Attributes:
        folder: its path.
        size_bytes: its size on disk.
        limit_bytes: the limit for cached objects; None if none were cached yet.
        object_count: how many objects have cached blocks; versions of an object count separately.
        cached_bytes: the size of these blocks.
        first_used, last_used: when the least and the most recently used of them were used, to some
            minutes, as ISO 8601; None without blocks.
        index_count: how many indexes of shards lie in the folder.
        index_bytes: their size.
        is_cleared: whether the folder was emptied just now.
    """

    folder: str
    size_bytes: int
    limit_bytes: int | None
    object_count: int
    cached_bytes: int
    first_used: str | None
    last_used: str | None
    index_count: int
    index_bytes: int
    is_cleared: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return fields_to_json(self)


def inspect_cache(folder: str | None = None, *, clear: bool = False) -> CacheReport:
    """Report what a cache folder contains, and empty it if requested.

    Only what recordsmith wrote is removed: cached blocks, and indexes, which it builds again.

    Args:
        folder: None means the user's.
        clear: remove the blocks and the indexes.

    Example:
        >>> inspect_cache("a folder that does not exist").object_count
        0
    """
    path = os.path.abspath(os.path.expanduser(folder or user_cache_folder()))
    block_files.check_folder(path)
    store = LocalStore(path, follows_links=False)
    indexes = [info for info in store.list(f"{INDEX_FOLDER}/") if _INDEX.fullmatch(info.key)]
    limit, stats = None, block_files.CacheStats(0, 0, None, None)
    if store.exists(block_files.STATE_NAME):
        files = block_files.BlockFiles(path)
        if clear:
            files.clear()
        limit, stats = files.max_bytes, files.stats()
    if clear:
        for info in indexes:
            store.delete(info.key)
        indexes = []
    return CacheReport(
        path,
        block_files.disk_bytes(path),
        limit,
        stats.object_count,
        stats.size_bytes,
        _iso(stats.first_used),
        _iso(stats.last_used),
        len(indexes),
        sum(info.size_bytes for info in indexes),
        clear,
    )


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()
