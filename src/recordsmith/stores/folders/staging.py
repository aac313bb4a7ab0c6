"""Write a folder of files atomically: it appears complete under its name, or not at all.

Everything is written to a hidden folder first. If the final folder does not exist, the hidden one
is next to it and is renamed at the end. Otherwise it is inside the final folder, and each entry is
moved: existing entries to the folder `old`, then new ones to their place. A note lists the moves
until all are done, so that they can be undone: at once if one fails, or by the next export if the
job was killed. The next export also removes the remains of a killed job. The last change of all
removes the note `.export.begun.json` from the final folder: where it is, the job never ended, and
the same job may replace what it wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from recordsmith.errors import (
    FileAccessError,
    MissingFileError,
    OptionError,
    access_error,
    accessing,
)
from recordsmith.stores.checks import busy_error, check_key, no_lock_notice
from recordsmith.stores.folders.writer import (
    BEGUN_NOTE,
    EXPORT_NOTE,
    FolderWriter,
    check_empty,
    check_kept,
    earlier_entries,
    ended_error,
    file_error,
    note_to_bytes,
    plain_name,
)
from recordsmith.stores.local.locks import LOCK_NAME, locked
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.local.writer import rename
from recordsmith.stores.location import as_folder
from recordsmith.stores.small_objects import read_note, write_atomically

_INSIDE = ".export.partial"
_MOVES = "moves.json"


class StagedFolderWriter(FolderWriter):
    """Writes files to a hidden folder, with its temporary files. `staged` translates its errors."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._folder = str(folder)
        self._folders_created: set[str] = set()
        self._open: dict[str, BinaryIO] = {}

    def open(self, name: str) -> BinaryIO:
        folder = check_key(name).rpartition("/")[0]
        if folder not in self._folders_created:
            with accessing(f"{self._folder}/{folder}", "make folder"):
                os.makedirs(f"{self._folder}/{folder}", exist_ok=True)
            self._folders_created.add(folder)
        file = open(f"{self._folder}/{name}", "xb")  # noqa: SIM115 - closed by close or discard
        self._open[name] = file
        return file

    def close(self, name: str) -> int:
        file = self._open.pop(name)
        size_bytes = file.tell()
        file.close()
        return size_bytes

    def share(self, names: Collection[str]) -> dict[str, Any]:  # noqa: ARG002 - they are staged
        self._shared = f"{os.path.dirname(self._folder)}/{os.urandom(16).hex()}"
        with accessing(self._shared, "make folder"):
            os.mkdir(self._shared)
        return {"folder": self._shared}

    def take(self, name: str, attempt: str) -> None:
        path = f"{self._shared}/{plain_name(attempt)}/{check_key(name)}"
        try:
            rename(Path(path), Path(self._folder, name))
        except MissingFileError as error:
            error.advise("A worker has written it: all machines must see the folder of the export.")
            raise

    def discard(self) -> None:
        super().discard()
        for file in self._open.values():
            with suppress(OSError):
                file.close()


@contextmanager
def staged_attempt(shared: str, attempt: str) -> Iterator[FolderWriter]:
    """Write some files of a folder that another process stages; see `shared_folder`."""
    path = Path(shared, attempt)
    try:
        os.mkdir(path)
    except FileNotFoundError:
        raise ended_error(shared) from None
    except OSError as error:
        raise access_error(error, path, "make folder") from error
    writer = StagedFolderWriter(path)
    try:
        yield writer
    except BaseException as error:
        writer.discard()
        shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, FileAccessError):
            raise access_error(error, path, "write") from error
        raise
    finally:
        writer.discard()


@contextmanager
def staged(
    folder: Path,
    note: Mapping[str, Any],
    *,
    overwrite: bool,
    keeping: Mapping[str, str],
    report: Callable[[str], None],
) -> Iterator[FolderWriter]:
    """Write a folder of files; arguments and errors as of `write_folder`."""
    named, folder = folder, Path(os.path.realpath(folder))  # keep links, and write to their target
    is_there = _is_folder(folder, named)
    job = hashlib.sha256(json.dumps([note, sorted(keeping)]).encode()).hexdigest()
    adjacent = folder.parent / f".{folder.name[:60]}.export.partial"
    staging = adjacent
    if is_there:
        staging = folder / _INSIDE
        _clear_left_over(adjacent, named)
        if not os.path.lexists(staging):  # otherwise check after clearing it
            _check_empty(folder, named, job, overwrite=overwrite)
    above = [path for path in folder.parents if not path.exists()]  # nearest first
    with accessing(named, "make folder"):
        os.makedirs(staging.parent, exist_ok=True)
    try:
        with locked(staging, named) as is_locked:
            if not is_locked:
                report(no_lock_notice(named))
            try:
                if _is_folder(folder, named) != is_there:
                    raise busy_error(named)
                _undo_moves(staging, folder)
                _clear(staging)
                if is_there:
                    _check_empty(folder, named, job, overwrite=overwrite)
                new = staging / "new"
                new.mkdir()
                writer = StagedFolderWriter(new)
                try:
                    yield writer
                finally:
                    writer.discard()
                entries = os.listdir(new)
                write_atomically(new / EXPORT_NOTE, note_to_bytes(note, entries))
                write_atomically(new / BEGUN_NOTE, note_to_bytes({"job": job}, entries))
                _sync(new)
                with accessing(named, "write"):
                    if is_there:
                        _move_entries(staging, folder, keeping, named)
                    else:
                        os.rename(new, folder)
                        LocalStore(folder.parent).sync()
            except FileAccessError:
                raise
            except OSError as error:
                raise access_error(error, named, "write") from error
            finally:
                if not os.path.lexists(staging / _MOVES):  # otherwise the next export undoes them
                    with suppress(OSError):
                        _clear(staging)
        with suppress(OSError):
            os.unlink(folder / BEGUN_NOTE)
    finally:
        with suppress(OSError):  # folders that are not empty stay
            for path in above:
                path.rmdir()


