"""`FolderWriter`, which writes the objects of a new folder, and the notes of such folders."""

from __future__ import annotations

import errno
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import IO, Any, BinaryIO

from recordsmith.errors import FileAccessError, OptionError, option
from recordsmith.stores.local.scratch import spooled_file
from recordsmith.stores.location import Location
from recordsmith.stores.small_objects import read_note

EXPORT_NOTE = ".export.json"
"""In the folder of an export: lists its files."""

BEGUN_NOTE = ".export.begun.json"
"""There while objects are written under their final names."""


class FolderWriter(ABC):
    """Writes the objects of a new folder. For one thread."""

    def __init__(self, scratch_folder: str | None = None) -> None:
        """`scratch_folder`: for temporary files; None means the one of the system."""
        self._scratch_folder = scratch_folder
        self._scratch_files: list[IO[bytes]] = []

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """Open a new object for writing until `close`; `name` is its key in the folder."""

    @abstractmethod
    def close(self, name: str) -> int:
        """Complete an object; return its size in bytes."""

    @abstractmethod
    def share(self, names: Collection[str]) -> dict[str, Any]:
        """Let other processes write these objects.

        Returns:
            What `shared_folder` needs, as plain JSON values without credentials.
        """

    @abstractmethod
    def take(self, name: str, attempt: str) -> None:
        """Add an object that another process has written, in this attempt."""

    def temporary_file(self) -> IO[bytes]:
        """Open a temporary file, in memory while it is small, until the end of the writer."""
        self._scratch_files.append(spooled_file(self._scratch_folder))
        return self._scratch_files[-1]

    def discard(self) -> None:
        """Close temporary files and drop objects that are not complete."""
        for file in self._scratch_files:
            with suppress(OSError):
                file.close()


def check_empty(named: str, names: Iterable[str], overwrite: bool) -> None:
    """Raise OptionError if a folder has entries that must not be replaced."""
    found = sorted(names, key=lambda name: (name == EXPORT_NOTE, name))  # the user's own file first
    if found and not overwrite:
        raise OptionError(
            f"{named} is not empty: it contains {found[0]}"
            + (f" and {len(found) - 1:,} more" if len(found) > 1 else ""),
            option="out",
            value=named,
            remedy=(
                f"Choose another folder, or replace an earlier export with "
                f"{option('overwrite', True)}."
            ),
        )


def check_kept(place: str, named: str, keeping: Mapping[str, str]) -> None:
    """Raise OptionError if an entry that is replaced contains an object to keep.

    Args:
        place: the identity of the entry.
        named: its name for messages.
        keeping: as of `write_folder`.
    """
    for kept, shown in keeping.items():
        if kept == place or kept.startswith(f"{place}/"):
            raise OptionError(
                f"{named} is in the way and contains {shown}, which is being exported",
                option="out",
                remedy="Choose another folder.",
            )


def file_error(named: str) -> OptionError:
    """Return the error for a file where a job writes a folder."""
    return OptionError(f"{named} is a file, not a folder", option="out", value=named)


def earlier_entries(folder: Location, note: str = EXPORT_NOTE) -> list[str]:
    """Return the entries of an earlier export; none if its note is invalid or has unsafe names."""
    try:
        return [*map(plain_name, json.loads(read_note(folder / note))["entries"])]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def plain_name(name: Any) -> str:
    """Validate the name of an entry of a folder."""
    if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
        raise ValueError(f"{name!r:.60} is not the name of an entry")
    return name


def note_to_bytes(note: Mapping[str, Any], entries: Iterable[str]) -> bytes:
    """Write the note of a folder: what was exported, and its entries."""
    return json.dumps({**note, "entries": sorted(entries)}, indent=1).encode() + b"\n"


def ended_error(named: str) -> FileAccessError:
    """Return the error for a folder that no other process creates any more."""
    return FileAccessError(
        errno.ESTALE,
        "the job that writes it has ended, or runs on a machine that does not share this folder",
        named,
        operation="write",
    )
