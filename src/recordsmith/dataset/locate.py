"""Which shards does a path mean? A file, a folder, a glob, or a list of these.

A folder with a manifest means what the manifest says. One without means every file in it that
looks like a TFRecord by its bytes, or by its name if the bytes say nothing; if there are none,
those in its folders of splits (`train/`, `valid/`).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from recordsmith.dataset.labels import LABELS_NAME, ClassNames, read_labels
from recordsmith.dataset.manifest import (
    MANIFEST_NAME,
    Manifest,
    read_begun,
    read_manifest,
)
from recordsmith.dataset.names import (
    DONE_SUFFIX,
    PARTIAL_SUFFIX,
    is_text_index_name,
    parse_shard_name,
    passes_for_shard,
    shard_name,
)
from recordsmith.dataset.shard import Shard, empty_file
from recordsmith.dataset.splits import (
    is_split_name,
    is_split_told,
    split_of,
    splits_of_folders,
)
from recordsmith.errors import CorruptDataError, Defect, ForbiddenFileError, OptionError
from recordsmith.files import INTERNAL_FOLDER, PathLike, accessing, as_path, list_folder, read_head
from recordsmith.wire import HEAD_BYTES
from recordsmith.wire.framing import begins_frame
from recordsmith.words import first_of

Paths: TypeAlias = PathLike | Sequence[PathLike]

_NAMED = 5
_MOST_MISSING = 1000
"""So many missing shards of a split are told one by one."""


@dataclass
class Located:
    """What a path led to.

    shards: in order: as the manifest has them, or by name in each folder.
    manifest: if the path was a folder with one.
    class_names: from the manifest or `labels.txt`.
    missing: shards that should be there and are not: for each its split, and what to say.
    ignored: what would have been raised, had it not been asked to go around it.
    folder: the one that the manifest lies in.
    """

    shards: list[Shard]
    manifest: Manifest | None = None
    class_names: ClassNames | None = None
    missing: tuple[tuple[str, CorruptDataError], ...] = ()
    ignored: tuple[CorruptDataError, ...] = ()
    folder: Path | None = None

    def keep_split(self, split: str) -> None:
        """Leave out all that is of other splits."""
        self.shards = [shard for shard in self.shards if shard.split == split]
        self.missing = tuple(missing for missing in self.missing if missing[0] == split)

    def tell_splits(self, splits: Mapping[Path, str]) -> None:
        """`splits`: by folder, for those shards whose manifests and names tell none."""
        for shard in self.shards:
            if shard.entry is None and not is_split_told(shard.path.name):
                shard.split = splits[shard.path.parent]
        self.missing = tuple(
            (split, error)
            if error.path is None or is_split_told(Path(error.path).name)
            else (splits.get(Path(error.path).parent, split), error)
            for split, error in self.missing
        )

    def check_whole(self) -> None:
        """See that all shards are there, as long as their manifest says.

        Raises:
            CorruptDataError: missing-shard; shard-size-mismatch; record-count-mismatch.
        """
        for _, missing in self.missing:
            raise missing
        for shard in self.shards:
            shard.check_size()


def as_paths(paths: Paths) -> list[Path]:
    """Each of the paths that a caller gave.

    Raises:
        OptionError: one of them is none, or there are none.
    """
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        return [as_path(paths)]
    if isinstance(paths, bytes) or hasattr(paths, "read"):
        raise OptionError(f"{type(paths).__name__} is no path; expected a path or a list of them")
    listed = [as_path(path) for path in paths]
    if not listed:
        raise OptionError("the list of paths is empty")
    return listed


def locate(paths: Paths, split: str | None = None, *, around_defects: bool = False) -> Located:
    """Find the shards that `paths` means, of one split or of all.

    With `around_defects`, a folder whose manifest is broken or not written yet is taken for one
    without.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: nothing there looks like a TFRecord, or there is no such split.
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
        check_split(split, [located])
        located.keep_split(split)
    return located


def locate_each(paths: Iterable[Path], *, around_defects: bool = False) -> list[Located]:
    """The same for each path; where several paths together tell the splits, they do.

    Raises:
        FileAccessError, OptionError, CorruptDataError: as `locate`.
    """
    parts = [_locate_one(path, around_defects) for path in paths]
    silent = [shard.path for part in parts for shard in part.shards if shard.entry is None]
    splits = splits_of_folders(silent)
    for part in parts if splits else ():
        part.tell_splits(splits)
    return parts


def locate_whole(paths: Paths, split: str | None = None) -> Located:
    """The same, of shards that are all there, as long as they should be.

    Raises:
        FileAccessError, OptionError: as `locate`.
        CorruptDataError: as `locate`; missing-shard; shard-size-mismatch; empty-file, where that is
            all there is and no manifest says that it shall be so.
    """
    located = locate(paths, split)
    located.check_whole()
    if len(located.shards) == 1 and located.shards[0].entry is None:
        (shard,) = located.shards
        if not shard.size_bytes:
            raise empty_file(shard.path)
    return located


def check_split(split: str, parts: Iterable[Located]) -> None:
    """
    Raises:
        OptionError: none of them has such a split.
    """
    found = dict[str, None]()
    for part in parts:
        found |= dict.fromkeys(shard.split for shard in part.shards)
        if part.manifest is not None:
            found |= dict.fromkeys(part.manifest.splits)
    if not isinstance(split, str) or split not in found:
        raise OptionError(f"there is no split {split!r}; found {', '.join(found) or 'none'}")


