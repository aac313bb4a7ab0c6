"""Give a complete dataset its names: shards, labels, and the manifest last.

Whatever needs space on the disk is written before the first name is given. A note that naming has
begun makes the folder no dataset until the note is gone, so a job that is killed in between shows
nothing by halves, and the same job run again finishes it.
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
    Begun,
    Manifest,
    begun_path,
    is_shard_name,
    label_map_to_bytes,
    labels_to_bytes,
    parse_shard_name,
    read_begun,
    read_manifest,
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
    list_folder,
    publish,
    remove,
    sync_folder,
    write_atomically,
    write_synced,
)
from recordsmith.wire import Compression


def manifest_of(
    splits: Iterable[str],
    results: Iterable[tuple[str, ShardResult]],
    compression: Compression,
    class_names: ClassNames | None,
    made_from: Mapping[str, Any],
    *,
    schemas: Mapping[str, Schema] | None = None,
) -> Manifest:
    """The manifest of shards that are written.

    Args:
        splits: in their order.
        results: of each shard, with its split.
        schemas: of the splits whose schema is known; that of others is what their shards have.
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
        made_from,
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
    """Give everything its final name.

    Args:
        fingerprint: of the job, so that it is known again if it is killed now.
        replaced: files of an earlier dataset, which go.
        renamed: new names, by old ones, of shards of an earlier dataset that stay.
        base: what that earlier dataset was, for the job to be known by.
    """
    small_files = small_files_of(manifest, has_label_map=has_label_map)
    for name, data in small_files.items():
        write_synced(partial_path(folder, name), data)
    renamed = renamed or {}
    removing = {*replaced, *renamed, *_shard_files(manifest), *small_files}
    begun = Begun(fingerprint, tuple(sorted(removing)), renamed, base)
    write_atomically(begun_path(folder), begun.to_bytes())
    sync_folder(folder / INTERNAL_FOLDER)
    _give_names(folder, manifest, list(small_files), replaced, renamed)


def finish_publishing(folder: Path, begun: Begun) -> Manifest:
    """Go on where a job that adds to a dataset was killed; what has its name is passed over.

    Nothing but the note and the files themselves are needed: the job's inputs may be gone.

    Raises:
        CorruptDataError: files are not there any more that were.
    """
    path = partial_path(folder, MANIFEST_NAME)  # the last one to get its name
    manifest = read_manifest(folder, path)
    if manifest is not None:
        small_files = [LABELS_NAME, LABEL_MAP_NAME, MANIFEST_NAME]
        _give_names(folder, manifest, small_files, set(), begun.renamed)
        return manifest
    manifest = read_manifest(folder)
    if manifest is None:
        raise CorruptDataError(
            Defect.UNFINISHED_DATASET,
            f"a job was stopped while it gave the files their names, and {path} is gone, which "
            "says how to go on. The shards that are there can be read by name or with a glob.",
            path=folder,
        )
    _end(folder, manifest)
    return manifest


def _give_names(
    folder: Path,
    manifest: Manifest,
    small_files: Sequence[str],
    replaced: set[str],
    renamed: Mapping[str, str],
) -> None:
    """Whatever this does was done already, or not yet: it can be done again at any moment."""
    internal = folder / INTERNAL_FOLDER
    shards = _shard_files(manifest)
    remove(folder / MANIFEST_NAME)  # from here on the folder is no dataset
    gone = {*replaced, LABELS_NAME, LABEL_MAP_NAME} - {*shards, *small_files}
    for name in sorted(gone):
        remove(folder / name)
        remove(internal / f"{name}.index")
    for old, new in renamed.items():
        _name(folder / old, folder / new)
        _name(internal / f"{old}.index", internal / f"{new}.index")
    for file in shards:
        _name(partial_path(folder, file), folder / file)
        _name(partial_path(folder, f"{file}.index"), internal / f"{file}.index")
    for name in small_files:  # the manifest is the last of them
        _name(partial_path(folder, name), folder / name)
    _end(folder, manifest)


def _end(folder: Path, manifest: Manifest) -> None:
    sync_folder(folder)
    remove(begun_path(folder))
    for file in _shard_files(manifest):
        remove(done_path(folder, file))


def _name(partial: Path, final: Path) -> None:
    """What is not there any more has its name already, from a job that was killed."""
    if partial.exists():
        publish(partial, final)


def _shard_files(manifest: Manifest) -> list[str]:
    return [shard.file for shard in manifest.shards]


def small_files_of(manifest: Manifest, *, has_label_map: bool) -> dict[str, bytes]:
    """What lies beside the shards, the manifest last."""
    files = {}
    if manifest.class_names is not None:
        files[LABELS_NAME] = labels_to_bytes(manifest.class_names)
        if has_label_map:
            files[LABEL_MAP_NAME] = label_map_to_bytes(manifest.class_names)
    return files | {MANIFEST_NAME: manifest.to_bytes()}


def replaced_names(folder: Path, splits: Collection[str], earlier: Manifest | None) -> set[str]:
    """Files of an earlier dataset, or of a job that was killed: they go when the new ones come."""
    names = set()
    if earlier is not None:
        names.update(_shard_files(earlier))
    else:  # no manifest tells: what would be taken for a shard of a split that is packed now
        for entry in list_folder(folder):
            number = parse_shard_name(entry.name)
            if number is not None and number.split in splits:
                names.add(entry.name)
    begun = read_begun(folder)
    if begun is not None:
        names.update(begun.removing)
    # a manifest or a note may name anything: only what is called as shards are goes for it
    return {name for name in names if is_shard_name(name)}


@contextmanager
def tidying_up(folder: Path, files: Sequence[str]) -> Iterator[None]:
    """Whatever happens in the block, nothing unfinished is left in the folder: only shards that are
    done, for the same job run again; and not these, if it could not end well either.

    Args:
        files: the names of the job's shards; may change as long as the block goes on.
    """
    try:
        yield
    except (SourceError, OptionError, CorruptDataError, FunctionError):
        clean_up(folder)
        raise
    finally:
        clean_up(folder, keeping=files)


def clean_up_after(folder: Path) -> None:
    """The dataset is complete: what is left of a job that was killed after that goes."""
    remove(begun_path(folder))
    clean_up(folder)


def clean_up(folder: Path, *, keeping: Sequence[str] = ()) -> None:
    """Remove what has no final name; of the files in `keeping`, what is done stays.

    Nothing is removed while a job that adds to a dataset waits to be finished: all of it is needed.
    """
    begun = read_begun(folder)
    if begun is not None and begun.base:
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
                remove(entry.path)
