"""A folder that appears whole under its name, or not at all.

Everything is written to a hidden folder first: beside the final one, which then gets its name by a
single rename; or inside it, if it exists. Then each entry is moved, and every move is undone if
one of them fails or the job is stopped. A job that was killed leaves the hidden folder; the next
one removes it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.files import (
    EXPORT_NOTE,
    NOTE_BYTES,
    access_error,
    accessing,
    exclusive,
    list_folder,
    make_folder,
    read_document,
)

_INSIDE = ".export.partial"


@contextmanager
def staged(
    folder: Path, note: Mapping[str, Any], *, overwrite: bool, keeping: Iterable[Path] = ()
) -> Iterator[Path]:
    """Give a folder to write to; what is in it is moved to `folder` when the block ends well.

    Args:
        folder: the final name, which messages call it by.
        note: what is remembered of this export.
        overwrite: replace an earlier export, and whatever has the names that are needed.
        keeping: files that must not be replaced.

    Raises:
        OptionError: `folder` is a file, or is not empty and overwrite is not said; or what would be
            replaced has one of the files to keep in it.
        FileAccessError: the system refuses, or another process exports to this folder.
    """
    named, folder = folder, Path(os.path.realpath(folder))  # a link stays a link, and leads to it
    is_there = _check(folder, named, overwrite)
    staging = folder / _INSIDE if is_there else folder.with_name(f".{folder.name[:60]}.partial")
    above = [path for path in folder.parents if not path.exists()]  # the nearest comes first
    with accessing(named, "make folder"):
        os.makedirs(staging, exist_ok=True)
    with exclusive(staging):
        new = staging / "new"
        with accessing(new, "replace"):
            if new.is_dir():
                shutil.rmtree(new)  # of a job that was killed
        make_folder(new)
        try:
            yield new
            entries = sorted(os.listdir(new))
            document = {**note, "entries": entries}
            (new / EXPORT_NOTE).write_bytes(json.dumps(document, indent=1).encode() + b"\n")
            with accessing(named, "write"):
                if is_there:
                    _move_in(new, folder, staging / "old", keeping, named)
                else:
                    os.rename(new, folder)
        except FileAccessError:
            raise
        except OSError as error:
            raise access_error(error, named, "write") from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            with suppress(OSError):  # those that are not empty stay
                for path in above:
                    path.rmdir()


def _check(folder: Path, named: Path, overwrite: bool) -> bool:
    """Whether there is a folder already that may be written to; `named` is what it is called."""
    with accessing(named, "write"):
        if not os.path.lexists(folder):
            return False
        if not folder.is_dir():
            raise OptionError(f"{named} is a file; expected the name of a folder")
    found = [entry.name for entry in list_folder(folder) if entry.name != _INSIDE]
    found.sort(key=lambda name: name == EXPORT_NOTE)  # a name that a user knows comes first
    if found and not overwrite:
        raise OptionError(
            f"{named} is not empty: it holds {found[0]}"
            + (f" and {len(found) - 1:,} more" if len(found) > 1 else "")
            + "; choose another folder, or say overwrite=True to replace an earlier export in it"
        )
    return True


def _move_in(new: Path, folder: Path, old: Path, keeping: Iterable[Path], named: Path) -> None:
    """Move every entry of `new` to `folder`, and out of it what was there of an earlier export."""
    coming = sorted(os.listdir(new))
    going = {name for name in {*coming, *_earlier_entries(folder)} if _is_there(folder / name)}
    for path in keeping:
        for name in going:
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder / name)):
                raise OptionError(
                    f"{named / name} is in the way, and holds {path}, which is exported; choose "
                    "another folder"
                )
    old.mkdir()
    moves = [(folder / name, old / name) for name in sorted(going)]
    moves += [(new / name, folder / name) for name in coming]
    done = 0
    try:
        for start, stop in moves:
            done += 1
            os.rename(start, stop)
    except BaseException:
        for start, stop in reversed(moves[:done]):
            with suppress(OSError):  # the last one may not have happened
                os.rename(stop, start)
        raise


def _earlier_entries(folder: Path) -> list[str]:
    """What an earlier export put here; names that lead elsewhere are not believed."""
    try:
        entries = json.loads(read_document(folder / EXPORT_NOTE, NOTE_BYTES))["entries"]
        return [
            name
            for name in entries
            if os.path.basename(name) == name and name not in ("", ".", "..")
        ]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)
