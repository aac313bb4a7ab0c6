"""Locks the folder of a dataset for one job, and checks what it contains."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from recordsmith.building.claims import begun_error
from recordsmith.building.publishing import make_small_files, names_in
from recordsmith.dataset import (
    BEGUN_NAME,
    LABEL_MAP_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    parse_shard_name,
    read_manifest,
    read_publish_note,
)
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.errors import (
    CorruptDataError,
    FileAccessError,
    MissingFileError,
    OptionError,
    option,
)
from recordsmith.stores import Location, as_location, no_lock_notice
from recordsmith.stores.checks import check_writable

WRITING_THREADS = 8
"""The default maximum of threads that write shards: more would wait for the disk."""

_REPLACE = f"Choose another folder, or pass {option('overwrite', True)} to replace it."


def check_folder(folder: Location) -> None:
    """Validate the location of a folder, which need not exist."""
    check_writable(folder.store, str(folder))
    if folder.is_folder():
        return
    try:
        (folder if folder.key else as_location(str(folder))).info()
    except MissingFileError:
        return
    except FileAccessError as error:
        if error.errno == errno.EISDIR:  # another job has just made it
            return
        if error.errno != errno.EINVAL:
            error.operation = "write"
            raise
    raise OptionError(f"{folder} is a file", option="out", value=str(folder), expected="a folder")


@contextmanager
def locked_folder(folder: Location, *, needs_lock: bool = False) -> Iterator[tuple[str, ...]]:
    """Lock the folder for this job, and remove it at the end if it is new and empty.

    With `needs_lock`, fails if the file system does not support locks. Yields notices.
    """
    is_new = not folder.is_folder()
    is_safe = not folder.store.can_rename  # a note that the job has begun keeps others out
    try:
        with (folder / INTERNAL_FOLDER).locked() as is_locked:
            if needs_lock and not is_locked and not is_safe:
                raise OptionError(
                    f"{folder} cannot be locked, because its file system does not support locks",
                    option="lock",
                    remedy="Two jobs that change the dataset at the same time would damage it. If "
                    f"no other job is running, pass {option('lock', False)}.",
                )
            yield () if is_locked or is_safe else (no_lock_notice(folder),)
    finally:
        if is_new:
            folder.store.remove_empty_folder(folder.key)


def existing_dataset(
    folder: Location,
    fingerprint: str,
    files: Sequence[str],
    *,
    has_label_map: bool,
    overwrite: bool,
) -> Manifest | None:
    """The manifest of an existing dataset: of the same plan, or of any with `overwrite`."""
    # a job that ends meanwhile removes its note after it has written the manifest
    names = names_in(folder)
    begun = None if folder.store.can_rename else read_publish_note(folder, BEGUN_NAME)
    try:
        manifest = read_manifest(folder)
    except CorruptDataError:
        if not overwrite:
            raise
        manifest = None
    if overwrite:
        return manifest
    if manifest is not None:
        if manifest.provenance.get("fingerprint") != fingerprint:
            raise OptionError(
                f"{folder} contains another dataset of {manifest.record_count} records, made from "
                "other files or with other options",
                option="out",
                value=str(folder),
                remedy=_REPLACE,
            )
        if begun is not None and not begun.allows(manifest):
            raise begun_error(folder)
        return manifest if _is_complete(folder, manifest, has_label_map=has_label_map) else None
    if begun is not None:  # this same job was killed, or another one of its plan is running
        if begun.fingerprint != fingerprint:
            raise begun_error(folder)
        own = {*begun.removed, LABELS_NAME, LABEL_MAP_NAME}
        names = [name for name in names if name not in own]
    note = read_publish_note(folder)
    if note is not None and note.fingerprint == fingerprint:
        return None  # this same job was killed while it published its files
    if note is not None and note.base:
        raise OptionError(
            f"{folder} contains a dataset with an interrupted append",
            option="out",
            value=str(folder),
            remedy="Rerun the append to finish the dataset, or pass "
            f"{option('overwrite', True)} to replace it.",
        )
    own_names = {*files, LABELS_NAME, LABEL_MAP_NAME, *(note.removed if note else ())}
    splits = {number.split for file in files if (number := parse_shard_name(file))}
    in_the_way = [
        name
        for name in names
        if name in own_names or ((number := parse_shard_name(name)) and number.split in splits)
    ]
    if in_the_way:
        raise OptionError(
            f"{folder} already contains {in_the_way[0]}, but no manifest",
            option="out",
            value=str(folder),
            remedy=_REPLACE,
        )
    return None


def _is_complete(folder: Location, manifest: Manifest, *, has_label_map: bool) -> bool:
    """Whether all files exist with their sizes; `verify` checks their content."""
    expected = {shard.file: shard.size_bytes for shard in manifest.shards}
    small_files = make_small_files(manifest, has_label_map=has_label_map)
    expected |= {name: len(data) for name, data in small_files.items() if name != MANIFEST_NAME}
    sizes = {name: size for name, kind, size, *_ in folder.list_entries() if kind == "object"}
    return all(sizes.get(name) == size for name, size in expected.items())
