"""Detects which files of a folder are TFRecord files, by their names or first bytes.

The first bytes are read of a few files of each suffix, and of all of them if there are records
among these. A file whose name differs only in numbers from that of a shard is a shard, too, even if
its first bytes are damaged. Over a network, even fewer are read, and only if no name is one of a
shard.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from recordsmith.dataset.locating.located import ListedFolder, Located
from recordsmith.dataset.names import looks_like_shard, split_of
from recordsmith.format.wire import HEAD_BYTES, starts_with_record
from recordsmith.stores import Location
from recordsmith.support.errors import CorruptDataError, Defect, ForbiddenFileError
from recordsmith.support.words import first_of

_NAMED = 5
_DIGITS = re.compile(r"\d+")
_PEEKS, _REMOTE_PEEKS = 64, 2  # files of a suffix
_MAX_PEEKS, _MAX_REMOTE_PEEKS = 1024, 16


def records_in(listed: ListedFolder) -> list[str]:
    """The names of TFRecord files in a folder, by their names or first bytes."""
    folder, names = listed.location, visible_files(listed)
    is_remote = folder.store.is_remote
    records = {name for name in names if looks_like_shard(name)}
    by_suffix: dict[str, list[str]] = {}
    for name in names if not (is_remote and records) else ():
        if name not in records:
            _, dot, suffix = name.rpartition(".")
            by_suffix.setdefault(_without_numbers(dot and suffix.lower()), []).append(name)
    left = _MAX_REMOTE_PEEKS if is_remote else _MAX_PEEKS
    for others in by_suffix.values():
        peeks = min(_REMOTE_PEEKS if is_remote else _PEEKS, left)
        few = others[:: -(-len(others) // peeks)] if peeks else []
        left -= len(few)
        found = [name for name in few if looks_like_records(folder / name)]
        if found and is_remote:
            records.update(others if len(found) == len(few) else found)
        elif found:
            rest = (name for name in others if name not in few)
            found += (name for name in rest if looks_like_records(folder / name))
            # a shard whose start is damaged must not be missing in silence
            patterns = {_without_numbers(name) for name in found}
            records.update(name for name in others if _without_numbers(name) in patterns)
    return [name for name in names if name in records]


def visible_files(folder: ListedFolder) -> list[str]:
    """Return the names of all files that are not hidden."""
    return [entry.name for entry in folder.objects if not entry.name.startswith(".")]


def _without_numbers(name: str) -> str:
    return _DIGITS.sub("0", name)


def looks_like_records(location: Location) -> bool:
    """Whether a file is a TFRecord by its name, or by its first bytes."""
    if looks_like_shard(location.name):
        return True
    try:
        return starts_with_record(location.read(0, HEAD_BYTES))
    except ForbiddenFileError:
        return False


def compare_names(located: Located, folder: ListedFolder, document: str) -> Located:
    """Report the files of a folder that may be the missing shards of a document."""
    listed = {shard.location.name for shard in located.shards}
    own = [shard for shard in located.missing if shard.location.parent == folder.location]
    names = [name for name in records_in(folder) if name not in listed] if own else []
    if not names:
        return located
    missing = [shard for shard in located.missing if shard not in own]  # of layers
    for shard in own:
        error = CorruptDataError(
            Defect.MISSING_SHARD,
            "the names of the shards and the document disagree",
            found=first_of(names, _NAMED),
            expected=f"{shard.location.name}, as in {document}",
            remedy="Rename the files, or open them with a glob. `recordsmith salvage` recovers the "
            "records of all of them.",
            path=shard.location,
        )
        missing.append(shard._replace(error=error))
    unlisted = tuple(folder.shard(name, split_of(name)) for name in names)
    return replace(located, missing=tuple(missing), unlisted=unlisted)
