"""Write a folder atomically: it appears complete under its name, or not at all.

Everything is written to a hidden folder first. If the final folder does not exist, the hidden one
is next to it and is renamed at the end. Otherwise it is inside the final folder, and each entry is
moved: existing entries to the folder `old`, then new ones to their place. A note lists the moves
until all are done, so that they can be undone: at once if one fails, or by the next export if the
job was killed. The next export also removes the remains of a killed job.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recordsmith.errors import FileAccessError, OptionError, option
from recordsmith.files import (
    EXPORT_NOTE,
    LOCK_NAME,
    access_error,
    accessing,
    busy_error,
    list_folder,
    locked,
    make_folder,
    no_lock_notice,
    remove,
    remove_tree,
)
from recordsmith.stores import read_note, write_atomically

_INSIDE = ".export.partial"
_MOVES = "moves.json"


@contextmanager
def staged(
    folder: Path,
    note: Mapping[str, Any],
    *,
    overwrite: bool,
    keeping: Iterable[Path] = (),
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[Path]:
    """Yield a folder to write to, and move its content to `folder` if the block succeeds.

    Args:
        folder: the final folder, as messages name it.
        note: metadata of this export, stored in the folder.
        overwrite: replace an earlier export and all files in the way.
        keeping: files that must not be replaced.
        report: called with problems of the folder.

    Raises:
        OptionError: `folder` is a file, is not empty without `overwrite`, or contains files to
            keep; or the hidden folder is a symbolic link.
        FileAccessError: an operation failed, or another process exports to this folder.
    """
    named, folder = folder, Path(os.path.realpath(folder))  # keep links, and write to their target
    is_there = _is_folder(folder, named)
    adjacent = folder.parent / f".{folder.name[:60]}.export.partial"
    staging = adjacent
    if is_there:
        staging = folder / _INSIDE
        _clear_left_over(adjacent, named)
        if not os.path.lexists(staging):  # otherwise check after clearing it
            _check_empty(folder, named, overwrite)
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
                    _check_empty(folder, named, overwrite)
                new = staging / "new"
                make_folder(new)
                yield new
                entries = sorted(os.listdir(new))
                document = {**note, "entries": entries}
                write_atomically(new / EXPORT_NOTE, _to_json(document))
                with accessing(named, "write"):
                    if is_there:
                        _move_entries(staging, folder, keeping, named)
                    else:
                        os.rename(new, folder)
            except FileAccessError:
                raise
            except OSError as error:
                raise access_error(error, named, "write") from error
            finally:
                if not os.path.lexists(staging / _MOVES):  # otherwise the next export undoes them
                    with suppress(OSError):
                        _clear(staging)
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
            raise OptionError(f"{named} is a file, not a folder", option="out", value=str(named))
    return True


def _check_empty(folder: Path, named: Path, overwrite: bool) -> None:
    """Raise OptionError if a folder has entries that must not be replaced."""
    found = [entry.name for entry in list_folder(folder) if entry.name != _INSIDE]
    found.sort(key=lambda name: name == EXPORT_NOTE)  # show the user's own file first
    if found and not overwrite:
        raise OptionError(
            f"{named} is not empty: it contains {found[0]}"
            + (f" and {len(found) - 1:,} more" if len(found) > 1 else ""),
            option="out",
            value=str(named),
            remedy=(
                f"Choose another folder, or replace an earlier export with "
                f"{option('overwrite', True)}."
            ),
        )


def _clear(staging: Path) -> None:
    """Remove everything from the hidden folder except its lock."""
    for entry in list_folder(staging):
        if entry.name != LOCK_NAME:
            remove_tree(entry.path)


def _clear_left_over(adjacent: Path, named: Path) -> None:
    """Remove the hidden folder of an export that was killed right after the rename."""
    if adjacent.is_dir() and not adjacent.is_symlink():
        with suppress(FileAccessError), locked(adjacent, named):
            _clear(adjacent)


# -- moving into a folder that exists --------------------------------------------------------------


def _move_entries(staging: Path, folder: Path, keeping: Iterable[Path], named: Path) -> None:
    """Move new entries into `folder`, and entries of an earlier export out of it."""
    new, old = staging / "new", staging / "old"
    coming = sorted(os.listdir(new))
    going = {
        name
        for name in {*coming, *_earlier_entries(folder)}
        if name != _INSIDE and os.path.lexists(folder / name)
    }
    for path in keeping:
        for name in going:
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder / name)):
                raise OptionError(
                    f"{named / name} is in the way and contains {path}, which is being exported",
                    option="out",
                    remedy="Choose another folder.",
                )
    old.mkdir()
    numbers = {name: os.lstat(new / name).st_ino for name in coming}
    write_atomically(staging / _MOVES, _to_json({"new": numbers, "old": sorted(going)}))
    try:
        for name in sorted(going):
            os.rename(folder / name, old / name)
        for name in coming:
            os.rename(new / name, folder / name)
    except BaseException:
        _undo_moves(staging, folder)
        raise
    remove(staging / _MOVES)  # from here on, the new export is in place


def _undo_moves(staging: Path, folder: Path) -> None:
    """Undo the moves of an interrupted job. Can be interrupted and repeated at any point.

    Only entries that the job itself moved in, identified by inode, are moved out, so that a foreign
    or outdated note does not affect other files.

    Raises:
        OptionError: entries that the job moved away cannot be restored.
    """
    moves = staging / _MOVES
    if not os.path.lexists(moves):
        return
    try:
        document = json.loads(read_note(moves))
        coming = {_plain(name): number for name, number in document["new"].items()}
        going = [*map(_plain, document["old"])]
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
    remove(moves)


def _number(path: Path) -> int | None:
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return None


def _earlier_entries(folder: Path) -> list[str]:
    """The entries of an earlier export; none if the note is invalid or has unsafe names."""
    try:
        return [*map(_plain, json.loads(read_note(folder / EXPORT_NOTE))["entries"])]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _plain(name: Any) -> str:
    """Validate the name of an entry of a folder.

    Raises:
        ValueError: the name is a path to elsewhere.
    """
    if not isinstance(name, str) or os.path.basename(name) != name or name in ("", ".", ".."):
        raise ValueError(f"{name!r:.60} is not the name of an entry")
    return name


def _to_json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"
