"""Locks the folder of a dataset for one job, checks what it contains, and publishes the new one.

Everything that needs disk space is written before the first rename. While the note of a begun
publication exists, the folder is not a dataset, so a killed job leaves no partial output. Rerun it
to finish.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from recordsmith.dataset import (
    DONE_SUFFIX,
    INTERNAL_FOLDER,
    LABEL_MAP_NAME,
    LABELS_NAME,
    LAYERS_FOLDER,
    MANIFEST_NAME,
    PARTIAL_SUFFIX,
    SIDE_SUFFIXES,
    BegunNote,
    ClassNames,
    KeypointClasses,
    Manifest,
    ShardEntry,
    begun_location,
    is_shard_name,
    keep_for_copy,
    label_map_to_bytes,
    labels_to_bytes,
    parse_shard_name,
    read_begun_note,
    read_manifest,
    split_of_part,
)
from recordsmith.format.example import Schema
from recordsmith.format.wire import Compression
from recordsmith.stores import (
    NOTE_BYTES,
    FolderEntry,
    Location,
    as_location,
    folder_error,
    no_lock_notice,
    write_atomically,
)
from recordsmith.support.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    FunctionError,
    MissingFileError,
    OptionError,
    SourceError,
    option,
)
from recordsmith.support.threads import call_with_timeout
from recordsmith.support.work import holding_signals
from recordsmith.writing.building import claims
from recordsmith.writing.building.shards import (
    ShardResult,
    completed_files,
    done_location,
    final_location,
    for_each,
    partial_location,
    size_and_checksum,
)

WRITING_THREADS = 8
"""The default maximum of threads that write shards: more would wait for the disk."""

_LAYER_FILE = re.compile(r"[0-9a-f]{8}-[0-9]{1,20}-[0-9a-f]{8}\.tfrecord")
_REPLACE = f"Choose another folder, or pass {option('overwrite', True)} to replace it."


def check_folder(folder: Location) -> None:
    """Validate the location of a folder, which need not exist."""
    folder.store.check_writable(str(folder))
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


def packed_manifest(folder: Location) -> Manifest:
    """Return the manifest of a dataset; OptionError if there is none."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise OptionError(
            f"{folder} has no {MANIFEST_NAME}",
            option="path",
            value=str(folder),
            remedy="Pass the folder of a dataset that recordsmith has written; `recordsmith "
            "reshard` makes one of other files.",
        )
    return manifest


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
    """The manifest of an existing dataset: of the same plan, or of any with `overwrite`.

    For a locked folder, as `overwrite` first finishes an interrupted change on a local disk.
    """
    can_rename = folder.store.can_rename
    if overwrite:
        begun = read_begun_note(folder) if can_rename else None
        if begun is not None and begun.base:
            _finish_change(folder, begun)
        with suppress(CorruptDataError):
            return read_manifest(folder)
        return None
    # a job that ends meanwhile removes its note after it has written the manifest
    names = names_in(folder)
    begun = read_begun_note(folder)
    manifest = read_manifest(folder)
    if manifest is not None:
        if manifest.provenance.get("fingerprint") != fingerprint:
            raise OptionError(
                f"{folder} contains another dataset of {manifest.record_count} records, made from "
                "other files or with other options",
                option="out",
                value=str(folder),
                remedy=_REPLACE,
            )
        if begun is not None and not can_rename and not begun.allows(manifest):
            raise claims.begun_error(folder)
        return manifest if _is_complete(folder, manifest, has_label_map=has_label_map) else None
    if begun is not None and begun.fingerprint == fingerprint:
        return None  # this same job was killed, or another one of its plan is running
    if begun is not None and not can_rename:
        raise claims.begun_error(folder)
    if begun is not None and begun.base:
        raise interrupted_error(folder)
    own_names = {*files, LABELS_NAME, LABEL_MAP_NAME, *(begun.removed if begun else ())}
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


def check_task_folder(folder: Location) -> None:
    """Check that a task does not replace shards that an interrupted change needs to finish."""
    begun = read_begun_note(folder) if folder.store.can_rename else None
    if begun is not None and begun.base and is_publishing(folder, begun):
        raise interrupted_error(folder)


