"""Lets one plan at a time write to a folder of a store that cannot rename.

A note, `begun.json`, comes before all other objects. Everything that a job writes or deletes goes
through `ClaimedStore`, so a job changes nothing after another plan has taken over the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from recordsmith.dataset import (
    BEGUN_NAME,
    MANIFEST_NAME,
    Manifest,
    PublishNote,
    begun_location,
    publish_note_location,
    read_manifest,
    read_publish_note,
)
from recordsmith.errors import MissingFileError, OptionError, option
from recordsmith.files import busy_error
from recordsmith.stores import (
    Data,
    FolderContents,
    Location,
    ObjectInfo,
    ObjectReader,
    ObjectWriter,
    Store,
)
from recordsmith.stores.store import delete_checked


def claim(
    folder: Location,
    fingerprint: str,
    files: Iterable[str] = (),
    *,
    overwrite: bool = False,
    earlier: Manifest | None = None,
    base: str = "",
) -> Location:
    """Note that a job writes to a folder in which its shards appear under their final names.

    Jobs of the same plan may write at the same time: they write equal bytes. With `overwrite`, the
    manifest of an earlier dataset is removed, and a job of another plan cannot end.

    Args:
        fingerprint: of the job.
        files: names of its shards.
        earlier: the manifest in the folder.
        base: identifies it, if its shards stay.

    Returns:
        The folder for writing; the same one if its store can rename.

    Raises:
        OptionError: a job of another plan has begun.
        FileAccessError: another job has just changed the dataset.
    """
    if folder.store.can_rename:
        return folder
    location = begun_location(folder)
    removed = {*files, *(_shard_files(earlier) if overwrite and earlier is not None else ())}
    token = os.urandom(8).hex()
    is_done = False
    while not is_done:
        try:
            version = location.info().version
        except MissingFileError:
            note = PublishNote(fingerprint, tuple(sorted(removed)), base=base, token=token)
            is_done = location.put_if_absent(note.to_bytes())
            continue
        found = read_publish_note(folder, BEGUN_NAME)
        if found is None:  # that job ended just now
            continue
        if found.fingerprint != fingerprint and not overwrite:
            raise begun_error(folder)
        published = read_publish_note(folder)
        of_published = () if published is None else published.removed
        names = tuple(sorted({*removed, *found.removed, *of_published}))
        note = PublishNote(fingerprint, names, base=base, token=token)
        is_done = location.put_if_match(note.to_bytes(), version)
    claimed = Location(ClaimedStore(folder, fingerprint, token), folder.key)
    now = read_manifest(folder) if not overwrite else None
    if now != earlier and not (
        overwrite or (not base and (now is None or now.last_fingerprint == fingerprint))
    ):
        release(claimed)
        raise busy_error(folder)
    if overwrite:
        (claimed / MANIFEST_NAME).delete()
        publish_note_location(claimed).delete()
    return claimed


def begun_error(folder: Location) -> OptionError:
    """Return the error for a folder in which a job of another plan has begun."""
    return OptionError(
        f"another job has begun to write to {folder}",
        option="out",
        value=str(folder),
        remedy="Choose another folder, or wait until that job is done. If it was killed, rerun it, "
        f"replace what it wrote with {option('overwrite', True)}, or remove "
        f"{begun_location(folder)}.",
    )


def note_files(folder: Location, files: Iterable[str]) -> None:
    """Add the names of shards to the note, so that a job that takes over can remove them."""
    store = folder.store
    while isinstance(store, ClaimedStore):
        version, note = store.note()
        if note is None:  # another job of this plan was faster
            return
        store.check()
        removed = tuple(sorted({*note.removed, *files}))
        data = replace(note, removed=removed).to_bytes()
        if begun_location(folder).put_if_match(data, version):
            return


def release(folder: Location, *, leaving: Iterable[str] = ()) -> None:
    """Remove the note of a job that has failed, unless other jobs of its plan need it.

    Args:
        leaving: names in the folder; if the note lists one of them, it stays.
    """
    store = folder.store
    if isinstance(store, ClaimedStore):
        version, note = store.note()
        if note is not None and note.token == store.token and not {*leaving} & {*note.removed}:
            store.delete_if_match(begun_location(folder).key, version)


class ClaimedStore(Store):
    """The store of a folder that one job writes.

    Before an object is replaced or deleted, its version is read, and then the note that the job has
    begun. So if another job takes over, either the note shows it, or the version has changed.
    """

    def __init__(self, folder: Location, fingerprint: str, token: str) -> None:
        self._store = folder.store
        self._folder = folder
        self._fingerprint = fingerprint
        self.token = token
        self.concurrency = self._store.concurrency
        self.is_writable = self._store.is_writable

    def note(self) -> tuple[str, PublishNote | None]:
        """Return the version of the note and the note, None if it does not exist."""
        location = begun_location(self._folder)
        try:
            version = location.info().version
        except MissingFileError:
            return "", None
        return version, read_publish_note(self._folder, BEGUN_NAME)

    def check(self) -> None:
        """Check that no job of another plan has taken over.

        Raises:
            FileAccessError: one has.
        """
        note = read_publish_note(self._folder, BEGUN_NAME)
        if note is None:  # perhaps another job of this plan was faster
            manifest = read_manifest(self._folder)
            found = None if manifest is None else manifest.last_fingerprint
        else:
            found = note.fingerprint
        if found != self._fingerprint:
            raise busy_error(self._folder)

    def open_write(
        self, key: str, *, overwrite: bool = True, is_durable: bool = True
    ) -> ObjectWriter:
        writer = self._store.open_write(key, overwrite=overwrite, is_durable=is_durable)
        writer.check = self.check
        return writer

    def delete(self, key: str) -> None:
        delete_checked(self._store, key, self.check)

    # -- as in the store of the folder -------------------------------------------------------------

    def name_of(self, key: str) -> str:
        return self._store.name_of(key)

    def identity(self, key: str) -> str:
        return self._store.identity(key)

    def absolute(self, key: str) -> tuple[Store, str]:
        return self._store.absolute(key)

    def info(self, key: str) -> ObjectInfo:
        return self._store.info(key)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        return self._store.read(key, start, stop, version)

    def open_read(self, key: str) -> ObjectReader:
        return self._store.open_read(key)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._store.list(prefix)

    def list_folder(self, key: str = "") -> FolderContents:
        return self._store.list_folder(key)

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self._store.put_if_absent(key, data)

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        return self._store.put_if_match(key, data, version)

    def delete_if_match(self, key: str, version: str) -> bool:
        return self._store.delete_if_match(key, version)


def _shard_files(manifest: Manifest) -> list[str]:
    return [shard.file for shard in manifest.shards]
