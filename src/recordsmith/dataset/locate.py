"""Finds the shards of a path: a file, a folder, a glob, or a list of these.

A folder with a manifest has the shards of the manifest. A folder without one has all TFRecord files
in it, detected by their first bytes or by name; if there are none, those in its split folders
(`train/`, `valid/`). A folder of TensorFlow Datasets has the shards of its `dataset_info.json`.
"""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from recordsmith.dataset.labels import LABELS_NAME, ClassNames, read_labels
from recordsmith.dataset.manifest import (
    BEGUN_NAME,
    MANIFEST_NAME,
    Manifest,
    read_manifest,
    read_publish_note,
)
from recordsmith.dataset.names import (
    DONE_SUFFIX,
    INTERNAL_FOLDER,
    PARTIAL_SUFFIX,
    is_text_index_name,
    looks_like_shard,
    parse_shard_name,
    shard_name,
)
from recordsmith.dataset.other_folders import detect_other_folder
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.split_slices import is_split_slice
from recordsmith.dataset.splits import (
    has_split_word,
    is_split_name,
    split_of,
    splits_of_folders,
)
from recordsmith.dataset.tfds.folder import (
    INFO_NAME,
    class_names_in,
    innermost_folder,
    is_tfds_folder,
    is_tfds_info,
    read_info,
)
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    ForbiddenFileError,
    MissingFileError,
    OptionError,
    option,
    suggest_names,
)
from recordsmith.stores import Location, PlaceLike, as_place
from recordsmith.wire import HEAD_BYTES
from recordsmith.wire.framing import starts_with_frame
from recordsmith.words import first_of

Paths: TypeAlias = PlaceLike | Sequence[PlaceLike]

_NAMED = 5
_MOST_MISSING = 1000
"""The maximum of missing shards of a split that are listed."""


class MissingShard(NamedTuple):
    """A shard that should exist, and the error that reports it."""

    split: str
    location: Location
    error: CorruptDataError


@dataclass
class Located:
    """The shards of a path.

    shards: in the order of the manifest, or by name in each folder.
    manifest: the manifest, if the path is a folder with one.
    class_names: from the manifest or `labels.txt`.
    missing: the shards that should exist.
    ignored: errors that were ignored on request.
    folder: the folder of the manifest.
    """

    shards: list[Shard]
    manifest: Manifest | None = None
    class_names: ClassNames | None = None
    missing: tuple[MissingShard, ...] = ()
    ignored: tuple[CorruptDataError, ...] = ()
    folder: Location | None = None

    def keep_splits(self, splits: Sequence[str]) -> None:
        """Remove the shards of other splits, and put these in this order."""
        self.shards = [shard for split in splits for shard in self.shards if shard.split == split]
        self.missing = tuple(missing for missing in self.missing if missing.split in splits)

    def set_splits(self, splits: Mapping[str, str]) -> None:
        """Set the splits, by folder, of shards without a manifest and without a split word."""
        for shard in self.shards:
            if shard.entry is None and not has_split_word(shard.location.name):
                shard.split = splits[str(shard.location.parent)]
        self.missing = tuple(
            missing
            if has_split_word(missing.location.name)
            else missing._replace(split=splits.get(str(missing.location.parent), missing.split))
            for missing in self.missing
        )

    def check_whole(self) -> None:
        """Verify that all shards exist, with the sizes in their manifest.

        Raises:
            CorruptDataError: missing-shard; shard-size-mismatch; record-count-mismatch.
        """
        for missing in self.missing:
            raise missing.error
        for shard in self.shards:
            shard.check_size()


def as_places(paths: Paths) -> list[Location]:
    """Convert one path or several to locations.

    Raises:
        OptionError: an item is not a path, or the list is empty.
    """
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        return [as_place(paths)]
    if isinstance(paths, bytes) or hasattr(paths, "read"):
        raise OptionError(option="paths", value=paths, expected="a path or a list of paths")
    listed = [as_place(path) for path in paths]
    if not listed:
        raise OptionError(option="paths", value=listed, expected="at least one path")
    return listed


