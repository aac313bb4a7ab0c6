"""Lets one plan at a time write to a folder of a store that cannot rename.

A note, `begun.json`, comes before all other objects. Everything that a job writes or deletes goes
through `ClaimedStore`, so a job changes nothing after another plan has taken over the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from recordsmith.dataset import (
    MANIFEST_NAME,
    BegunNote,
    Manifest,
    begun_location,
    read_begun_note,
    read_manifest,
)
from recordsmith.stores import Location, ObjectWriter, Store, WrappedStore, busy_error
from recordsmith.support.errors import CorruptDataError, OptionError, option


def claim(
    folder: Location,
    fingerprint: str,
    files: Iterable[str] = (),
    *,
    overwrite: bool = False,
    earlier: Manifest | None = None,
    base: str = "",
    command: str = "",
    replaced: Sequence[str] = (),
) -> Location:
    """Note that a job writes to a folder without renaming, and return the folder for writing.

    Jobs of the same plan may write at the same time: they write equal bytes. With `overwrite`, the
    manifest of an earlier dataset is removed, and a job of another plan cannot end. `base`
    identifies the earlier dataset if its shards stay, all but those that are `replaced`.
    """
    if folder.store.can_rename:
        return folder
    own = BegunNote(
        fingerprint, tuple(sorted({*files})), base=base, command=command, replaced=tuple(replaced)
    )
    note = _begin(folder, own, overwrite)
    store = ClaimedStore(folder, note)
    claimed = Location(store, folder.key)
    if overwrite:
        with suppress(CorruptDataError):
            if (now := read_manifest(folder)) is not None:
                note_files(claimed, [shard.file for shard in now.shards])
        store.delete_if_last((folder / MANIFEST_NAME).key)
        return claimed
    now = read_manifest(folder)
    if now != earlier and (base or (now is not None and now.last_fingerprint != fingerprint)):
        release(claimed)
        raise busy_error(folder)
    return claimed


def _begin(folder: Location, own: BegunNote, overwrite: bool) -> BegunNote:
    """Write the note of a job, or join the jobs of the same plan; return the note."""
    location = begun_location(folder)
    while True:
        version, begun = _read_begun(folder)
        note = replace(own, token=os.urandom(8).hex(), is_takeover=overwrite)
        if begun is None:
            if location.put_if_absent(note.to_bytes()):
                return note
            continue
        if begun.fingerprint != own.fingerprint and not overwrite:
            raise begun_error(folder)
        if not overwrite:
            note = replace(begun, base=own.base, command=own.command, replaced=own.replaced)
        note = replace(note, removed=tuple(sorted({*own.removed, *begun.removed})))
        if note == begun or location.put_if_match(note.to_bytes(), version):
            return note


def _read_begun(folder: Location) -> tuple[str, BegunNote | None]:
    """Return the version of the note and the note, None if it does not exist."""
    version = folder.store.find_version(begun_location(folder).key)
    return version or "", None if version is None else read_begun_note(folder)


def begun_error(folder: Location) -> OptionError:
    """Return the error for a folder in which a job of another plan has begun."""
    return OptionError(
        f"another job has begun to write to {folder}",
        option="out",
        value=str(folder),
        remedy="Choose another folder, or wait until that job is done. If it was killed, rerun it, "
        f"or replace what it wrote with {option('overwrite', True)}. `recordsmith recover` "
        "finishes or undoes a change of a dataset.",
    )


def note_files(
    folder: Location,
    files: Iterable[str],
    renamed: Mapping[str, str] | None = None,
    *,
    is_replacing: bool = False,
) -> None:
    """Add names of shards to the note of a claimed folder, for a job that takes over.

    `renamed`: the new names of shards that stay, which the job gives them from here on;
    `is_replacing`: whether it replaces shards from here on.
    """
    store = folder.store
    while isinstance(store, ClaimedStore):
        version, note = _read_begun(folder)
        store.check()
        if note is None:  # another job of this plan was faster
            return
        note = replace(
            note,
            removed=tuple(sorted({*note.removed, *files})),
            renamed=renamed or note.renamed,
            is_replacing=note.is_replacing or is_replacing,
        )
        if store.put_if_match(begun_location(folder).key, note.to_bytes(), version):
            return


def release(folder: Location, *, leaving: Collection[str] = ()) -> None:
    """Remove the note of a job that has ended, unless another job has taken over."""
    store = folder.store
    if store.can_rename:
        begun_location(folder).delete()
    elif isinstance(store, ClaimedStore):
        _, note = _read_begun(folder)
        if note is not None and not {*leaving} & {*note.removed}:
            store.delete_if_last(begun_location(folder).key)


class ClaimedStore(WrappedStore):
    """The store of a folder that one job writes.

    Before an object is replaced or deleted, its version is read, and then the note that the job has
    begun. So if another job takes over, either the note shows it, or the version has changed.
    """

    def __init__(self, folder: Location, note: BegunNote) -> None:
        super().__init__(folder.store)
        self._folder = folder
        self._note = note

    @property
    def replaced(self) -> tuple[str, ...]:
        """The shards that get other content: it is written next to them first."""
        return self._note.replaced

    def check(self) -> bool:
        """Check that no job of another plan has taken over.

        Returns whether an object with the right bytes may stay: not if another plan was there,
        because one of its jobs may still replace the version that it knows.
        """
        note = read_begun_note(self._folder)
        if note is None:  # perhaps another job of this plan was faster
            manifest = read_manifest(self._folder)
            fingerprint = None if manifest is None else manifest.last_fingerprint
        else:
            fingerprint = note.fingerprint
        if fingerprint != self._note.fingerprint:
            raise busy_error(self._folder)
        return not (self._note if note is None else note).is_takeover

    def delete_if_last(self, key: str) -> None:
        """Delete an object, unless a later job has begun to overwrite, also of this plan."""
        while (version := self.store.find_version(key)) is not None:
            note = read_begun_note(self._folder)
            is_last = note is not None and note.token == self._note.token
            if not is_last or self.store.delete_if_match(key, version):
                return

    def delete_version(self, key: str, version: str) -> None:
        """Delete an object whose version was read just now."""
        self.check()
        if not self.store.delete_if_match(key, version):
            self.delete(key)

    def absolute(self, key: str) -> tuple[Store, str]:
        return self.store.absolute(key)

    def around(self, store: Store) -> Store:
        return store  # for reading

    def open_write(
        self, key: str, *, overwrite: bool = True, is_durable: bool = True
    ) -> ObjectWriter:
        writer = self.store.open_write(key, overwrite=overwrite, is_durable=is_durable)
        writer.check = self.check
        return writer

    def copy(self, old: str, new: str, check: Callable[[], bool] | None = None) -> None:
        self.store.copy(old, new, check or self.check)

    def move(self, old: str, new: str) -> None:
        self.copy(old, new)
        self.delete(old)

    def delete(self, key: str) -> None:
        self.store.delete_checked(key, self.check)
