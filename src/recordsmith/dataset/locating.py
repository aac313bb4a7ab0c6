"""Finds the shards of a path: a file, a folder, a glob, or a list of these.

A folder with a manifest has the shards of the manifest. A folder without one has all TFRecord files
in it, detected by name or by their first bytes; if there are none, those in its split folders
(`train/`, `valid/`). A folder of TensorFlow Datasets has the shards of its `dataset_info.json`.

The first bytes are read of a few files of each suffix, and of all of them if there are records
among these. A file whose name differs only in numbers from that of a shard is a shard, too, even if
its first bytes are damaged. Over a network, even fewer are read, and only if no name is one of a
shard.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from recordsmith.dataset.keypoint_classes import KeypointClasses, join_keypoint_classes
from recordsmith.dataset.labels import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    ClassNames,
    is_label_map_name,
    read_label_map,
    read_labels,
)
from recordsmith.dataset.layers import LAYER_REMEDY, ShardEntry
from recordsmith.dataset.manifest import (
    MANIFEST_NAME,
    Manifest,
    read_begun_note,
    read_manifest,
)
from recordsmith.dataset.names import (
    DONE_SUFFIX,
    INTERNAL_FOLDER,
    PARTIAL_SUFFIX,
    TFDS_FEATURES_NAME,
    TFDS_INFO_NAME,
    has_split_word,
    is_split_name,
    is_split_slice,
    is_text_index_name,
    looks_like_shard,
    parse_shard_name,
    shard_name,
    split_of,
    splits_of_folders,
)
from recordsmith.dataset.shard import Shard
from recordsmith.format.wire import HEAD_BYTES, starts_with_record
from recordsmith.stores import (
    NOTE_BYTES,
    FolderEntry,
    Location,
    ObjectInfo,
    PlaceLike,
    as_place,
    read_existing,
)
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    ForbiddenFileError,
    MissingFileError,
    OptionError,
    RecordsmithError,
    option,
)
from recordsmith.support.explaining import LeftOutWarning, warn_user
from recordsmith.support.words import first_of, suggest_names

Paths: TypeAlias = PlaceLike | Sequence[PlaceLike]

_NAMED = 5
_DIGITS = re.compile(r"\d+")
_DOCUMENT = re.compile(
    r"\..*|LICENSE|.*\.(?:json|txt|pbtxt|md|csv|html|ya?ml|idx|tfindex)", re.IGNORECASE
)
_NAME_OTHERS = "Fetch it again, or open the existing shards by name or with a glob."
_NAME_FILES = "Pass the names of the files, or a folder that recordsmith packed."
_PEEKS, _REMOTE_PEEKS = 64, 2  # files of a suffix
_MAX_PEEKS, _MAX_REMOTE_PEEKS = 1024, 16
HELD_BYTES = 64 << 20
"""A layer over a network of at most this size is kept in memory."""

_LOOKED_AT = 4  # manifests next to files
_MAX_MISSING = 1000
"""The maximum of missing shards of a split that are listed."""


class MissingShard(NamedTuple):
    """A shard that should exist, and the error that reports it."""

    split: str
    location: Location
    error: DataError


class ListedFolder:
    """A folder and the names in its listing. It is listed on first use."""

    def __init__(self, location: Location, entries: dict[str, FolderEntry] | None = None) -> None:
        self.location = location
        self._entries = entries

    @property
    def entries(self) -> dict[str, FolderEntry]:
        """Everything directly in the folder, by name, in the order of names."""
        if self._entries is None:  # cached_property of Python 3.11 lets one thread list at a time
            self._entries = {entry.name: entry for entry in self.location.list_entries()}
        return self._entries

    @property
    def objects(self) -> list[FolderEntry]:
        return [entry for entry in self.entries.values() if entry.kind == "object"]

    @property
    def folders(self) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.kind == "folder"]

    def has(self, name: str) -> bool:
        """Return whether there is an object; its name may lead into a folder."""
        first, slash, _ = name.partition("/")
        entry = self.entries.get(first)
        if entry is None:
            return False
        return (self.location / name).exists() if slash else entry.kind == "object"

    def shard(self, name: str, split: str, **known: Any) -> Shard:
        """Return an object in the folder, or below it, as a shard."""
        location, entry = self.location / name, self.entries.get(name)
        listed = None
        if entry is not None and entry.kind == "object":
            listed = ObjectInfo(location.key, entry.size_bytes, entry.version)
        return Shard(
            location,
            split,
            listed=listed,
            may_have_index="/" in name or INTERNAL_FOLDER in self.entries,
            **known,
        )


class Located(msgspec.Struct, frozen=True):
    """The shards of a path.

    shards: in the order of the manifest, or by name in each folder.
    manifest: the manifest, if the path is a folder with one.
    class_names: from the manifest, `labels.txt` or a label map.
    missing: the shards that should exist.
    ignored: errors that were ignored on request.
    folder: the folder of the manifest.
    listing: what lies in that folder; None if it cannot be listed.
    label_map: where the class names are from, if that is a label map next to foreign shards.
    unlisted: shards in a folder whose document lists others, which are missing.
    left_out: other files in a folder that may have been shards, located around defects.
    record_counts: of shards without a manifest, as `dataset_info.json` lists them.
    is_named: whether these are files that were named, and not those of a folder.
    keypoint_classes: from the manifests; empty if they differ.
    """

    shards: list[Shard]
    manifest: Manifest | None = None
    class_names: ClassNames | None = None
    missing: tuple[MissingShard, ...] = ()
    ignored: tuple[DataError, ...] = ()
    folder: Location | None = None
    listing: ListedFolder | None = None
    label_map: Location | None = None
    unlisted: tuple[Shard, ...] = ()
    left_out: tuple[Location, ...] = ()
    record_counts: dict[Location, int] = {}
    keypoint_classes: KeypointClasses = {}
    is_named: bool = False

    def of_splits(self, splits: Sequence[str]) -> Located:
        """Return only the shards of some splits, in the order of these."""
        shards = [shard for split in splits for shard in self.shards if shard.split == split]
        missing = tuple(missing for missing in self.missing if missing.split in splits)
        return replace(self, shards=shards, missing=missing)

    def check_whole(self) -> None:
        """Verify that all shards exist, with the sizes in their manifest."""
        for missing in self.missing:
            raise missing.error
        for shard in self.shards:
            shard.check_size()


def as_places(paths: Paths) -> list[Location]:
    """Convert one path or several to locations."""
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

    With `around_defects`, a broken manifest or an unfinished publication is ignored, and the shards
    are also those that the document of a folder does not list if it lists missing ones.
    """
    parts = locate_each(as_places(paths), around_defects=around_defects)
    located = parts[0]
    if len(parts) > 1:
        names, label_map = _common_names(parts)
        located = Located(
            [shard for part in parts for shard in part.shards],
            class_names=names,
            label_map=label_map,
            missing=tuple(missing for part in parts for missing in part.missing),
            ignored=tuple(error for part in parts for error in part.ignored),
            left_out=tuple(location for part in parts for location in part.left_out),
            record_counts={key: n for part in parts for key, n in part.record_counts.items()},
            keypoint_classes=_common_keypoints(parts),
        )
    if split is not None:
        check_split(split, split_names([located]))
        located = located.of_splits([split])
    return located


