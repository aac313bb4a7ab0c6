"""New folders of objects, such as exports: complete when their note appears.

A note of what is written comes first and the note of the folder last, in every store. On a local
disk, objects wait in a hidden folder and are renamed at the end; elsewhere they have their final
names at once. Other processes may write some of the objects through `shared_folder`.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, BinaryIO

from recordsmith.stores.checks import check_key, no_lock_notice
from recordsmith.stores.local.locks import LOCK_NAME, locked
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.local.writer import is_temporary_name, rename
from recordsmith.stores.location import Location, as_folder, read_note
from recordsmith.stores.object_writer import ObjectWriter
from recordsmith.support.errors import (
    FileAccessError,
    MissingFileError,
    OptionError,
    access_error,
    accessing,
    option,
)
from recordsmith.support.threads import call_with_timeout

EXPORT_NOTE = ".export.json"
"""In the folder of an export: lists its files."""

BEGUN_NOTE = ".export.begun.json"
"""There while objects get their final names: lists those that may be there."""

_STAGING = ".export.partial"
"""Hidden in a local folder until the end of a job: `new` entries, and `old-1` that it replaces.

Those that a killed job has replaced stay until a later job has published its own.
"""


@contextmanager
def write_folder(
    folder: Location,
    note: Mapping[str, Any],
    *,
    overwrite: bool,
    keeping: Mapping[str, str],
    report: Callable[[str], None],
) -> Iterator[FolderWriter]:
    """Write a new folder; it is complete when its note appears, at the end of the block.

    If the block raises, everything that was written is removed. On a local disk, an earlier folder
    stays until the end, and the same job may replace what it wrote when it was killed. Elsewhere,
    an earlier folder is removed with the first object, and a killed process leaves objects without
    a note; `overwrite` removes these.

    Args:
        note: describes the content; the names directly in the folder are added as `entries`.
        overwrite: replace the entries of an earlier note, and all objects in the way.
        keeping: objects that must not be replaced: identity -> name for messages.
        report: called with problems of the folder.

    Raises:
        OptionError: it is an object, is not empty without `overwrite`, or contains objects to
            keep; or the store is read-only.
        FileAccessError: it cannot be written, or another process writes it.
    """
    store = folder.store
    store.check_writable(str(folder))
    if not isinstance(store, LocalStore):
        if folder.key and folder.exists():
            raise _file_error(folder)
        entries = _Entries(folder, str(folder), keeping)
        finished = entries.check_empty(overwrite=overwrite)
        with _finished(FolderWriter(entries, finished), note) as writer:
            yield writer
    else:
        named = store.path_of_folder(folder.key)
        path = Path(os.path.realpath(named))  # keep links, and write to their target
        import hashlib

        job = hashlib.sha256(json.dumps([note, sorted(keeping)]).encode()).hexdigest()
        with _staging(path, named, report) as staging:
            entries = _Entries(Location(LocalStore(path), ""), str(named), keeping, job)
            finished = entries.check_empty(overwrite=overwrite)
            with _finished(_StagedFolderWriter(path, staging, entries, finished), note) as writer:
                yield writer
    (folder / BEGUN_NOTE).delete()  # the last change of all


@contextmanager
def _finished(writer: FolderWriter, note: Mapping[str, Any]) -> Iterator[FolderWriter]:
    """Complete the folder at the end of the block, or remove what was written."""
    try:
        yield writer
        writer.finish(note)
    except BaseException as error:
        with suppress(FileAccessError):  # the reason for removing it is of more use
            if isinstance(error, Exception):
                writer.remove()
            else:
                call_with_timeout(writer.remove)
        raise
    finally:
        writer.discard()


@contextmanager
def shared_folder(document: Mapping[str, Any]) -> Iterator[FolderWriter]:
    """Write objects of a folder that another process creates.

    Attempts may write the same object: each writes it as a whole, and their bytes are equal.

    Args:
        document: from `FolderWriter.share`.

    Raises:
        FileAccessError: the other process has ended, or its folder cannot be written.
    """
    writer = _SharedFolderWriter(as_folder(document["folder"]), document["job"])
    try:
        yield writer
    finally:
        writer.discard()


class _Entries:
    """The entries of a new folder, by their names, and those of an earlier one that they replace.

    folder, named: where it is, and what messages call it.
    keeping: as in `write_folder`.
    job: what the note of a begun job identifies it by.
    written: those that have their final names.
    noted: those that the note of the begun job lists.
    """

    def __init__(
        self, folder: Location, named: str, keeping: Mapping[str, str], job: str = ""
    ) -> None:
        self.folder = folder
        self.named = named
        self.job = job
        self.written: set[str] = set()
        self.noted: set[str] = set()
        self._keeping = keeping
        self._earlier: set[str] = set()  # is removed before the first name is given
        self._replaceable: set[str] = set()

    @property
    def are_left(self) -> bool:
        """Whether the note lists what is left of an earlier folder."""
        return bool(self.noted & self._replaceable)

    def check_empty(self, *, overwrite: bool) -> Mapping[str, Any] | None:
        """Find what is in the folder; raise OptionError if it must not be replaced.

        Returns the result of an equal job that was killed after it wrote everything.
        """
        folder = self.folder
        names = {
            name for name, kind, *_ in folder.list_entries()
            if name != _STAGING and (kind != "folder" or (folder / name).is_folder())
        }  # fmt: skip
        begun = folder / BEGUN_NOTE
        note = _read_note(begun)
        own = set(note["entries"] if self.job and note.get("job") == self.job else ())
        is_finished = own and own <= names and isinstance(note.get("result"), dict)
        finished = note["result"] if is_finished else None  # it was killed at its end
        own |= {BEGUN_NOTE, EXPORT_NOTE} if own else set()
        entries = sorted(names - own, key=lambda name: (name == EXPORT_NOTE, name))  # files first
        if entries and not overwrite:
            raise OptionError(
                f"{self.named} is not empty: it contains {entries[0]}"
                + (f" and {len(entries) - 1:,} more" if len(entries) > 1 else ""),
                option="out",
                value=self.named,
                remedy=(
                    f"Choose another folder, or replace an earlier export with "
                    f"{option('overwrite', True)}."
                ),
            )
        folder.store.remove_leftovers(folder.key, (EXPORT_NOTE, BEGUN_NOTE))
        self._replaceable = names - {BEGUN_NOTE}
        earlier = _read_note(folder / EXPORT_NOTE)
        self._earlier = {EXPORT_NOTE, *earlier["entries"], *note["entries"]}
        return finished

    def begin(self, entries: Collection[str], remove: Callable[[str], None]) -> None:
        """Note entries before they get their names, and remove what is in their way.

        The first ones also remove an earlier folder, its note first. If this process is killed, the
        next one that overwrites the folder finds in the note what is left.
        """
        removed = {*entries, *self._earlier} & self._replaceable
        for name in removed:
            identity = (self.folder / name).identity
            for kept, shown in self._keeping.items():
                if kept == identity or kept.startswith(f"{identity}/"):
                    raise OptionError(
                        f"{os.path.join(self.named, name)} is in the way and contains {shown}, "
                        "which is being exported",
                        option="out",
                        remedy="Choose another folder.",
                    )
        self.written.update(entries)
        self.noted |= {*entries, *removed}
        self.put_note()
        for name in sorted(removed, key=lambda name: (name != EXPORT_NOTE, name)):
            remove(name)
        self._replaceable -= removed
        self._earlier = set()

    def put_note(self, result: Mapping[str, Any] | None = None) -> None:
        note: dict[str, Any] = {"job": self.job} if self.job else {}
        if result is not None:
            note["result"] = result
        (self.folder / BEGUN_NOTE).put(_note_to_bytes(note, self.noted))
        self.sync()

    def finish(self, note: Mapping[str, Any]) -> None:
        """Complete the folder with its note."""
        self.sync()
        (self.folder / EXPORT_NOTE).put(_note_to_bytes(note, self.written))
        self.sync()

    def sync(self) -> None:
        self.folder.store.sync(self.folder.key)


class FolderWriter:
    """Writes the objects of a new folder under their final names. For one thread.

    finished: the `result` of an equal job that was killed after it wrote everything; the end of
        the block completes that if `keep` is called.
    result: what such a later job finds in `finished`.
    """

    def __init__(
        self,
        entries: _Entries,
        finished: Mapping[str, Any] | None = None,
        scratch_folder: str | None = None,
    ) -> None:
        """`scratch_folder`: for temporary files; None means the one of the system."""
        self.finished = finished
        self.result: Mapping[str, Any] | None = None
        self._entries = entries
        self._folder = entries.folder
        self._scratch_folder = scratch_folder
        self._scratch_files: list[IO[bytes]] = []
        self._open: dict[str, tuple[ObjectWriter, BinaryIO]] = {}
        self._written: list[str] = []
        self._is_kept = False

    def keep(self) -> None:
        """Keep what the job wrote that has left `finished`, instead of writing it again."""
        self._is_kept = True

    def open(self, name: str) -> BinaryIO:
        """Open a new object for writing until `close`; `name` is its key in the folder."""
        writer = self._open_object(name)
        file = io.BufferedWriter(writer)
        self._open[name] = writer, file
        return file

    def _open_object(self, name: str) -> ObjectWriter:
        entry = name.partition("/")[0]
        if entry not in self._entries.written:
            self._entries.begin([entry], self._remove)
        return (self._folder / name).open_write(overwrite=False)

    def close(self, name: str) -> int:
        """Complete an object; return its size in bytes."""
        writer, file = self._open[name]
        file.flush()
        size_bytes = writer.tell()
        writer.publish()
        self._written.append(name)
        del self._open[name]
        file.close()
        return size_bytes

    def share(self, names: Collection[str]) -> dict[str, Any]:
        """Let other processes write these objects.

        Returns:
            What `shared_folder` needs, as plain JSON values without credentials.
        """
        self._entries.job = os.urandom(16).hex()
        self._entries.begin({name.partition("/")[0] for name in names}, self._remove)
        self._written += names
        return {"folder": str(self._folder.absolute()), "job": self._entries.job}

    def temporary_file(self) -> IO[bytes]:
        """Open a temporary file, in memory while it is small, until the end of the writer."""
        from recordsmith.stores.local.scratch import spooled_file

        self._scratch_files.append(spooled_file(self._scratch_folder))
        return self._scratch_files[-1]

    def discard(self) -> None:
        """Close temporary files and drop objects that are not complete."""
        for file in self._scratch_files:
            with suppress(OSError):
                file.close()
        for writer, buffer in self._open.values():
            writer.discard()
            with suppress(OSError, ValueError):  # what its buffer holds cannot be written
                buffer.close()
        self._open.clear()

    def remove(self) -> None:
        """Delete what was written."""
        self.discard()
        if self._entries.job:  # a process that is still writing finds out
            self._entries.job = ""
            self._entries.put_note()
        for name in self._written:
            (self._folder / name).delete()
        if not self._entries.are_left:
            (self._folder / BEGUN_NOTE).delete()

    def finish(self, note: Mapping[str, Any]) -> None:
        """Complete the folder with its note."""
        self._entries.finish(note)

    def _remove(self, name: str) -> None:
        """Remove an entry of an earlier folder."""
        entry = self._folder / name
        for location in [*entry.list(), entry]:
            location.delete()


class _SharedFolderWriter(FolderWriter):
    """Writes objects of a folder that another process creates, as long as that is at work."""

    def __init__(self, folder: Location, job: str) -> None:
        scratch_folder = str(folder) if folder.store.can_rename else None
        super().__init__(_Entries(folder, str(folder), {}, job), scratch_folder=scratch_folder)
        self._check()

    def _open_object(self, name: str) -> ObjectWriter:
        writer = (self._folder / name).open_write()
        writer.check = self._check
        return writer

    def _check(self) -> bool:
        note = _read_note(self._folder / BEGUN_NOTE)
        if note["entries"] and note.get("job") == self._entries.job:
            return True
        raise FileAccessError(
            errno.ESTALE,
            "the job that writes it has ended, or runs on a machine that does not share this "
            "folder",
            self._entries.named,
            operation="write",
        )


def _file_error(named: object) -> OptionError:
    return OptionError(f"{named} is a file, not a folder", option="out", value=str(named))


def _read_note(location: Location) -> dict[str, Any]:
    """Return the note of a folder: what was exported; without entries if invalid or unsafe."""
    try:
        document = json.loads(read_note(location))
        for name in document["entries"]:
            if os.path.basename(name) != name or name in ("", ".", ".."):
                raise ValueError(name)
        return {**document, "entries": {*document["entries"]}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {"entries": set[str]()}


def _note_to_bytes(note: Mapping[str, Any], entries: Iterable[str]) -> bytes:
    return json.dumps({**note, "entries": sorted(entries)}, indent=1).encode() + b"\n"


# -- on a local disk -------------------------------------------------------------------------------


class _StagedFolderWriter(FolderWriter):
    """Writes files to a hidden folder, and gives them their names at the end."""

    def __init__(
        self, path: Path, staging: Path, entries: _Entries, finished: Mapping[str, Any] | None
    ) -> None:
        super().__init__(entries, finished, scratch_folder=str(staging / "new"))
        self._path, self._new = path, staging / "new"
        kept = (staging / f"old-{number}" for number in count(1))
        self._old = next(folder for folder in kept if not os.path.lexists(folder))
        self._folders: set[str] = set()
        self._files: dict[str, BinaryIO] = {}
        self._clear(keeping="old-")
        self._new.mkdir()

    def open(self, name: str) -> BinaryIO:
        folder = check_key(name).rpartition("/")[0]
        if folder not in self._folders:
            os.makedirs(f"{self._new}/{folder}", exist_ok=True)
            self._folders.add(folder)
        file = open(f"{self._new}/{name}", "xb")  # noqa: SIM115 - closed by close or discard
        self._files[name] = file
        return file

    def close(self, name: str) -> int:
        file = self._files.pop(name)
        size_bytes = file.tell()
        file.close()
        return size_bytes

    def share(self, names: Collection[str]) -> dict[str, Any]:
        job = os.urandom(16).hex()
        self._written += names
        (as_folder(self._new) / BEGUN_NOTE).put(_note_to_bytes({"job": job}, names))
        return {"folder": str(self._new.absolute()), "job": job}

    def discard(self) -> None:
        super().discard()
        for file in self._files.values():
            with suppress(OSError):
                file.close()
        if not self._entries.noted:  # else what could not be moved stays for the user
            with suppress(OSError):
                self._clear(keeping="old-")

    def remove(self) -> None:
        self.discard()

    def finish(self, note: Mapping[str, Any]) -> None:
        (self._new / BEGUN_NOTE).unlink(missing_ok=True)
        for path, _, names in os.walk(self._new):  # a flush after each file takes longer
            for name in (*names, ""):
                if name and is_temporary_name(name):  # of an attempt that was killed, or ends now
                    Path(path, name).unlink(missing_ok=True)
                else:
                    LocalStore(path).sync(name)
        for name in self._written:
            if not (self._new / name).exists():
                raise MissingFileError(
                    errno.ENOENT,
                    "a worker has written it, but it is not here",
                    str(self._new / name),
                    remedy="All machines must see the folder of the export.",
                )
        if self._is_kept:
            self._entries.written.update(_read_note(self._folder / BEGUN_NOTE)["entries"])
        else:
            entries = [name for name in os.listdir(self._new) if not is_temporary_name(name)]
            self._entries.begin(entries, self._remove)
            for name in sorted(entries):
                rename(self._new / name, self._path / name)
            if self.result is not None:
                self._entries.sync()
                self._entries.noted = set(entries)
                self._entries.put_note(self.result)
        super().finish(note)
        self._entries.noted.clear()
        with suppress(OSError):
            self._clear()

    def _clear(self, keeping: str = LOCK_NAME) -> None:
        """Remove everything from the hidden folder except its lock and names that begin so."""
        folder = self._new.parent
        for entry in os.listdir(folder):
            if entry == LOCK_NAME or entry.startswith(keeping):
                continue
            path = folder / entry
            with accessing(path, "remove"):
                if path.is_dir() and not path.is_symlink():
                    import shutil

                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _remove(self, name: str) -> None:
        self._old.mkdir(exist_ok=True)
        rename(self._path / name, self._old / name)  # until the end, as deleting may take long


@contextmanager
def _staging(path: Path, named: Path, report: Callable[[str], None]) -> Iterator[Path]:
    """Lock a folder, and yield a hidden one in it, which is removed at the end if it is empty."""
    with accessing(named, "write"):
        if os.path.lexists(path) and not path.is_dir():
            raise _file_error(named)
    created = [folder for folder in (path, *path.parents) if not folder.exists()]  # nearest first
    with accessing(named, "make folder"):
        os.makedirs(path, exist_ok=True)
    staging = path / _STAGING
    try:
        for folder in created:
            LocalStore(folder.parent).sync()
        with locked(staging, named) as is_locked:
            if not is_locked:
                report(no_lock_notice(named))
            try:
                yield staging
            except FileAccessError:
                raise
            except OSError as error:
                raise access_error(error, named, "write") from error
    finally:
        with suppress(OSError):  # folders that are not empty stay
            for folder in created:
                folder.rmdir()