def locate(paths: Paths, split: str | None = None, *, around_defects: bool = False) -> Located:
    """Find the shards of paths, of one split or of all.

    With `around_defects`, a broken manifest or an unfinished publication is ignored.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: no TFRecord files were found, or the split is unknown.
        CorruptDataError: broken-manifest, unfinished-dataset.
    """
    parts = locate_each(as_places(paths), around_defects=around_defects)
    located = Located(
        [shard for part in parts for shard in part.shards],
        manifest=parts[0].manifest if len(parts) == 1 else None,
        class_names=_common_names(parts),
        missing=tuple(missing for part in parts for missing in part.missing),
        ignored=tuple(error for part in parts for error in part.ignored),
        folder=parts[0].folder if len(parts) == 1 else None,
    )
    if split is not None:
        check_split(split, split_names([located]))
        located.keep_splits([split])
    return located


def locate_each(places: Iterable[Location], *, around_defects: bool = False) -> list[Located]:
    """Find the shards of each path; the folders of all paths together can determine splits.

    Raises:
        FileAccessError, OptionError, CorruptDataError: as `locate`.
    """
    parts = [_locate_one(place, around_defects) for place in places]
    unnamed = [shard.location for part in parts for shard in part.shards if shard.entry is None]
    splits = splits_of_folders(unnamed)
    for part in parts if splits else ():
        part.set_splits(splits)
    return parts


def locate_whole(paths: Paths, split: str | None = None) -> Located:
    """Find shards, and verify that all exist with the sizes in their manifest.

    Raises:
        FileAccessError, OptionError: as `locate`.
        CorruptDataError: as `locate`; missing-shard; shard-size-mismatch; record-count-mismatch.
    """
    located = locate(paths, split)
    located.check_whole()
    return located


def split_names(parts: Iterable[Located]) -> list[str]:
    """Return the names of all splits, in order of first appearance."""
    found = dict[str, None]()
    for part in parts:
        found |= dict.fromkeys(shard.split for shard in part.shards)
        if part.manifest is not None:
            found |= dict.fromkeys(part.manifest.splits)
    return list(found)


def check_split(split: str, names: Collection[str]) -> None:
    """Check that a split is one of those that exist.

    Raises:
        OptionError: the split is unknown.
    """
    if not isinstance(split, str) or split not in names:
        raise OptionError(
            f"split {split!r} does not exist; {suggest_names(split, names, 'there are no splits')}",
            option="split",
            value=split,
            remedy=f"Here, {option('split')} takes the name of one split."
            if is_split_slice(split)
            else "",
        )


def _locate_one(place: Location, around_defects: bool) -> Located:
    if place.is_folder():
        return _locate_folder(place, around_defects)
    try:
        place.info()
    except MissingFileError as error:
        if not glob.has_magic(str(place)):
            similar = place.similar()
            if similar is not None:
                error.advise(f"Did you mean {similar}?")
            raise
        # a pattern may match manifests, labels and text indexes as well: ignore them
        found = [
            location
            for location in place.glob()
            if not (location.is_folder() or _is_companion(location))
        ]
        if not found:
            raise OptionError(
                f"no file matches {place}", option="paths", value=str(place)
            ) from None
        return Located(
            [Shard(location, split_of(location.name)) for location in found],
            class_names=_common_labels(found),
        )
    except FileAccessError as error:
        if error.errno != errno.EINVAL:  # a pipe can be read in order
            raise
    if place.name in (MANIFEST_NAME, LABELS_NAME):
        raise OptionError(
            f"{place} is not a shard but describes a dataset",
            option="paths",
            value=str(place),
            remedy=f"Open its folder, {place.parent}.",
        )
    if _is_text_index(place):
        raise OptionError(
            f"{place} is a text index without records",
            option="paths",
            value=str(place),
            remedy="Open the file that it belongs to, or quote a pattern ('out/train-*'), which "
            "ignores text indexes.",
        )
    return Located([Shard(place, split_of(place.name))], class_names=read_labels(place.parent))


def _is_companion(location: Location) -> bool:
    return location.name in (MANIFEST_NAME, LABELS_NAME) or _is_text_index(location)