def _finish_change(folder: Location, note: BegunNote) -> None:
    """Finish an interrupted change, as its rerun would publish files of a job that overwrites it.

    A foreign note may name any file: move only files with names of shards.
    """
    waiting = _waiting(folder, MANIFEST_NAME)
    with suppress(CorruptDataError):
        manifest = read_manifest(waiting.parent, waiting.name)
        if manifest is not None and manifest.last_fingerprint == note.fingerprint:
            files = {*note.renamed, *note.renamed.values(), *_shard_files(manifest)}
            if all(map(is_shard_name, files)):
                finish_publishing(folder)


def interrupted_error(folder: Location) -> OptionError:
    return OptionError(
        f"{folder} contains a dataset that an interrupted command was changing",
        option="out",
        value=str(folder),
        remedy=f"`recordsmith recover {folder}` finishes it, and so does the same command. Or pack "
        f"with {option('overwrite', True)} to replace it.",
    )


def _is_complete(folder: Location, manifest: Manifest, *, has_label_map: bool) -> bool:
    """Whether all files exist with their sizes; `verify` checks their content."""
    expected = {shard.file: shard.size_bytes for shard in manifest.shards}
    small_files = make_small_files(manifest, has_label_map=has_label_map)
    expected |= {name: len(data) for name, data in small_files.items() if name != MANIFEST_NAME}
    sizes = {name: size for name, kind, size, *_ in folder.list_entries() if kind == "object"}
    return all(sizes.get(name) == size for name, size in expected.items())


def make_manifest(
    splits: Iterable[str],
    results: Iterable[tuple[str, ShardResult]],
    compression: Compression,
    class_names: ClassNames | None,
    provenance: Mapping[str, Any],
    *,
    schemas: Mapping[str, Schema] | None = None,
    arrow_schema: str | None = None,
    keypoint_classes: KeypointClasses | None = None,
) -> Manifest:
    """Make the manifest of written shards, from the split and the result of each.

    `schemas` are the known ones by split; others are merged from the shards.
    """
    of_splits: dict[str, list[ShardResult]] = {split: [] for split in splits}
    for split, result in results:
        of_splits[split].append(result)
    schemas = {
        split: (schemas or {}).get(split) or Schema.merged(result.schema for result in of_split)
        for split, of_split in of_splits.items()
    }
    return Manifest(
        {
            split: tuple(result.entry for result in of_split)
            for split, of_split in of_splits.items()
        },
        Schema.merged(list(schemas.values())),
        schemas,
        compression,
        class_names,
        provenance,
        arrow_schema,
        keypoint_classes or {},
    )


def publish_dataset(
    folder: Location,
    manifest: Manifest,
    *,
    has_label_map: bool,
    earlier: Manifest | None = None,
    renamed: Mapping[str, str] | None = None,
    base: str = "",
    command: str = "",
    written: Sequence[str] = (),
) -> None:
    """Give all files their final names, and remove those of an earlier dataset.

    With `base`, which identifies it, its shards stay: `renamed` has new names by old ones, and
    `written` the new and replaced shards.
    """
    renamed = renamed or {}
    if base and folder.store.can_rename:  # a killed job may have left others of the same names
        clean_up(folder, keeping=written)
    replaced = set() if base else _files_to_replace(folder, manifest.splits, earlier)
    small_files = make_small_files(manifest, has_label_map=has_label_map)
    if len(small_files[MANIFEST_NAME]) > NOTE_BYTES:
        raise OptionError(
            f"the manifest would have {len(small_files[MANIFEST_NAME]):,} bytes",
            option="out",
            value=str(folder),
            expected=f"at most {NOTE_BYTES:,}, as more are not read",
            remedy="Write fewer shards, or shorter texts for the history.",
        )
    new = {*_shard_files(manifest), *small_files}
    entries = folder.without_links().list_entries()
    folders = {name for name, kind, *_ in entries if kind == "folder"}
    for name in (*replaced, *renamed, *new):
        if name in folders:
            raise folder_error(folder / name)
    others = replaced if base else {*replaced, LABELS_NAME, LABEL_MAP_NAME} - new
    if folder.store.can_rename:
        files = tuple(sorted({*replaced, *renamed, *new}))
        note = BegunNote(manifest.last_fingerprint, files, renamed, base, command)
        write_atomically(begun_location(folder), note.to_bytes())
    elif base:
        claims.note_files(folder, renamed, renamed)
    else:  # a rerun makes all of it again
        _put_in_place(folder, manifest, small_files, small_files, others, {})
        return
    for name, data in small_files.items():  # the manifest last: it shows that all are there
        write_atomically(_waiting(folder, name), data)
    folder.store.sync((folder / INTERNAL_FOLDER).key)
    waiting = folder.store.replaced if isinstance(folder.store, claims.ClaimedStore) else ()
    _publish_waiting(folder, manifest, small_files, others, renamed, waiting)