def locate_each(places: Iterable[Location], *, around_defects: bool = False) -> list[Located]:
    """Find the shards of each path; the folders of all paths together can determine splits."""
    parts = [_locate_one(place, around_defects) for place in places]
    _warn_of_layers(shard.location for part in parts if part.is_named for shard in part.shards)
    unnamed = [shard.location for part in parts for shard in part.shards if shard.entry is None]
    splits = splits_of_folders(unnamed)
    return [_split_by_folders(part, splits) for part in parts] if splits else parts


def _warn_of_layers(files: Iterable[Location]) -> None:
    """Warn of layers of a dataset whose files were named: only its manifest has their layers."""
    by_folder: dict[Location, set[str]] = {}
    for file in files:
        by_folder.setdefault(file.parent, set()).add(file.name)
    for folder, names in islice(by_folder.items(), _LOOKED_AT):
        with suppress(RecordsmithError):  # the files can be read whatever is next to them
            if b'"layers"' not in (read_existing(folder / MANIFEST_NAME, NOTE_BYTES) or b""):
                continue
            manifest = read_manifest(folder)
            if manifest is None or names.isdisjoint(shard.file for shard in manifest.shards):
                continue
            layers = first_of([layer.name for layer in manifest.layers], _NAMED)
            warn_user(
                f"files of {folder} are opened without its layers ({layers}), which only opening "
                "the folder reads",
                LeftOutWarning,
            )