def _is_folder(folder: Path, named: Path) -> bool:
    """Whether the folder exists; `named` is its name in messages."""
    with accessing(named, "write"):
        if not os.path.lexists(folder):
            return False
        if not folder.is_dir():
            raise file_error(str(named))
    return True


def _check_empty(folder: Path, named: Path, job: str, *, overwrite: bool) -> None:
    """Check that nothing is in the way but the files of this job, which was killed at its end."""
    with accessing(named):
        names = {*os.listdir(folder)} - {_INSIDE}
    if BEGUN_NOTE in names:
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            if json.loads(read_note(folder / BEGUN_NOTE))["job"] == job:
                names -= {BEGUN_NOTE, EXPORT_NOTE, *earlier_entries(as_folder(folder))}
    check_empty(str(named), names, overwrite)


def _sync(new: Path) -> None:
    """Flush all files to the disk: at the end, as a flush after each file takes longer."""
    for path, _, names in os.walk(new):
        for name in (*names, ""):
            LocalStore(path).sync(name)


def _clear(staging: Path) -> None:
    """Remove everything from the hidden folder except its lock."""
    for entry in {*os.listdir(staging)} - {LOCK_NAME}:
        path = staging / entry
        with accessing(path, "remove"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _clear_left_over(adjacent: Path, named: Path) -> None:
    """Remove the hidden folder of an export that was killed right after the rename."""
    if adjacent.is_dir() and not adjacent.is_symlink():
        with suppress(OSError), locked(adjacent, named):
            _clear(adjacent)


# -- moving into a folder that exists --------------------------------------------------------------


def _move_entries(staging: Path, folder: Path, keeping: Mapping[str, str], named: Path) -> None:
    """Move new entries into `folder`, and entries of an earlier export out of it."""
    new, old = staging / "new", staging / "old"
    coming = sorted(os.listdir(new))
    going = {
        name
        for name in {*coming, *earlier_entries(as_folder(folder))}
        if name != _INSIDE and os.path.lexists(folder / name)
    }
    for name in going:
        check_kept(os.path.realpath(folder / name), str(named / name), keeping)
    old.mkdir()
    numbers = {name: os.lstat(new / name).st_ino for name in coming}
    write_atomically(staging / _MOVES, json.dumps({"new": numbers, "old": sorted(going)}).encode())
    try:
        for name in sorted(going):
            os.rename(folder / name, old / name)
        for name in coming:
            os.rename(new / name, folder / name)
        LocalStore(folder).sync()
    except BaseException:
        _undo_moves(staging, folder)
        raise
    os.unlink(staging / _MOVES)  # from here on, the new export is in place


def _undo_moves(staging: Path, folder: Path) -> None:
    """Undo the moves of an interrupted job. Can be interrupted and repeated at any point.

    Only entries that the job itself moved in, identified by inode, are moved out, so that a foreign
    or outdated note does not affect other files.
    """
    moves = staging / _MOVES
    if not os.path.lexists(moves):
        return
    try:
        document = json.loads(read_note(moves))
        coming = {plain_name(name): number for name, number in document["new"].items()}
        going = [*map(plain_name, document["old"])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise OptionError(
            f"{moves}, the list of moves of an interrupted export, is invalid",
            option="out",
            remedy=f"Move the files in {staging / 'old'} back to {folder}, and remove {staging}.",
        ) from None
    new, old = staging / "new", staging / "old"
    for path in (new, old):
        if path.is_symlink() or not path.is_dir():
            raise OptionError(
                f"{path} is not a folder of an export", option="out", remedy=f"Remove {staging}."
            )
    with accessing(folder, "write"):
        for name, number in coming.items():
            if not os.path.lexists(new / name) and _number(folder / name) == number:
                os.rename(folder / name, new / name)
        for name in going:
            if os.path.lexists(old / name):
                if os.path.lexists(folder / name):
                    raise OptionError(
                        f"{folder / name} is in the way of {old / name}, which an interrupted "
                        "export moved away",
                        option="out",
                        remedy="Move one of them to another folder.",
                    )
                os.rename(old / name, folder / name)
        os.unlink(moves)


def _number(path: Path) -> int | None:
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return None