def is_publishing(folder: Location, note: BegunNote) -> bool:
    """Whether the job of a note has begun to rename files, and has all that it needs to finish."""
    waiting = _waiting(folder, MANIFEST_NAME)
    try:
        manifest = read_manifest(waiting.parent, waiting.name)
    except CorruptDataError:
        return True
    return manifest is not None and manifest.last_fingerprint == note.fingerprint


def finish_interrupted(folder: Location, note: BegunNote) -> Manifest:
    """Finish a job that was killed while it published its shards, in a locked folder."""
    _check_all_there(folder, note)
    with claimed_folder(
        folder,
        note.fingerprint,
        (),
        earlier=read_manifest(folder),
        base=note.base,
        command=note.command,
        replaced=note.replaced,
    ) as claimed:
        return finish_publishing(claimed)


def _check_all_there(folder: Location, note: BegunNote) -> None:
    """Raise CorruptDataError, with nothing changed, if a shard of a waiting manifest is missing.

    Or if a file is no shard: a note that somebody else has written may name any.
    """
    waiting = _waiting(folder, MANIFEST_NAME)
    manifest = read_manifest(waiting.parent, waiting.name)
    if manifest is None:
        return
    old_names = {new: old for old, new in note.renamed.items()}
    final, internal = (
        {entry.name: entry.size_bytes for entry in _objects_in(place)}
        for place in (folder, (folder / INTERNAL_FOLDER).without_links())
    )
    for shard in manifest.shards:
        places = (
            internal.get(f"{shard.file}{PARTIAL_SUFFIX}"),
            final.get(shard.file),
            final.get(old_names.get(shard.file, "")),
        )
        if shard.size_bytes not in places:
            raise _lost_error(folder / shard.file)
    for layer in manifest.layers:
        place = (folder / layer.folder).without_links()
        there = {entry.name: entry.size_bytes for entry in _objects_in(place)}
        for shard in layer.shards.values():
            if there.get(shard.file) != shard.size_bytes:
                raise _lost_error(place / shard.file)
    for file in (*_shard_files(manifest), *note.renamed, *note.renamed.values(), *note.replaced):
        if not is_shard_name(file):
            raise CorruptDataError(
                Defect.UNFINISHED_DATASET,
                f"{begun_location(folder)} names {file!r:.80}, which is no name of a shard",
                remedy="Run the command again that was interrupted, or remove that note.",
                path=folder,
            )


def finish_publishing(folder: Location) -> Manifest:
    """Finish the publication of a killed job that adds to a dataset.

    Needs only the note and the files; the inputs of the job may be gone.
    """
    waiting = _waiting(folder, MANIFEST_NAME)  # the last file to be moved
    manifest = read_manifest(waiting.parent, waiting.name)
    note = read_begun_note(folder)
    if manifest is not None and note is not None:
        small_files = [LABELS_NAME, LABEL_MAP_NAME, MANIFEST_NAME]
        _publish_waiting(folder, manifest, small_files, set(), note.renamed, note.replaced)
        return manifest
    manifest = read_manifest(folder)
    if manifest is None:
        raise CorruptDataError(
            Defect.UNFINISHED_DATASET,
            f"a job was interrupted while it renamed the finished shards, and {waiting} is missing",
            remedy="Open the existing shards by name or with a glob.",
            path=folder,
        )
    _finish(folder, manifest)
    return manifest


def _waiting(folder: Location, name: str) -> Location:
    """Where a small file waits until everything else has its name."""
    return folder / INTERNAL_FOLDER / f"{name}{PARTIAL_SUFFIX}"


def _publish_waiting(
    folder: Location,
    manifest: Manifest,
    small_files: Collection[str],
    others: set[str],
    renamed: Mapping[str, str],
    replaced: Collection[str],
) -> None:
    """Publish shards, and small files that wait; `others` go. A killed job may repeat any step."""
    if not folder.store.can_rename:
        waiting = {name: _waiting(folder, name) for name in small_files}
        contents = {name: file.read() for name, file in waiting.items() if file.exists()}
        _put_in_place(folder, manifest, contents, small_files, others, renamed, replaced)
        return
    with _held_signals(folder):
        (folder / MANIFEST_NAME).delete()  # from here on the folder is not a dataset
        _remove(folder, others)
        for old, new in _renamed_files(folder, renamed):
            with suppress(MissingFileError):  # a killed job has moved it
                old.move(new)
        # the manifest is the last of them
        move_new_files(folder, [*_shard_files(manifest), *small_files])
        _finish(folder, manifest)


