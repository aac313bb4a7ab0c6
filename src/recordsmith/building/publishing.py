"""Publishes a complete dataset: renames shards and labels, and the manifest last.

Everything that needs disk space is written before the first rename. While the note of a begun
publication exists, the folder is not a dataset, so a killed job leaves no partial output. Rerun it
to finish.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recordsmith.building.finished import ShardResult, done_path, partial_path
from recordsmith.dataset import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    PublishNote,
    is_shard_name,
    label_map_to_bytes,
    labels_to_bytes,
    parse_shard_name,
    publish_note_path,
    read_manifest,
    read_publish_note,
)
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.names import DONE_SUFFIX, PARTIAL_SUFFIX
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    FunctionError,
    OptionError,
    SourceError,
)
from recordsmith.example import Schema
from recordsmith.files import (
    INTERNAL_FOLDER,
    folder_error,
    holding_signals,
    list_folder,
    publish,
    remove,
    sync_folder,
)
from recordsmith.stores import write_atomically
from recordsmith.wire import Compression


def make_manifest(
    splits: Iterable[str],
    results: Iterable[tuple[str, ShardResult]],
    compression: Compression,
    class_names: ClassNames | None,
    provenance: Mapping[str, Any],
    *,
    schemas: Mapping[str, Schema] | None = None,
    arrow_schema: str | None = None,
) -> Manifest:
    """Make the manifest of written shards.

    Args:
        splits: the splits in order.
        results: the split and the result of each shard.
        schemas: known schemas by split; others are merged from the shards.
        arrow_schema: of the table that was packed.
    """
    of_splits: dict[str, list[ShardResult]] = {split: [] for split in splits}
    for split, result in results:
        of_splits[split].append(result)
    schemas = {
        split: (schemas or {}).get(split) or Schema.merged(result.schema for result in of_split)
        for split, of_split in of_splits.items()
    }
    return Manifest(
        {split: tuple(result.entry for result in found) for split, found in of_splits.items()},
        Schema.merged(list(schemas.values())),
        schemas,
        compression,
        class_names,
        provenance,
        arrow_schema,
    )


def publish_dataset(
    folder: Path,
    fingerprint: str,
    manifest: Manifest,
    *,
    has_label_map: bool,
    replaced: set[str],
    renamed: Mapping[str, str] | None = None,
    base: str = "",
) -> None:
    """Rename all files to their final names.

    Args:
        fingerprint: the fingerprint of the job, which identifies it if it is killed now.
        replaced: files of an earlier dataset to remove.
        renamed: new names of shards of an earlier dataset that stay, by old name.
        base: identifies that earlier dataset.
    """
    small_files = make_small_files(manifest, has_label_map=has_label_map)
    for name in (*replaced, *(renamed or {}), *_shard_files(manifest), *small_files):
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            raise folder_error(folder / name)
    for name, data in small_files.items():
        write_atomically(partial_path(folder, name), data)
    renamed = renamed or {}
    removed = {*replaced, *renamed, *_shard_files(manifest), *small_files}
    note = PublishNote(fingerprint, tuple(sorted(removed)), renamed, base)
    write_atomically(publish_note_path(folder), note.to_bytes())
    sync_folder(folder / INTERNAL_FOLDER)
    _rename_files(folder, manifest, list(small_files), replaced, renamed)


def finish_publishing(folder: Path, note: PublishNote) -> Manifest:
    """Finish the publication of a killed job that adds to a dataset.

    Needs only the note and the files; the inputs of the job may be gone.

    Raises:
        CorruptDataError: files of the job are missing.
    """
    path = partial_path(folder, MANIFEST_NAME)  # the last file to be renamed
    manifest = read_manifest(folder, path)
    if manifest is not None:
        small_files = [LABELS_NAME, LABEL_MAP_NAME, MANIFEST_NAME]
        _rename_files(folder, manifest, small_files, set(), note.renamed)
        return manifest
    manifest = read_manifest(folder)
    if manifest is None:
        raise CorruptDataError(
            Defect.UNFINISHED_DATASET,
            f"a job was interrupted while it renamed the finished shards, and {path} is missing",
            remedy="Open the existing shards by name or with a glob.",
            path=folder,
        )
    _finish(folder, manifest)
    return manifest


def _rename_files(
    folder: Path,
    manifest: Manifest,
    small_files: Sequence[str],
    replaced: set[str],
    renamed: Mapping[str, str],
) -> None:
    """Idempotent: a killed job may repeat any step. Ctrl-C waits until it is done."""
    with holding_signals():
        _rename_all(folder, manifest, small_files, replaced, renamed)


def _rename_all(
    folder: Path,
    manifest: Manifest,
    small_files: Sequence[str],
    replaced: set[str],
    renamed: Mapping[str, str],
) -> None:
    internal = folder / INTERNAL_FOLDER
    shards = _shard_files(manifest)
    remove(folder / MANIFEST_NAME)  # from here on the folder is not a dataset
    removed = {*replaced, LABELS_NAME, LABEL_MAP_NAME} - {*shards, *small_files}
    for name in sorted(removed):
        remove(folder / name)
        remove(internal / f"{name}.index")
    for old, new in renamed.items():
        _rename(folder / old, folder / new)
        _rename(internal / f"{old}.index", internal / f"{new}.index")
    for file in shards:
        _rename(partial_path(folder, file), folder / file)
        _rename(partial_path(folder, f"{file}.index"), internal / f"{file}.index")
    for name in small_files:  # the manifest is the last of them
        _rename(partial_path(folder, name), folder / name)
    _finish(folder, manifest)


def _finish(folder: Path, manifest: Manifest) -> None:
    sync_folder(folder)
    remove(publish_note_path(folder))
    for file in _shard_files(manifest):
        remove(done_path(folder, file))


def _rename(partial: Path, final: Path) -> None:
    """Rename a file, unless a killed job has already renamed it."""
    if partial.is_file() and not partial.is_symlink():
        publish(partial, final)


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


def files_to_replace(folder: Path, splits: Collection[str], earlier: Manifest | None) -> set[str]:
    """Files of an earlier dataset or of a killed job, to be removed when the job publishes."""
    names = set()
    if earlier is not None:
        names.update(_shard_files(earlier))
    else:  # no manifest: files that would be taken for shards of the new splits
        for entry in list_folder(folder):
            number = parse_shard_name(entry.name)
            if number is not None and number.split in splits:
                names.add(entry.name)
    note = read_publish_note(folder)
    if note is not None:
        names.update(note.removed)
    # a manifest or a note may name any file: remove only names of shards
    return {name for name in names if is_shard_name(name)}


@contextmanager
def cleaning_up(folder: Path, files: Sequence[str]) -> Iterator[None]:
    """Remove unfinished files when the block ends, but keep completed shards for a rerun.

    If a rerun would fail as well, the completed shards are removed too.

    Args:
        files: the names of the job's shards; may change during the block.
    """
    try:
        yield
    except (SourceError, OptionError, CorruptDataError, FunctionError):
        clean_up(folder)
        raise
    finally:
        clean_up(folder, keeping=files)


def clean_up_after_kill(folder: Path) -> None:
    """Remove the rest of a job that was killed after its dataset was complete."""
    remove(publish_note_path(folder))
    clean_up(folder)


def clean_up(folder: Path, *, keeping: Sequence[str] = ()) -> None:
    """Remove files without a final name, except completed shards in `keeping`.

    Removes nothing while an interrupted job that adds to a dataset needs its files to finish.
    """
    note = read_publish_note(folder)
    if note is not None and note.base:
        return
    kept = set()
    for file in keeping:
        if done_path(folder, file).exists():
            kept |= {
                f"{file}{DONE_SUFFIX}",
                f"{file}{PARTIAL_SUFFIX}",
                f"{file}.index{PARTIAL_SUFFIX}",
            }
    with suppress(FileAccessError):
        for entry in list_folder(folder / INTERNAL_FOLDER):
            if entry.name.endswith((PARTIAL_SUFFIX, DONE_SUFFIX)) and entry.name not in kept:
                with suppress(FileAccessError):  # a folder: not created by a job
                    remove(entry.path)