def _is_text_index(location: Location) -> bool:
    return is_text_index_name(location.name) and not looks_like_records(location)


def _common_names(parts: Iterable[Located]) -> ClassNames | None:
    """The class names, if they are the same in all parts."""
    names = {part.class_names for part in parts}
    return names.pop() if len(names) == 1 else None


def _common_labels(files: Iterable[Location]) -> ClassNames | None:
    folders = {file.parent for file in files}
    return read_labels(folders.pop()) if len(folders) == 1 else None


def _locate_folder(folder: Location, around_defects: bool) -> Located:
    try:
        manifest = read_manifest(folder)
        is_local = folder.store.can_rename
        begun = None if is_local else read_publish_note(folder, BEGUN_NAME)
        if manifest is not None and (begun is None or begun.allows(manifest)):
            return _locate_packed(folder, manifest)
        if begun is not None or read_publish_note(folder) is not None:
            raise _unfinished_error(folder)
        if not is_local:
            located = _locate_files(folder)
            if read_publish_note(folder, BEGUN_NAME) is not None:  # a job has just begun
                raise _unfinished_error(folder)
            if not (folder / MANIFEST_NAME).exists():
                return _locate_tfds(folder) or located
            return _locate_folder(folder, around_defects)  # or it has just ended
        return _locate_tfds(folder) or _locate_files(folder)
    except CorruptDataError as error:
        if not around_defects:
            raise
        return replace(_locate_files(folder), ignored=(error,))


def _locate_tfds(folder: Location) -> Located | None:
    """The shards that TensorFlow Datasets lists; None if the folder is not one of TFDS.

    Raises:
        CorruptDataError: broken-manifest.
    """
    if not is_tfds_folder(folder):
        return None
    info = read_info(folder)
    if info.file_format != "tfrecord":
        return None
    shards, missing = [], []
    for split in info.splits:
        for name in split.file_names(info.name):
            location = folder / name
            if location.exists():
                shards.append(Shard(location, split.name))
                continue
            problem = f"{INFO_NAME} lists {name}, which is missing"
            missing.append(_missing_shard(split.name, location, problem))
    return Located(shards, class_names=class_names_in(folder, info), missing=tuple(missing))


def _missing_shard(split: str, location: Location, problem: str) -> MissingShard:
    error = CorruptDataError(
        Defect.MISSING_SHARD,
        problem,
        remedy="Fetch it again, or open the existing shards by name or with a glob.",
        path=location,
    )
    return MissingShard(split, location, error)


def _unfinished_error(folder: Location) -> CorruptDataError:
    return CorruptDataError(
        Defect.UNFINISHED_DATASET,
        "the job that writes this dataset is running or was interrupted, so files may be missing",
        remedy="Rerun the same job to finish the dataset.",
        path=folder,
    )


def _no_shards_error(folder: Location, files: list[str]) -> OptionError:
    """The error for a folder without shards, with its contents."""
    folders = [name for name in _folders_in(folder) if not name.startswith(".")]
    other = detect_other_folder(folder, files)
    inner, _ = innermost_folder(folder)
    found = f"found {first_of(files, _NAMED) if files else 'no files'}"
    remedy = ""
    if other is not None:
        found, remedy = f"it is {other.what}", other.advice
    elif inner != folder and is_tfds_info(inner):
        found = f"found a dataset of TensorFlow Datasets in {inner}"
        remedy = "Pass that folder."
    elif folders:
        found = f"{found}, and the folders: {first_of(folders, _NAMED)}"
        remedy = (
            "If the shards are in one of these folders, pass that folder, or a glob such as "
            f"{folder}/*/*.tfrecord"
        )
    elif not files:
        found = "it is empty"
        remedy = "Check the path."
    return OptionError(
        f"{folder} has no TFRecord file and no {MANIFEST_NAME}: {found}",
        option="paths",
        value=str(folder),
        remedy=remedy,
    )