def _put_in_place(
    folder: Location,
    manifest: Manifest,
    contents: Mapping[str, bytes],
    small_files: Collection[str],
    others: set[str],
    renamed: Mapping[str, str],
    replaced: Collection[str] = (),
) -> None:
    """Publish where files are not renamed, and new shards have their names already.

    Shards of an earlier dataset that stay are copied before the manifest is replaced, so it can be
    read at any time. Only where shards are `replaced`, the note keeps readers out from here on.
    """
    entries = {shard.file: shard for shard in manifest.shards}
    waiting = {file: _waiting_files(folder, file) for file in replaced if file in entries}
    if waiting:
        claims.note_files(folder, (), is_replacing=True)
    with _held_signals(folder):
        _remove(folder, others)
        for_each(_renamed_files(folder, renamed), lambda pair: _copy(*pair), folder)
        shards_renamed = [(folder / old, folder / new) for old, new in renamed.items()]
        for_each([*waiting], lambda file: _replace_by_waiting(waiting[file], entries[file]), folder)
        for_each(shards_renamed, lambda pair: keep_for_copy(*pair), folder)
        for name, data in contents.items():  # the manifest is the last of them
            (folder / name).put(data)
        _remove(folder, renamed)
        left = [old for pairs in waiting.values() for old, _ in pairs]
        for_each(left, Location.delete, folder)
        for name in small_files:  # a rerun needs the manifest until the rest is removed
            _waiting(folder, name).delete()
        _finish(folder, manifest)


def _held_signals(folder: Location) -> AbstractContextManager[object]:
    """Let Ctrl-C wait for the end of the block, unless a server may not respond for minutes."""
    return nullcontext() if folder.store.is_remote else holding_signals()


def _renamed_files(folder: Location, renamed: Mapping[str, str]) -> list[tuple[Location, Location]]:
    """Return where shards that stay, and what is kept of each, are and will be."""
    return [
        (final_location(folder, old), final_location(folder, new))
        for pair in renamed.items()
        for old, new in zip(*map(_with_side_files, pair), strict=True)
    ]


def move_new_files(folder: Location, files: Iterable[str]) -> None:
    """Rename new files and what is kept of shards, without those that a killed job has renamed."""
    waiting = {
        entry.name
        for entry in _objects((folder / INTERNAL_FOLDER).without_links())
        if entry.name.endswith(PARTIAL_SUFFIX)
    }

    def move(file: str) -> None:
        if partial_location(folder, file).name in waiting:
            final_location(folder, f"{file}.columns").delete()  # of the shard that is replaced
        for name in _with_side_files(file):
            partial = partial_location(folder, name)
            if partial.name in waiting:
                partial.move(final_location(folder, name))

    for_each([*files], move, folder)  # in order where files are renamed


def _waiting_files(folder: Location, file: str) -> list[tuple[Location, Location]]:
    """Where a shard that is replaced, and what is kept of it, waits and will be."""
    return [
        (folder / INTERNAL_FOLDER / f"{name}{PARTIAL_SUFFIX}", final_location(folder, name))
        for name in _with_side_files(file)
    ]


def _replace_by_waiting(pairs: Sequence[tuple[Location, Location]], entry: ShardEntry) -> None:
    (waiting, shard), *sides = pairs
    if not waiting.exists():
        if size_and_checksum(shard) != (entry.size_bytes, entry.crc32c):
            raise _lost_error(shard)
        return  # a killed job has replaced and removed it
    for old, new in sides:
        new.delete()  # what is kept of the earlier shard
        _copy(old, new)
    _copy(waiting, shard)
    keep_for_copy(waiting, shard)


def _lost_error(shard: Location) -> CorruptDataError:
    return CorruptDataError(
        Defect.UNFINISHED_DATASET,
        "the new content of this shard is missing: another job or program has removed it",
        remedy="Nothing else was changed since. Restore the file from a copy, or open the other "
        "shards by name.",
        path=shard,
    )


