"""Where the user's caches lie, and whether only the user can have written what is in them."""

from __future__ import annotations

import errno
import os
import stat

from recordsmith.errors import FileAccessError, accessing

INDEX_FOLDER = "index"
"""In a cache folder: indexes of shards in places that cannot be written."""


def user_cache_folder() -> str:
    """Return the user's folder for caches of recordsmith."""
    parent = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(parent, "recordsmith")


def check_private(path: str, file: int | None = None) -> None:
    """Check that no other user can write a folder or file of a cache; this holds for root as well.

    Args:
        file: the descriptor of the file; None for a folder.

    Raises:
        FileAccessError: it belongs to another user, others may write it, it is a symbolic link, or
            a file with several names; or it is missing.
    """
    with accessing(path):
        status = os.lstat(path.rstrip(os.sep) or os.sep) if file is None else os.fstat(file)
    remedy = "Choose another cache folder."
    if stat.S_ISLNK(status.st_mode):
        problem = "it is a symbolic link"
    elif status.st_uid != os.geteuid():
        problem = "it belongs to another user"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "other users may write it"
        remedy = f"Run `chmod go-w {path}` if no one else did write it, or choose another folder."
    elif file is not None and status.st_nlink > 1:
        problem = "it has more than one name (hard links)"
    else:
        return
    raise FileAccessError(errno.EPERM, problem, path, operation="use as a cache", remedy=remedy)
