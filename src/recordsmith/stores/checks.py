"""Checks of keys, ranges and versions, and errors that all stores share."""

from __future__ import annotations

import errno

from recordsmith.support.errors import FileAccessError, MissingFileError, OptionError, option


def check_key(key: str) -> str:
    """Return a key that stays inside its store."""
    # most keys show at once that no part is empty or starts with a dot
    is_odd = key[:1] in ("", ".", "/") or key[-1] == "/" or "//" in key or "/." in key
    if (is_odd and not {"", ".", ".."}.isdisjoint(key.split("/"))) or "\0" in key:
        raise OptionError(
            f"{key!r:.200} is not a valid key",
            value=key,
            expected="names separated by '/', without '.' and '..'",
        )
    return key


def check_range(start: int, stop: int | None) -> None:
    """Validate the bounds of a range."""
    if start < 0 or (stop is not None and stop < start):
        raise ValueError(f"invalid range {start}:{stop}")


def check_version(name: str, current: str, expected: str | None) -> None:
    """Check the version of an object that is read."""
    if expected is not None and current != expected:
        raise FileAccessError(
            errno.ESTALE, "it was replaced while it was read", name, remedy="Open it again."
        )


def missing_error(name: str) -> MissingFileError:
    """Return the error for an object that does not exist, in a store without an errno."""
    return MissingFileError(errno.ENOENT, "no such file or folder", name)


def exists_error(path: object) -> OptionError:
    """Return the error for an output that exists and must not be replaced."""
    return OptionError(
        f"{path} already exists",
        option="overwrite",
        remedy=f"Choose another name, or pass {option('overwrite', True)}.",
    )


def folder_error(path: object) -> OptionError:
    """Return the error for a folder where a job must write a file."""
    return OptionError(
        f"{path} is a folder, but the job writes a file of this name",
        remedy="Move or rename the folder.",
    )


def busy_error(folder: object) -> FileAccessError:
    """Return the error for a folder that another process has locked."""
    return FileAccessError(
        errno.EBUSY, "another process is writing to it", str(folder), operation="write"
    )


def no_lock_notice(folder: object) -> str:
    """Return the notice for a job that runs without a lock."""
    return (
        f"{folder} could not be locked: its file system does not support locks. Do not run a "
        "second job in it at the same time"
    )