def _with_side_files(file: str) -> list[str]:
    return [file + suffix for suffix in ("", *SIDE_SUFFIXES)]


def _copy(source: Location, target: Location) -> None:
    """Copy a file, unless a killed job has copied and removed it."""
    if source.exists():
        source.store.copy(source.key, target.key)


def _remove(folder: Location, names: Iterable[str]) -> None:
    files = [final_location(folder, file) for name in sorted(names)
             for file in _with_side_files(name)]  # fmt: skip
    for_each(files, Location.delete, folder)


def _finish(folder: Location, manifest: Manifest) -> None:
    folder.store.sync(folder.key)
    _remove_unlisted_layers(folder, manifest)
    notes = {done_location(folder, file).name for file in _shard_files(manifest)}
    with suppress(MissingFileError):  # the folder
        internal = folder / INTERNAL_FOLDER
        _remove_listed(internal, [entry for entry in _objects(internal) if entry.name in notes])
    claims.release(folder)


def _remove_unlisted_layers(folder: Location, manifest: Manifest) -> None:
    """Remove files of layers that the manifest does not list: of an earlier one or a killed job."""
    listed = {
        layer.name: {shard.file for shard in layer.shards.values()} for layer in manifest.layers
    }
    for name in _folders(folder / LAYERS_FOLDER):
        place = (folder / LAYERS_FOLDER / name).without_links()
        for part in (place / INTERNAL_FOLDER, place):
            unlisted = [
                part / entry.name
                for entry in _objects_in(part)
                if (match := _LAYER_FILE.match(entry.name))
                and (match[0] not in listed.get(name, ()) or entry.name.endswith(PARTIAL_SUFFIX))
            ]
            for_each(unlisted, Location.delete, folder)
            part.store.remove_empty_folder(part.key)
    if not manifest.layers:
        folder.store.remove_empty_folder((folder / LAYERS_FOLDER).key)


def _folders(folder: Location) -> list[str]:
    if not folder.is_folder():
        return []
    entries = folder.without_links().list_entries()
    return [entry.name for entry in entries if entry.kind == "folder"]


def _objects(folder: Location) -> list[FolderEntry]:
    return [entry for entry in folder.list_entries() if entry.kind == "object"]


def _objects_in(folder: Location) -> list[FolderEntry]:
    """The objects of a folder that may be missing."""
    return _objects(folder) if folder.is_folder() else []


def _remove_listed(folder: Location, entries: Sequence[FolderEntry]) -> None:
    """Delete objects of a folder that was listed just now."""

    def remove(entry: FolderEntry) -> None:
        location = folder / entry.name
        store = location.store
        if isinstance(store, claims.ClaimedStore) and entry.version:
            store.delete_version(location.key, entry.version)
        else:
            location.delete()

    for_each(entries, remove, folder)


def _shard_files(manifest: Manifest) -> list[str]:
    return [shard.file for shard in manifest.shards]


def make_small_files(manifest: Manifest, *, has_label_map: bool) -> dict[str, bytes]:
    """The small files next to the shards, the manifest last."""
    files = {}
    if manifest.class_names is not None:
        files[LABELS_NAME] = labels_to_bytes(manifest.class_names)
        if has_label_map:
            files[LABEL_MAP_NAME] = label_map_to_bytes(manifest.class_names)
    return files | {MANIFEST_NAME: manifest.to_bytes()}


def names_in(folder: Location) -> list[str]:
    """The names of all files and folders directly in a folder, sorted."""
    return [name for name, kind, *_ in folder.list_entries() if kind in ("object", "folder")]


def _files_to_replace(
    folder: Location, splits: Collection[str], earlier: Manifest | None
) -> set[str]:
    """Files of an earlier dataset or of a killed job, to be removed when the job publishes."""
    names = set()
    if earlier is not None:
        names.update(_shard_files(earlier))
    else:  # no manifest: files that would be taken for shards of the new splits
        for name in names_in(folder):
            number = parse_shard_name(name)
            if (number.split if number else split_of_part(name)) in splits:
                names.add(name)
    note = read_begun_note(folder)
    if note is not None:
        names.update(note.removed)
    # a manifest or a note may name any file: remove only names of shards
    return {name for name in names if is_shard_name(name)}


