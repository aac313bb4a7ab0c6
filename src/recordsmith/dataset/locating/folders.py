"""Finds the shards of a folder: those of its manifest, else those of a folder without one.

A folder in which a job is writing has no dataset yet: an error reports it.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from recordsmith.dataset.locating.by_manifest import locate_packed
from recordsmith.dataset.locating.located import ListedFolder, Located
from recordsmith.dataset.locating.record_files import compare_names
from recordsmith.dataset.locating.without_manifest import locate_files, locate_tfds
from recordsmith.dataset.manifest import MANIFEST_NAME, read_begun_note, read_manifest
from recordsmith.stores import Location
from recordsmith.support.errors import CorruptDataError, DataError, Defect

_DOCUMENT = re.compile(
    r"\..*|LICENSE|.*\.(?:json|txt|pbtxt|md|csv|html|ya?ml|idx|tfindex)", re.IGNORECASE
)


def locate_folder(folder: ListedFolder, around_defects: bool) -> Located:
    """Find the shards of a folder that can be listed; `around_defects` as in `locate`."""
    if not around_defects:
        return _locate_finished(folder)
    try:
        located = _locate_finished(folder)
    except DataError as error:
        located = replace(locate_files(folder), ignored=(error,))
    shards = [*located.shards, *located.unlisted]
    names = {shard.location.name for shard in shards}
    left_out = tuple(
        folder.location / entry.name
        for entry in folder.objects
        if entry.name not in names and not _DOCUMENT.fullmatch(entry.name)
    )
    return replace(located, shards=shards, left_out=left_out)


def _locate_finished(folder: ListedFolder) -> Located:
    """Find the shards of a folder in which no job is writing.

    Where files are renamed, the manifest is read before the folder is listed, as all files of a
    dataset have their names before its manifest. Elsewhere, a job first writes the note that it
    has begun, then shards and manifest, and last deletes the note. The folder is listed first,
    because that shows which documents need a request, then come the manifest and the note:

    - A note: the manifest is complete only if the note allows it.
    - A manifest and no note: no job was at work between manifest and note, so the manifest is that
      of a finished job. The listing may be older than that job; it is made again if it disagrees.
    - Neither in the listing nor later a manifest, and no note in between: a job whose shards were
      listed would have begun before, and its note or its manifest would be there.
    """
    location, renames = folder.location, folder.location.store.can_rename
    manifest = None
    if renames or folder.has(MANIFEST_NAME):
        manifest = read_manifest(location)
    is_named = renames and manifest is not None  # so all files have their names
    begun = None if is_named else read_begun_note(location)
    if manifest is not None and (begun is None or begun.allows(manifest)):
        located = locate_packed(location, manifest, folder)
        files = (file for shard in located.shards for file in (shard, *shard.layers))
        if not renames and (located.missing or not all(file.has_listed_size for file in files)):
            folder = ListedFolder(location)
            located = locate_packed(location, manifest, folder)
        of_layers = any(missing.location.parent != location for missing in located.missing)
        latest = read_manifest(location) if of_layers else None
        if latest is not None and latest.to_bytes() != manifest.to_bytes():  # changed meanwhile
            return _locate_finished(ListedFolder(location))
        return compare_names(located, folder, MANIFEST_NAME)
    if begun is not None:
        raise _unfinished_error(location)
    if not renames and read_manifest(location) is not None:  # a job has just ended
        return _locate_finished(ListedFolder(location))
    return locate_tfds(folder) or locate_files(folder)


def locate_by_manifest(folder: Location) -> Located | None:
    """Find the shards of a folder that cannot be listed; None if it has no manifest."""
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    begun = read_begun_note(folder)
    if begun is not None and not begun.allows(manifest):
        raise _unfinished_error(folder)
    return locate_packed(folder, manifest)


def _unfinished_error(folder: Location) -> DataError:
    return CorruptDataError(
        Defect.UNFINISHED_DATASET,
        "the job that writes this dataset is running or was interrupted, so files may be missing",
        remedy="Rerun the same job to finish the dataset. `recordsmith recover` finishes or undoes "
        "a change of a dataset.",
        path=folder,
    )
