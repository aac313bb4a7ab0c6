"""Where the user's caches lie."""

from __future__ import annotations

import os

INDEX_FOLDER = "index"
"""In a cache folder: indexes of shards in places that cannot be written."""


def user_cache_folder() -> str:
    """Return the user's folder for caches of recordsmith."""
    parent = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(parent, "recordsmith")