def _locate_files(folder: Location) -> Located:
    """Find the TFRecord files in a folder, or otherwise in its split folders.

    Raises:
        OptionError: there are no TFRecord files.
        CorruptDataError: unfinished-dataset.
    """
    located, other = _files_of(folder)
    if located.shards:
        return located
    _check_unfinished(folder)
    parts = [_files_of(below)[0] for below in _folders_of_splits(folder)]
    shards = [shard for part in parts for shard in part.shards]
    if not shards:
        raise _no_shards_error(folder, other)
    return Located(
        shards,
        class_names=read_labels(folder) or _common_names(parts),
        missing=tuple(missing for part in parts for missing in part.missing),
    )


def _folders_in(folder: Location) -> list[str]:
    return [name for name, kind, *_ in folder.list_entries() if kind == "folder"]


def _folders_of_splits(folder: Location) -> list[Location]:
    """The folders with names of splits; empty if one of them is a dataset itself."""
    found = [folder / name for name in _folders_in(folder) if is_split_name(name)]
    return [] if any((below / MANIFEST_NAME).exists() for below in found) else found


def _files_of(folder: Location) -> tuple[Located, list[str]]:
    """The TFRecord files in a folder, and the names of other files."""
    shards = []
    numbered: dict[tuple[str, int], set[int]] = {}
    other = []
    for name, kind, *_ in folder.list_entries():
        if kind != "object" or name.startswith("."):
            continue
        location = folder / name
        if not looks_like_records(location):
            other.append(name)
            continue
        shards.append(Shard(location, split_of(name)))
        parsed = parse_shard_name(name)
        if parsed is not None:
            numbered.setdefault((parsed.split, parsed.shard_count), set()).add(parsed.number)
    shards.sort(key=lambda shard: shard.split)
    missing = []
    for (split, count), numbers in numbered.items():
        for number in _missing_numbers(numbers, count):
            location = folder / shard_name(split, number, count)
            problem = f"shard {number} of {count} of split {split!r} is missing"
            missing.append(_missing_shard(split, location, problem))
    return Located(shards, class_names=read_labels(folder), missing=tuple(missing)), other


def _check_unfinished(folder: Location) -> None:
    """Raise if a folder has only unpublished shards of a job."""
    internal = folder / INTERNAL_FOLDER
    names = [location.name for location in internal.list()]
    if any(
        name.endswith((PARTIAL_SUFFIX, DONE_SUFFIX)) and not name.startswith(".") for name in names
    ):
        done = sum(name.endswith(DONE_SUFFIX) for name in names)
        raise CorruptDataError(
            Defect.UNFINISHED_DATASET,
            "the job that writes this dataset is running or was interrupted, with "
            f"{done:,} complete {'shard' if done == 1 else 'shards'} in {internal}",
            remedy="Rerun the same job to resume, or remove the folder.",
            path=folder,
        )


def _missing_numbers(numbers: set[int], count: int) -> list[int]:
    """The first missing numbers; limited, because file names can have any number and count."""
    stop = min(count, max(numbers) + 2, len(numbers) + _MOST_MISSING)
    return [number for number in range(stop) if number not in numbers][:_MOST_MISSING]


def _locate_packed(folder: Location, manifest: Manifest) -> Located:
    shards = []
    missing = []
    sizes = {name: size for name, kind, size, *_ in folder.list_entries() if kind == "object"}
    for split, entries in manifest.splits.items():
        for entry in entries:
            location = folder / entry.file
            if entry.file not in sizes:
                problem = f"the manifest lists {entry.file}, which is missing"
                missing.append(_missing_shard(split, location, problem))
                continue
            shards.append(
                Shard(
                    location,
                    split,
                    entry=entry,
                    compression=manifest.compression,
                    listed_bytes=sizes[entry.file],
                )
            )
    return Located(shards, manifest, manifest.class_names, tuple(missing), folder=folder)


def looks_like_records(location: Location) -> bool:
    """Whether a file is a TFRecord by its name, or by its first bytes."""
    if looks_like_shard(location.name):
        return True
    try:
        return starts_with_frame(location.read(0, HEAD_BYTES))
    except ForbiddenFileError:
        return False
