"""The folders of caches: where they are, and that no other user can write them."""

from __future__ import annotations

import errno
import os
import stat

from recordsmith.support.errors import FileAccessError, accessing

INDEX_FOLDER = "index"
"""In a cache folder: indexes of shards in places that cannot be written."""

PRIVATE_MODE = 0o600
"""Of the files of a cache: what they contain may be private in its store."""


def user_cache_folder() -> str:
    """Return the user's folder for caches of recordsmith."""
    parent = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(parent, "recordsmith")


def check_private(path: str) -> None:
    """Check that no other user can write a folder or file of a cache, also for root."""
    with accessing(path):
        check_private_status(path, os.lstat(path.rstrip(os.sep) or os.sep))


def check_private_status(path: str, status: os.stat_result) -> None:
    """Check the status of a file or folder as `check_private` does."""
    remedy = "Choose another cache folder."
    if stat.S_ISLNK(status.st_mode):
        problem = "it is a symbolic link"
    elif hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        problem = "it belongs to another user"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "other users may write it"
        remedy = f"Run `chmod go-w {path}` if no one else did write it, or choose another folder."
    elif stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        problem = "it has more than one name (hard links)"
    else:
        return
    raise FileAccessError(errno.EPERM, problem, path, operation="use as a cache", remedy=remedy)


def make_private_folder(path: str) -> None:
    """Make a folder of a cache unless it exists, and check it with `check_private`."""
    with accessing(path, "make folder"):
        os.makedirs(path, mode=0o700, exist_ok=True)
    check_private(path)


def make_private(path: str) -> None:
    """Let only the user open a file of a cache."""
    with accessing(path, "write"):
        os.chmod(path, PRIVATE_MODE)