@contextmanager
def claimed_folder(
    folder: Location,
    fingerprint: str,
    files: Sequence[str],
    *,
    overwrite: bool = False,
    earlier: Manifest | None = None,
    base: str = "",
    command: str = "",
    replaced: Sequence[str] = (),
    keeps_shards: bool = False,
) -> Iterator[Location]:
    """Yield the folder for writing; remove unfinished files when the block ends.

    If it fails, what a rerun needs is kept: `files`, which may change during the block. If a rerun
    would fail as well, they are removed, except with `keeps_shards`: many machines wrote them.
    """
    claimed = claims.claim(
        folder,
        fingerprint,
        files,
        overwrite=overwrite,
        earlier=earlier,
        base=base,
        command=command,
        replaced=replaced,
    )
    try:
        yield claimed
    except (SourceError, OptionError, CorruptDataError, FunctionError):
        note = read_begun_note(claimed) if base else None
        if not keeps_shards and (note is None or not is_publishing(claimed, note)):
            _abandon(claimed)
        raise
    except BaseException:
        if folder.store.is_remote:
            call_with_timeout(partial(clean_up, claimed, keeping=files))
        else:
            clean_up(claimed, keeping=files)
        raise
    clean_up(claimed, keeping=files)


def clean_up_after_kill(folder: Location) -> None:
    """Remove the rest of a job that was killed after its dataset was complete."""
    if folder.store.can_rename:
        claims.release(folder)
        clean_up(folder)
        if (manifest := read_manifest(folder)) is not None:
            _remove_unlisted_layers(folder, manifest)
        return
    begun = read_begun_note(folder)
    if begun is None:
        return
    manifest = read_manifest(folder)
    if manifest is not None and manifest.last_fingerprint == begun.fingerprint:
        claimed = claims.claim(folder, begun.fingerprint, earlier=manifest, base=begun.base)
        clean_up(claimed)
        _remove_unlisted_layers(claimed, manifest)
        claims.release(claimed)


def clean_up(folder: Location, *, keeping: Sequence[str] = ()) -> None:
    """Remove files without a final name, except completed shards in `keeping`.

    Removes nothing while an interrupted job that adds to a dataset needs its files to finish.
    """
    note = read_begun_note(folder)
    is_claimed = folder.store.can_rename or isinstance(folder.store, claims.ClaimedStore)
    if note is not None and (not is_claimed or (note.base and is_publishing(folder, note))):
        return
    internal = (folder / INTERNAL_FOLDER).without_links()
    internal.store.remove_leftovers(internal.key)
    with suppress(FileAccessError):
        entries = _objects(internal)
        names = {entry.name for entry in entries}
        kept = {
            name
            for file in keeping
            if done_location(folder, file).name in names
            for name in (
                f"{file}{DONE_SUFFIX}",
                *(f"{side}{PARTIAL_SUFFIX}" for side in _with_side_files(file)),
            )
        }
        left = [
            entry
            for entry in entries
            if entry.name.endswith((PARTIAL_SUFFIX, DONE_SUFFIX)) and entry.name not in kept
        ]
        _remove_listed(internal, left)


def abandon_interrupted(folder: Location, note: BegunNote) -> None:
    """Remove what a killed job that changes a dataset has written, before it published anything."""
    manifest = read_manifest(folder)
    listed = set() if manifest is None else {*_shard_files(manifest)}
    claimed = claims.claim(
        folder,
        note.fingerprint,
        earlier=manifest,
        base=note.base,
        command=note.command,
        replaced=note.replaced,
    )
    if is_publishing(claimed, note):  # by another job, meanwhile
        raise claims.begun_error(folder)
    if claimed.store.can_rename:
        begun_location(claimed).delete()
    else:  # also those that were not noted as complete yet
        _remove(claimed, {file for file in note.removed if is_shard_name(file)} - listed)
    _abandon(claimed)


def _abandon(folder: Location) -> None:
    """Remove everything of a job that would fail again."""
    if folder.store.can_rename:
        clean_up(folder)
        with suppress(FileAccessError, CorruptDataError):
            if (manifest := read_manifest(folder)) is not None:
                _remove_unlisted_layers(folder, manifest)
        return
    with suppress(FileAccessError):  # another job has taken over
        manifest = read_manifest(folder)
        if manifest is not None:
            _remove_unlisted_layers(folder, manifest)
        listed = set() if manifest is None else {*_shard_files(manifest)}
        _remove(folder, {*completed_files(folder)} - listed)
        clean_up(folder)
        claims.release(folder, leaving={*names_in(folder)} - listed)
