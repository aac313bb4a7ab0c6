"""Finds the shards of a path: a file, a folder, a glob, or a list of these.

A folder with a manifest has the shards of the manifest. A folder without one has all TFRecord files
in it, detected by their first bytes or by name; if there are none, those in its split folders
(`train/`, `valid/`).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from recordsmith.dataset.labels import LABELS_NAME, ClassNames, read_labels
from recordsmith.dataset.manifest import (
    MANIFEST_NAME,
    Manifest,
    read_manifest,
    read_publish_note,
)
from recordsmith.dataset.names import (
    DONE_SUFFIX,
    PARTIAL_SUFFIX,
    is_text_index_name,
    looks_like_shard,
    parse_shard_name,
    shard_name,
)
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.split_slices import is_split_slice
from recordsmith.dataset.splits import (
    has_split_word,
    is_split_name,
    split_of,
    splits_of_folders,
)
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    ForbiddenFileError,
    OptionError,
    option,
    suggest_names,
)
from recordsmith.files import (
    INTERNAL_FOLDER,
    PathLike,
    access_error,
    accessing,
    as_path,
    list_folder,
    read_head,
    similar_path,
)
from recordsmith.stores import LocalStore
from recordsmith.wire import HEAD_BYTES
from recordsmith.wire.framing import starts_with_frame
from recordsmith.words import first_of

Paths: TypeAlias = PathLike | Sequence[PathLike]

_NAMED = 5
_MOST_MISSING = 1000
"""The maximum of missing shards of a split that are listed."""


@dataclass
class Located:
    """The shards of a path.

    shards: in the order of the manifest, or by name in each folder.
    manifest: the manifest, if the path is a folder with one.
    class_names: from the manifest or `labels.txt`.
    missing: the split and the error of each missing shard.
    ignored: errors that were ignored on request.
    folder: the folder of the manifest.
    """

    shards: list[Shard]
    manifest: Manifest | None = None
    class_names: ClassNames | None = None
    missing: tuple[tuple[str, CorruptDataError], ...] = ()
    ignored: tuple[CorruptDataError, ...] = ()
    folder: Path | None = None

    def keep_splits(self, splits: Sequence[str]) -> None:
        """Remove the shards of other splits, and put these in this order."""
        self.shards = [shard for split in splits for shard in self.shards if shard.split == split]
        self.missing = tuple(missing for missing in self.missing if missing[0] in splits)

    def set_splits(self, splits: Mapping[Path, str]) -> None:
        """Set the splits, by folder, of shards without a manifest and without a split word."""
        for shard in self.shards:
            if shard.entry is None and not has_split_word(shard.path.name):
                shard.split = splits[shard.path.parent]
        self.missing = tuple(
            (split, error)
            if error.path is None or has_split_word(Path(error.path).name)
            else (splits.get(Path(error.path).parent, split), error)
            for split, error in self.missing
        )

    def check_whole(self) -> None:
        """Verify that all shards exist, with the sizes in their manifest.

        Raises:
            CorruptDataError: missing-shard; shard-size-mismatch; record-count-mismatch.
        """
        for _, missing in self.missing:
            raise missing
        for shard in self.shards:
            shard.check_size()


def as_paths(paths: Paths) -> list[Path]:
    """Convert one path or several to a list.

    Raises:
        OptionError: an item is not a path, or the list is empty.
    """
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        return [as_path(paths)]
    if isinstance(paths, bytes) or hasattr(paths, "read"):
        raise OptionError(option="paths", value=paths, expected="a path or a list of paths")
    listed = [as_path(path) for path in paths]
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
    parts = locate_each(as_paths(paths), around_defects=around_defects)
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


def locate_each(paths: Iterable[Path], *, around_defects: bool = False) -> list[Located]:
    """Find the shards of each path; the folders of all paths together can determine splits.

    Raises:
        FileAccessError, OptionError, CorruptDataError: as `locate`.
    """
    parts = [_locate_one(path, around_defects) for path in paths]
    unnamed = [shard.path for part in parts for shard in part.shards if shard.entry is None]
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


def _locate_one(path: Path, around_defects: bool) -> Located:
    with accessing(path):
        if path.is_dir():
            return _locate_folder(path, around_defects)
        if not path.exists() and glob.has_magic(str(path)):
            # a pattern may match manifests, labels and text indexes as well: ignore them
            found = [
                Path(name)
                for name in sorted(glob.glob(str(path), recursive=True))
                if os.path.isfile(name) and not _is_companion(Path(name))
            ]
            if not found:
                raise OptionError(f"no file matches {path}", option="paths", value=str(path))
            return Located(
                [Shard(file, split_of(file.name)) for file in found],
                class_names=_common_labels(found),
            )
        try:
            path.stat()
        except FileNotFoundError as error:
            similar = similar_path(path)
            failure = access_error(error, path)
            if similar is not None:
                failure.advise(f"Did you mean {similar}?")
            raise failure from None
    if path.name in (MANIFEST_NAME, LABELS_NAME):
        raise OptionError(
            f"{path} is not a shard but describes a dataset",
            option="paths",
            value=str(path),
            remedy=f"Open its folder, {path.parent}.",
        )
    if _is_text_index(path):
        raise OptionError(
            f"{path} is a text index without records",
            option="paths",
            value=str(path),
            remedy="Open the file that it belongs to, or quote a pattern ('out/train-*'), which "
            "ignores text indexes.",
        )
    return Located([Shard(path, split_of(path.name))], class_names=read_labels(path.parent))


def _is_companion(path: Path) -> bool:
    return path.name in (MANIFEST_NAME, LABELS_NAME) or _is_text_index(path)


def _is_text_index(path: Path) -> bool:
    return is_text_index_name(path.name) and not looks_like_records(path)


def _common_names(parts: Iterable[Located]) -> ClassNames | None:
    """The class names, if they are the same in all parts."""
    names = {part.class_names for part in parts}
    return names.pop() if len(names) == 1 else None


def _common_labels(files: Iterable[Path]) -> ClassNames | None:
    folders = {file.parent for file in files}
    return read_labels(folders.pop()) if len(folders) == 1 else None


def _locate_folder(folder: Path, around_defects: bool) -> Located:
    try:
        manifest = read_manifest(folder)
        if manifest is not None:
            return _locate_packed(folder, manifest)
        if read_publish_note(folder) is not None:
            raise CorruptDataError(
                Defect.UNFINISHED_DATASET,
                "a job was interrupted while it renamed the finished shards, so files may be "
                "missing",
                remedy="Rerun the same job to finish the dataset.",
                path=folder,
            )
    except CorruptDataError as error:
        if not around_defects:
            raise
        return replace(_locate_files(folder), ignored=(error,))
    return _locate_files(folder)


def _no_shards_error(folder: Path, files: list[str]) -> OptionError:
    """The error for a folder without shards, with its contents."""
    folders = sorted(
        entry.name
        for entry in list_folder(folder)
        if os.path.isdir(entry) and not entry.name.startswith(".")
    )
    found = f"found {first_of(files, _NAMED) if files else 'no files'}"
    remedy = ""
    if folders:
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


def _locate_files(folder: Path) -> Located:
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


def _folders_of_splits(folder: Path) -> list[Path]:
    """The folders with names of splits; empty if one of them is a dataset itself."""
    found = [
        Path(entry.path)
        for entry in list_folder(folder)
        if is_split_name(entry.name) and os.path.isdir(entry)
    ]
    return [] if any((below / MANIFEST_NAME).exists() for below in found) else found


def _files_of(folder: Path) -> tuple[Located, list[str]]:
    """The TFRecord files in a folder, and the names of other files."""
    shards = []
    numbered: dict[tuple[str, int], set[int]] = {}
    other = []
    for entry in list_folder(folder):
        if entry.name.startswith(".") or not os.path.isfile(entry):  # also skips circular links
            continue
        if not looks_like_records(Path(entry.path)):
            other.append(entry.name)
            continue
        shards.append(Shard(Path(entry.path), split_of(entry.name)))
        number = parse_shard_name(entry.name)
        if number is not None:
            numbered.setdefault((number.split, number.shard_count), set()).add(number.number)
    shards.sort(key=lambda shard: shard.split)
    missing = [
        (
            split,
            CorruptDataError(
                Defect.MISSING_SHARD,
                f"shard {number} of {count} of split {split!r} is missing",
                remedy="Fetch it, or open the existing shards by name or with a glob.",
                path=folder / shard_name(split, number, count),
            ),
        )
        for (split, count), numbers in numbered.items()
        for number in _missing_numbers(numbers, count)
    ]
    return Located(shards, class_names=read_labels(folder), missing=tuple(missing)), other


def _check_unfinished(folder: Path) -> None:
    """Raise if a folder has only unpublished shards of a job."""
    internal = folder / INTERNAL_FOLDER
    names = [info.key for info in LocalStore(internal).list()]
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


def _locate_packed(folder: Path, manifest: Manifest) -> Located:
    shards = []
    missing = []
    for split, entries in manifest.splits.items():
        for entry in entries:
            path = folder / entry.file
            if not path.is_file():
                error = CorruptDataError(
                    Defect.MISSING_SHARD,
                    f"the manifest lists {entry.file}, which is missing",
                    remedy="Fetch it again, or open the existing shards by name or with a glob.",
                    path=path,
                )
                missing.append((split, error))
                continue
            shards.append(Shard(path, split, entry=entry, compression=manifest.compression))
    return Located(shards, manifest, manifest.class_names, tuple(missing), folder=folder)


def looks_like_records(path: Path) -> bool:
    """Whether a file is a TFRecord by its first bytes, or by its name."""
    try:
        head = read_head(path, HEAD_BYTES)
    except ForbiddenFileError:  # reading it will raise
        head = b""
    return starts_with_frame(head) or looks_like_shard(path.name)
