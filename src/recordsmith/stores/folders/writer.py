"""`FolderWriter`, which writes a new folder; without renaming, a note comes last."""

from __future__ import annotations

import errno
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any, BinaryIO

from recordsmith.errors import FileAccessError, OptionError, option
from recordsmith.stores.local.scratch import spooled_file
from recordsmith.stores.location import Location
from recordsmith.stores.object_writer import ObjectWriter
from recordsmith.stores.small_objects import NOTE_BYTES, read_existing, read_note
from recordsmith.threads import call_with_timeout

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
    entries = sorted(names, key=lambda name: (name == EXPORT_NOTE, name))  # own files first
    if entries and not overwrite:
        raise OptionError(
            f"{named} is not empty: it contains {entries[0]}"
            + (f" and {len(entries) - 1:,} more" if len(entries) > 1 else ""),
            option="out",
            value=named,
            remedy=(
                f"Choose another folder, or replace an earlier export with "
                f"{option('overwrite', True)}."
            ),
        )


def check_kept(place: str, named: str, keeping: Mapping[str, str]) -> None:
    """Raise OptionError if an entry that is replaced contains an object to keep."""
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


# -- without renaming ------------------------------------------------------------------------------


class DirectFolderWriter(FolderWriter):
    """Writes objects under their final names, one after another."""

    def __init__(self, folder: Location, *, overwrite: bool, keeping: Mapping[str, str]) -> None:
        """Arguments as of `write_folder`."""
        super().__init__()
        self.entries: set[str] = set()
        """The names directly in the folder."""
        self._folder = folder
        self._overwrite = overwrite
        self._keeping = keeping
        self._open: dict[str, tuple[ObjectWriter, BinaryIO]] = {}
        self._written: list[str] = []
        self._noted: set[str] = set()
        self._job = ""  # in the note as long as other processes may write

    def open(self, name: str) -> BinaryIO:
        writer = self._open_object(name)
        file = io.BufferedWriter(writer)
        self._open[name] = writer, file
        return file

    def _open_object(self, name: str) -> ObjectWriter:
        entry = name.partition("/")[0]
        if entry not in self.entries:
            self._begin([entry], [entry])
        return (self._folder / name).open_write(overwrite=False)

    def close(self, name: str) -> int:
        writer, file = self._open[name]
        file.flush()
        size_bytes = writer.tell()
        writer.publish()
        self._written.append(name)
        del self._open[name]
        file.close()
        return size_bytes

    def share(self, names: Collection[str]) -> dict[str, Any]:
        self._job = os.urandom(16).hex()
        entries = {name.partition("/")[0] for name in names}
        there = {entry.name for entry in self._folder.list_entries()}
        self._begin(entries, entries & there)
        self._written += names
        return {"folder": str(self._folder.absolute()), "job": self._job}

    def take(self, name: str, attempt: str) -> None:
        """Nothing is left to do: it has its name."""

    def discard(self) -> None:
        super().discard()
        for writer, file in self._open.values():
            writer.discard()
            with suppress(OSError, ValueError):  # what its buffer holds cannot be written
                file.close()
        self._open.clear()

    def remove(self) -> None:
        """Delete what was written."""
        self.discard()
        if self._job:  # a process that is still writing finds out
            self._job = ""
            self._put_note()
        for name in self._written:
            (self._folder / name).delete()
        (self._folder / BEGUN_NOTE).delete()

    def _begin(self, entries: Collection[str], in_the_way: Collection[str]) -> None:
        """Note entries before they are written, and remove what is in their way.

        The first ones also remove an earlier export, its note first. If this process is killed, the
        next one that overwrites the folder finds in the note what is left.
        """
        removed = {*in_the_way} if self._overwrite else set()
        if self._overwrite and not self.entries:
            removed |= {*earlier_entries(self._folder), *earlier_entries(self._folder, BEGUN_NOTE)}
        for name in sorted(removed):
            place = self._folder / name
            check_kept(place.identity, str(place), self._keeping)
        self.entries.update(entries)
        self._noted |= {*entries, *removed}
        self._put_note()
        for name in (EXPORT_NOTE, *sorted(removed)) if removed else ():
            place = self._folder / name
            for location in [*place.list(), place]:
                location.delete()

    def _put_note(self) -> None:
        note = {"job": self._job} if self._job else {}
        (self._folder / BEGUN_NOTE).put(note_to_bytes(note, self._noted))


class SharedFolderWriter(DirectFolderWriter):
    """Writes objects of a folder that another process creates, as long as that is at work.

    Attempts may write the same object: each puts it as a whole, and their bytes are equal.
    """

    def __init__(self, folder: Location, job: str) -> None:
        super().__init__(folder, overwrite=True, keeping={})
        self._job = job

    def _open_object(self, name: str) -> ObjectWriter:
        self._check()
        writer = (self._folder / name).open_write()
        writer.check = self._check
        return writer

    def _check(self) -> bool:
        note = read_existing(self._folder / BEGUN_NOTE, NOTE_BYTES)
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            if note is not None and json.loads(note)["job"] == self._job:
                return True
        raise ended_error(str(self._folder))


@contextmanager
def direct_folder(
    folder: Location, note: Mapping[str, Any], *, overwrite: bool, keeping: Mapping[str, str]
) -> Iterator[FolderWriter]:
    """Write a folder where objects cannot be renamed; see `write_folder`."""
    if folder.key and folder.exists():
        raise file_error(str(folder))
    names = [
        name for name, kind, *_ in folder.list_entries()
        if kind != "folder" or (folder / name).is_folder()  # it may be empty
    ]  # fmt: skip
    check_empty(str(folder), names, overwrite)
    writer = DirectFolderWriter(folder, overwrite=overwrite, keeping=keeping)
    try:
        yield writer
        (folder / EXPORT_NOTE).put(note_to_bytes(note, writer.entries))
        (folder / BEGUN_NOTE).delete()
    except BaseException as error:
        with suppress(FileAccessError):  # the reason for removing it is of more use
            if isinstance(error, Exception):
                writer.remove()
            else:
                call_with_timeout(writer.remove)
        raise
    writer.discard()  # closes temporary files