def _split_by_folders(part: Located, splits: Mapping[str, str]) -> Located:
    """Assign splits by folder to shards without a manifest and without a split word."""
    for shard in part.shards:
        if shard.entry is None and not has_split_word(shard.location.name):
            shard.split = splits[str(shard.location.parent)]
    missing = tuple(
        one
        if has_split_word(one.location.name)
        else one._replace(split=splits.get(str(one.location.parent), one.split))
        for one in part.missing
    )
    return replace(part, missing=missing)


def locate_whole(paths: Paths, split: str | None = None) -> Located:
    """Find shards as `locate`, and verify that all exist with the sizes in their manifest."""
    located = locate(paths, split)
    located.check_whole()
    return located


def split_names(parts: Iterable[Located]) -> list[str]:
    """Return the names of all splits, in order of first appearance."""
    names = dict[str, None]()
    for part in parts:
        names |= dict.fromkeys(shard.split for shard in part.shards)
        names |= dict.fromkeys(() if part.manifest is None else part.manifest.splits)
    return list(names)


def check_split(split: str, names: Collection[str]) -> None:
    """Raise OptionError if a split is not one of those that exist."""
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
    store, is_pattern = place.store, glob.has_magic(str(place))
    if not store.can_list and not looks_like_shard(place.name):
        located = _locate_by_manifest(place)
        if located is not None:
            return located
    # in a store without folders, only a listing shows them: look for an object of that name first
    is_file_name = store.is_remote and (is_pattern or looks_like_shard(place.name))
    folder = None if is_file_name else _folder_at(place)
    if folder is not None:
        return _locate_folder(folder, around_defects)
    info = None
    try:
        info = place.info()
    except MissingFileError as error:
        if is_pattern:
            return _locate_matching(place)
        folder = _folder_at(place) if is_file_name else None
        if folder is not None:
            return _locate_folder(folder, around_defects)
        similar = place.similar() if store.can_list else None
        if similar is not None:
            error.advise(f"Did you mean {similar}?")
        elif not store.can_list:
            error.advise(_NAME_FILES)
        raise
    except FileAccessError as error:
        if error.errno != errno.EINVAL:  # a pipe can be read in order
            if not store.can_list:
                error.advise(_NAME_FILES)
            raise
    return _locate_file(place, info)


def _locate_folder(folder: ListedFolder, around_defects: bool) -> Located:
    if not around_defects:
        return _locate_finished(folder)
    try:
        located = _locate_finished(folder)
    except DataError as error:
        located = replace(_locate_files(folder), ignored=(error,))
    shards = [*located.shards, *located.unlisted]
    names = {shard.location.name for shard in shards}
    left_out = tuple(
        folder.location / entry.name
        for entry in folder.objects
        if entry.name not in names and not _DOCUMENT.fullmatch(entry.name)
    )
    return replace(located, shards=shards, left_out=left_out)


def _folder_at(place: Location) -> ListedFolder | None:
    folder = ListedFolder(place)
    if not (place.store.is_remote and place.key):
        return folder if place.is_folder() else None
    try:
        return folder if folder.entries else None
    except FileAccessError:  # web servers often refuse to list
        if place.store.can_list:
            raise
        return None