def _locate_one(path: Path, around_defects: bool) -> Located:
    with accessing(path):
        if path.is_dir():
            return _locate_folder(path, around_defects)
        if not path.exists() and glob.has_magic(str(path)):
            # a pattern should mean records: what stands beside them is passed over
            found = [
                Path(name)
                for name in sorted(glob.glob(str(path), recursive=True))
                if os.path.isfile(name) and not _stands_beside(Path(name))
            ]
            if not found:
                raise OptionError(f"no file matches {path}")
            return Located(
                [Shard(file, split_of(file.name)) for file in found],
                class_names=_common_labels(found),
            )
        path.stat()  # says it in words if it is not there
    if path.name in (MANIFEST_NAME, LABELS_NAME):
        raise OptionError(f"{path} is a part of a dataset; name its folder, {path.parent}")
    if _is_text_index(path):
        raise OptionError(
            f"{path} says where the records of another file begin, and holds none: name that file, "
            "or quote a pattern ('out/train-*'), so that such files are passed over"
        )
    return Located([Shard(path, split_of(path.name))], class_names=read_labels(path.parent))


def _stands_beside(path: Path) -> bool:
    return path.name in (MANIFEST_NAME, LABELS_NAME) or _is_text_index(path)


def _is_text_index(path: Path) -> bool:
    return is_text_index_name(path.name) and not looks_like_records(path)


def _common_names(parts: Iterable[Located]) -> ClassNames | None:
    """The class names that all parts have."""
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
        if read_begun(folder) is not None:
            raise CorruptDataError(
                Defect.UNFINISHED_DATASET,
                "a job was stopped while it gave the files their names, so some may be missing. "
                "Run the same job again: it finishes the dataset.",
                path=folder,
            )
    except CorruptDataError as error:
        if not around_defects:
            raise
        return replace(_locate_files(folder), ignored=(error,))
    return _locate_files(folder)


def _holds_none(folder: Path, files: list[str]) -> OptionError:
    """That a folder is none of shards: with what it holds, and what may be meant."""
    folders = sorted(
        entry.name
        for entry in list_folder(folder)
        if os.path.isdir(entry) and not entry.name.startswith(".")
    )
    found = first_of(files, _NAMED) if files else "no files"
    text = f"{folder} holds no TFRecord file and no {MANIFEST_NAME}: "
    if not files and not folders:
        return OptionError(f"{text}it is empty; look whether this is the right folder")
    if not folders:
        return OptionError(f"{text}found {found}")
    return OptionError(
        f"{text}found {found}, and the folders {first_of(folders, _NAMED)}. If the shards lie "
        f"deeper, name their folder or use a glob such as {folder}/*/*.tfrecord"
    )


def _locate_files(folder: Path) -> Located:
    """The files of records in a folder, or else in its folders of splits.

    Raises:
        OptionError: there are none.
        CorruptDataError: unfinished-dataset.
    """
    located, other = _files_of(folder)
    if located.shards:
        return located
    _check_unfinished(folder)
    parts = [_files_of(below)[0] for below in _folders_of_splits(folder)]
    shards = [shard for part in parts for shard in part.shards]
    if not shards:
        raise _holds_none(folder, other)
    return Located(
        shards,
        class_names=read_labels(folder) or _common_names(parts),
        missing=tuple(missing for part in parts for missing in part.missing),
    )


def _folders_of_splits(folder: Path) -> list[Path]:
    """The folders below one that are called like splits; none if one of them is a dataset."""
    found = [
        Path(entry.path)
        for entry in list_folder(folder)
        if is_split_name(entry.name) and os.path.isdir(entry)
    ]
    return [] if any((below / MANIFEST_NAME).exists() for below in found) else found


def _files_of(folder: Path) -> tuple[Located, list[str]]:
    """The files of records in a folder, and the names of others."""
    shards = []
    numbered: dict[tuple[str, int], set[int]] = {}
    other = []
    for entry in list_folder(folder):
        if entry.name.startswith(".") or not os.path.isfile(entry):  # links in a circle are none
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
                f"shard {number} of {count} of {split!r} is not there. To open what is "
                "there, name the files or use a glob.",
                path=folder / shard_name(split, number, count),
            ),
        )
        for (split, count), numbers in numbered.items()
        for number in _missing_numbers(numbers, count)
    ]
    return Located(shards, class_names=read_labels(folder), missing=tuple(missing)), other


def _check_unfinished(folder: Path) -> None:
    """See that a folder without records is not one where a job keeps them until it has all."""
    internal = folder / INTERNAL_FOLDER
    with accessing(internal):
        names = os.listdir(internal) if internal.is_dir() else []
    if any(
        name.endswith((PARTIAL_SUFFIX, DONE_SUFFIX)) and not name.startswith(".") for name in names
    ):
        done = sum(name.endswith(DONE_SUFFIX) for name in names)
        raise CorruptDataError(
            Defect.UNFINISHED_DATASET,
            f"the job that makes this dataset is at work or was stopped; what it has ({done:,} "
            f"complete {'shard' if done == 1 else 'shards'}) lies in {internal}. Run the same job "
            "again: it goes on from there. Or remove the folder to give it up.",
            path=folder,
        )


def _missing_numbers(numbers: set[int], count: int) -> list[int]:
    """The first of the numbers that are not there: a name may claim any number and any count."""
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
                    f"the manifest lists {entry.file}, which is not there. Fetch it again, or open "
                    "the shards that are there by name or with a glob.",
                    path=path,
                )
                missing.append((split, error))
                continue
            shards.append(Shard(path, split, entry=entry, compression=manifest.compression))
    return Located(shards, manifest, manifest.class_names, tuple(missing), folder=folder)


def looks_like_records(path: Path) -> bool:
    """Whether a file passes for a TFRecord, by its bytes, or by its name if they say nothing."""
    try:
        head = read_head(path, HEAD_BYTES)
    except ForbiddenFileError:  # whoever reads it will say so
        head = b""
    return begins_frame(head) or passes_for_shard(path.name)