def _locate_matching(pattern: Location) -> Located:
    """The files that match a pattern, without manifests, class names and text indexes."""
    listed: dict[Location, ObjectInfo | None]
    if pattern.store.is_remote:
        infos = pattern.store.list_matching(pattern.key)
        listed = {Location(pattern.store, info.key): info for info in infos}
    else:
        listed = dict.fromkeys(place for place in pattern.glob() if not place.is_folder())
    files = {
        place: info
        for place, info in listed.items()
        if not _describes_dataset(place.name) and not _is_text_index(place)
    }
    if not files:
        raise OptionError(f"no file matches {pattern}", option="paths", value=str(pattern))
    is_one_folder = len({place.parent for place in files}) == 1
    names, label_map = _names_next_to(next(iter(files))) if is_one_folder else (None, None)
    return Located(
        [Shard(place, split_of(place.name), listed=info) for place, info in files.items()],
        class_names=names,
        label_map=label_map,
        is_named=True,
    )


def _locate_by_manifest(folder: Location) -> Located | None:
    """The shards of a manifest, without a listing; None if there is no manifest.

    Their sizes are those in the manifest until each shard is opened.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return None
    begun = read_begun_note(folder)
    if begun is not None and not begun.allows(manifest):
        raise _unfinished_error(folder)
    return _packed(folder, manifest)


def _locate_file(place: Location, info: ObjectInfo | None) -> Located:
    if _describes_dataset(place.name):
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
    names, label_map = _names_next_to(place)
    shard = Shard(place, split_of(place.name), listed=info)
    return Located([shard], class_names=names, label_map=label_map, is_named=True)


def _describes_dataset(name: str) -> bool:
    return name in (MANIFEST_NAME, LABELS_NAME) or is_label_map_name(name)


def _is_text_index(location: Location) -> bool:
    return is_text_index_name(location.name) and not looks_like_records(location)


_Names: TypeAlias = tuple[ClassNames | None, Location | None]
"""Class names, and the label map that they are from."""


def _common_names(parts: Sequence[Located]) -> _Names:
    """The class names of all parts; None if they differ, but label maps may not."""
    label_maps = [part.label_map for part in parts if part.label_map is not None]
    _agreeing_names(label_maps)
    names = {part.class_names for part in parts}
    return (names.pop(), next(iter(label_maps), None)) if len(names) == 1 else (None, None)


def _common_keypoints(parts: Sequence[Located]) -> KeypointClasses:
    joined: KeypointClasses = {}
    with suppress(OptionError):
        for part in parts:
            joined = join_keypoint_classes(joined, part.keypoint_classes, "")
        return joined
    return {}


def _agreeing_names(label_maps: Iterable[Location]) -> _Names:
    """The class names in label maps, which must be the same in each."""
    first: _Names = None, None
    for location in label_maps:
        try:
            names = read_label_map(location)
        except OptionError as error:
            error.advise("It names the classes of the shards next to it: fix or remove it.")
            raise
        if first[0] is not None and first[0] != names:
            raise OptionError(
                f"the label maps {first[1]} and {location} have different classes",
                option="paths",
                value=str(location),
                remedy="Fix or remove one of them, or open their shards separately.",
            )
        first = (names, location) if first[0] is None else first
    return first


def _names_next_to(shard: Location) -> _Names:
    folder, stem = shard.parent, shard.name.partition(".")[0]
    names = read_labels(folder)
    if names is not None or folder.store.is_remote:
        return names, None
    label_maps = (folder / name for name in (LABEL_MAP_NAME, f"{stem}_{LABEL_MAP_NAME}"))
    return _agreeing_names(location for location in label_maps if location.exists())


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
        located = _packed(location, manifest, folder)
        files = (file for shard in located.shards for file in (shard, *shard.layers))
        if not renames and (located.missing or not all(file.has_listed_size for file in files)):
            folder = ListedFolder(location)
            located = _packed(location, manifest, folder)
        of_layers = any(missing.location.parent != location for missing in located.missing)
        latest = read_manifest(location) if of_layers else None
        if latest is not None and latest.to_bytes() != manifest.to_bytes():  # changed meanwhile
            return _locate_finished(ListedFolder(location))
        return _compare_names(located, folder, MANIFEST_NAME)
    if begun is not None:
        raise _unfinished_error(location)
    if not renames and read_manifest(location) is not None:  # a job has just ended
        return _locate_finished(ListedFolder(location))
    return _locate_tfds(folder) or _locate_files(folder)


def _locate_tfds(folder: ListedFolder) -> Located | None:
    """The shards that TensorFlow Datasets lists; None if the folder is not one of TFDS.

    Without `features.json`, which old versions did not write, at least one shard must exist. A
    document that lists no shards names the splits of those that exist.
    """
    if not folder.has(TFDS_INFO_NAME):
        return None
    from recordsmith.dataset.tfds.folder import class_names_in, is_tfds_info, read_info

    has_features = folder.has(TFDS_FEATURES_NAME)
    if not has_features and not is_tfds_info(folder.location):  # other libraries use the name, too
        return None
    info = read_info(folder.location)
    if info.file_format != "tfrecord":
        return None
    shards, missing, record_counts = [], [], {}
    for split in info.splits:
        names = split.file_names(info.name)
        for name, record_count in zip(names, split.shard_lengths, strict=True):
            if folder.has(name):
                shards.append(folder.shard(name, split.name))
                record_counts[shards[-1].location] = record_count
                continue
            problem = f"{TFDS_INFO_NAME} lists {name}, which is missing"
            missing.append(_missing_shard(split.name, folder.location / name, problem))
    if not shards and not missing:
        splits = {f"{info.name}-{split.name}": split.name for split in info.splits}
        names = [name for name in _records_in(folder) if split_of(name) in splits]
        shards = [folder.shard(name, splits[split_of(name)]) for name in names]
    located = Located(shards, missing=tuple(missing), record_counts=record_counts)
    located = _compare_names(located, folder, TFDS_INFO_NAME)
    if not (located.shards or located.unlisted or has_features):
        return None
    class_names = class_names_in(folder.location, info, list(folder.entries))
    return replace(located, class_names=class_names)


def _compare_names(located: Located, folder: ListedFolder, document: str) -> Located:
    """Report if a document lists missing shards, and the folder has others."""
    listed = {shard.location.name for shard in located.shards}
    own = [shard for shard in located.missing if shard.location.parent == folder.location]
    names = [name for name in _records_in(folder) if name not in listed] if own else []
    if not names:
        return located
    missing = [shard for shard in located.missing if shard not in own]  # of layers
    for shard in own:
        error = CorruptDataError(
            Defect.MISSING_SHARD,
            "the names of the shards and the document disagree",
            found=first_of(names, _NAMED),
            expected=f"{shard.location.name}, as in {document}",
            remedy="Rename the files, or open them with a glob. `recordsmith salvage` recovers the "
            "records of all of them.",
            path=shard.location,
        )
        missing.append(shard._replace(error=error))
    unlisted = tuple(folder.shard(name, split_of(name)) for name in names)
    return replace(located, missing=tuple(missing), unlisted=unlisted)


def _missing_shard(
    split: str, location: Location, problem: str, remedy: str = _NAME_OTHERS
) -> MissingShard:
    error = CorruptDataError(Defect.MISSING_SHARD, problem, remedy=remedy, path=location)
    return MissingShard(split, location, error)


def _unfinished_error(folder: Location) -> DataError:
    return CorruptDataError(
        Defect.UNFINISHED_DATASET,
        "the job that writes this dataset is running or was interrupted, so files may be missing",
        remedy="Rerun the same job to finish the dataset. `recordsmith recover` finishes or undoes "
        "a change of a dataset.",
        path=folder,
    )


def _no_shards_error(listed: ListedFolder, files: list[str]) -> OptionError:
    folder = listed.location
    folders = [name for name in listed.folders if not name.startswith(".")]
    from recordsmith.dataset.tfds.folder import innermost_folder, is_tfds_info

    foreign = detect_foreign_folder(folder, files)
    inner, _ = innermost_folder(folder)
    content = f"found {first_of(files, _NAMED) if files else 'no files'}"
    remedy = ""
    if foreign is not None:
        content, remedy = f"it is {foreign[0]}", foreign[1]
    elif inner != folder and is_tfds_info(inner):
        content = f"found a dataset of TensorFlow Datasets in {inner}"
        remedy = "Pass that folder."
    elif folders:
        content = f"{content}, and the folders: {first_of(folders, _NAMED)}"
        remedy = (
            "If the shards are in one of these folders, pass that folder or a glob: "
            f"`{folder}/*/*.tfrecord`."
        )
    elif files and folder.store.is_remote:
        remedy = "Over a network, few files are examined: pass their names, or a pattern."
    elif not files and not folder.store.can_list:
        content = "the server does not list its files"
        remedy = _NAME_FILES
    elif not files:
        content = "it is empty"
        remedy = "Check the path."
    return OptionError(
        f"{folder} has no TFRecord file and no {MANIFEST_NAME}: {content}",
        option="paths",
        value=str(folder),
        remedy=remedy,
    )


def _locate_files(folder: ListedFolder) -> Located:
    """Find the TFRecord files in a folder, or otherwise in its split folders."""
    located, other = _files_of(folder)
    if located.shards:
        return located
    _check_unfinished(folder)
    parts = [_files_of(below)[0] for below in _folders_of_splits(folder)]
    shards = [shard for part in parts for shard in part.shards]
    if not shards:
        raise _no_shards_error(folder, other)
    names, label_map = located.class_names, located.label_map
    if names is None or label_map is not None:
        named = [part for part in (located, *parts) if part.class_names is not None]
        names, label_map = _common_names(named)
    return Located(
        shards,
        class_names=names,
        label_map=label_map,
        missing=tuple(missing for part in parts for missing in part.missing),
    )


def _names_in(folder: ListedFolder) -> _Names:
    names = read_labels(folder.location) if folder.has(LABELS_NAME) else None
    if names is not None:
        return names, None
    entries = (entry.name for entry in folder.objects if is_label_map_name(entry.name))
    return _agreeing_names(folder.location / name for name in entries)


def _folders_of_splits(folder: ListedFolder) -> list[ListedFolder]:
    """The folders with names of splits; empty if one of them is a dataset itself."""
    names = [name for name in folder.folders if is_split_name(name)]
    folders = [ListedFolder(folder.location / name) for name in names]
    return [] if any(below.has(MANIFEST_NAME) for below in folders) else folders


def _files_of(folder: ListedFolder) -> tuple[Located, list[str]]:
    shards = []
    numbered: dict[tuple[str, int], set[int]] = {}
    files = _visible(folder)
    records = _records_in(folder)
    for name in records:
        shards.append(folder.shard(name, split_of(name)))
        parsed = parse_shard_name(name)
        if parsed is not None:
            numbered.setdefault((parsed.split, parsed.shard_count), set()).add(parsed.number)
    shards.sort(key=lambda shard: shard.split)
    missing = []
    for (split, count), numbers in numbered.items():
        for number in _missing_numbers(numbers, count):
            location = folder.location / shard_name(split, number, count)
            problem = f"shard {number} of {count} of split {split!r} is missing"
            missing.append(_missing_shard(split, location, problem))
    known = {*records}
    other = [name for name in files if name not in known]
    names, label_map = _names_in(folder)
    located = Located(shards, class_names=names, missing=tuple(missing), label_map=label_map)
    return located, other


def _visible(folder: ListedFolder) -> list[str]:
    return [entry.name for entry in folder.objects if not entry.name.startswith(".")]


def _records_in(listed: ListedFolder) -> list[str]:
    """The names of TFRecord files in a folder, by their names or first bytes."""
    folder, names = listed.location, _visible(listed)
    is_remote = folder.store.is_remote
    records = {name for name in names if looks_like_shard(name)}
    by_suffix: dict[str, list[str]] = {}
    for name in names if not (is_remote and records) else ():
        if name not in records:
            _, dot, suffix = name.rpartition(".")
            by_suffix.setdefault(_without_numbers(dot and suffix.lower()), []).append(name)
    left = _MAX_REMOTE_PEEKS if is_remote else _MAX_PEEKS
    for others in by_suffix.values():
        peeks = min(_REMOTE_PEEKS if is_remote else _PEEKS, left)
        few = others[:: -(-len(others) // peeks)] if peeks else []
        left -= len(few)
        found = [name for name in few if looks_like_records(folder / name)]
        if found and is_remote:
            records.update(others if len(found) == len(few) else found)
        elif found:
            rest = (name for name in others if name not in few)
            found += (name for name in rest if looks_like_records(folder / name))
            # a shard whose start is damaged must not be missing in silence
            patterns = {_without_numbers(name) for name in found}
            records.update(name for name in others if _without_numbers(name) in patterns)
    return [name for name in names if name in records]


def _without_numbers(name: str) -> str:
    return _DIGITS.sub("0", name)


def _check_unfinished(folder: ListedFolder) -> None:
    if INTERNAL_FOLDER not in folder.entries:
        return
    internal = folder.location / INTERNAL_FOLDER
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
            path=folder.location,
        )


def _missing_numbers(numbers: set[int], count: int) -> list[int]:
    """The first missing numbers; limited, because file names can have any number and count."""
    stop = min(count, max(numbers) + 2, len(numbers) + _MAX_MISSING)
    return [number for number in range(stop) if number not in numbers][:_MAX_MISSING]


def locate_packed(folder: Location, manifest: Manifest) -> Located:
    """Find the shards of a manifest that is not the one in the folder."""
    return _packed(folder, manifest, ListedFolder(folder) if folder.store.can_list else None)


def _packed(folder: Location, manifest: Manifest, listing: ListedFolder | None = None) -> Located:
    """The shards of a manifest, with layers; of a folder that cannot be listed, all of them."""
    layers = [
        (layer, None if listing is None else _listed(folder / layer.folder))
        for layer in manifest.layers
    ]
    shards = []
    missing = []

    def find(
        folder: Location, listing: ListedFolder | None, entry: ShardEntry, split: str, **known: Any
    ) -> Shard | None:
        if listing is None:
            return Shard(folder / entry.file, split, entry=entry, **known)
        if listing.has(entry.file):
            return listing.shard(entry.file, split, entry=entry, **known)
        problem = f"the manifest lists {entry.file}, which is missing"
        remedy = LAYER_REMEDY if known.get("features") else _NAME_OTHERS
        missing.append(_missing_shard(split, folder / entry.file, problem, remedy))
        return None

    for split, entries in manifest.splits.items():
        for entry in entries:
            shard = find(folder, listing, entry, split, compression=manifest.compression)
            if shard is None:
                continue
            shards.append(shard)
            for layer, listed in layers:
                own = layer.shards.get(entry.key)
                if own is None:
                    continue
                known = {"compression": "none", "features": frozenset(layer.features)}
                part = find(folder / layer.folder, listed, own, split, **known)
                if part is not None:
                    part.is_held = part.is_remote and layer.size_bytes <= HELD_BYTES
                    shard.layers += (part,)
    return Located(
        shards,
        manifest,
        manifest.class_names,
        tuple(missing),
        folder=folder,
        listing=listing,
        keypoint_classes=manifest.keypoint_classes,
    )


def _listed(folder: Location) -> ListedFolder:
    """A folder that may be missing: nothing is in it then."""
    listed = ListedFolder(folder)
    with suppress(MissingFileError):
        _ = listed.entries
        return listed
    return ListedFolder(folder, {})


def looks_like_records(location: Location) -> bool:
    """Whether a file is a TFRecord by its name, or by its first bytes."""
    if looks_like_shard(location.name):
        return True
    try:
        return starts_with_record(location.read(0, HEAD_BYTES))
    except ForbiddenFileError:
        return False


def detect_foreign_folder(folder: Location, names: Collection[str]) -> tuple[str, str] | None:
    """Return what a folder of Hugging Face's `save_to_disk` is, and how to pack it."""
    load = f"recordsmith.pack(datasets.load_from_disk({str(folder)!r}), OUT)"
    if "dataset_dict.json" in names:
        return (
            "a DatasetDict that save_to_disk of Hugging Face wrote",
            f"Pack all splits in Python with {load}, or pack the folder of one split.",
        )
    if {"dataset_info.json", "state.json"} <= {*names}:
        return (
            "a Dataset that save_to_disk of Hugging Face wrote",
            f"Pack it with `recordsmith pack {folder} OUT`, or in Python with {load}.",
        )
    return None
