"""Finds the shards of a path: a file, a folder, a glob, or a list of these.

The shards of a folder are found in `folders`. Files that are named or match a glob are shards
without a manifest.
"""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

from msgspec.structs import replace

from recordsmith.dataset.labels import LABELS_NAME, is_label_map_name
from recordsmith.dataset.locating.class_names import (
    common_keypoints,
    common_names,
    names_next_to,
)
from recordsmith.dataset.locating.folders import locate_by_manifest, locate_folder
from recordsmith.dataset.locating.located import NAME_FILES, ListedFolder, Located
from recordsmith.dataset.locating.record_files import looks_like_records
from recordsmith.dataset.manifest import MANIFEST_NAME, read_manifest
from recordsmith.dataset.names import (
    has_split_word,
    is_split_slice,
    is_text_index_name,
    looks_like_shard,
    split_of,
    splits_of_folders,
)
from recordsmith.dataset.shard import Shard
from recordsmith.stores import (
    NOTE_BYTES,
    Location,
    ObjectInfo,
    PlaceLike,
    as_place,
    read_existing,
)
from recordsmith.support.errors import (
    FileAccessError,
    MissingFileError,
    OptionError,
    RecordsmithError,
    option,
)
from recordsmith.support.explaining import LeftOutWarning, warn_user
from recordsmith.support.words import first_of, suggest_names

Paths: TypeAlias = PlaceLike | Sequence[PlaceLike]

_NAMED = 5
_LOOKED_AT = 4  # manifests next to files


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
        names, label_map = common_names(parts)
        located = Located(
            [shard for part in parts for shard in part.shards],
            class_names=names,
            label_map=label_map,
            missing=tuple(missing for part in parts for missing in part.missing),
            ignored=tuple(error for part in parts for error in part.ignored),
            left_out=tuple(location for part in parts for location in part.left_out),
            record_counts={key: n for part in parts for key, n in part.record_counts.items()},
            keypoint_classes=common_keypoints(parts),
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
        located = locate_by_manifest(place)
        if located is not None:
            return located
    # in a store without folders, only a listing shows them: look for an object of that name first
    is_file_name = store.is_remote and (is_pattern or looks_like_shard(place.name))
    folder = None if is_file_name else _folder_at(place)
    if folder is not None:
        return locate_folder(folder, around_defects)
    info = None
    try:
        info = place.info()
    except MissingFileError as error:
        if is_pattern:
            return _locate_matching(place)
        folder = _folder_at(place) if is_file_name else None
        if folder is not None:
            return locate_folder(folder, around_defects)
        similar = place.similar() if store.can_list else None
        if similar is not None:
            error.advise(f"Did you mean {similar}?")
        elif not store.can_list:
            error.advise(NAME_FILES)
        raise
    except FileAccessError as error:
        if error.errno != errno.EINVAL:  # a pipe can be read in order
            if not store.can_list:
                error.advise(NAME_FILES)
            raise
    return _locate_file(place, info)


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
    names, label_map = names_next_to(next(iter(files))) if is_one_folder else (None, None)
    return Located(
        [Shard(place, split_of(place.name), listed=info) for place, info in files.items()],
        class_names=names,
        label_map=label_map,
        is_named=True,
    )


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
    names, label_map = names_next_to(place)
    shard = Shard(place, split_of(place.name), listed=info)
    return Located([shard], class_names=names, label_map=label_map, is_named=True)


def _describes_dataset(name: str) -> bool:
    return name in (MANIFEST_NAME, LABELS_NAME) or is_label_map_name(name)


def _is_text_index(location: Location) -> bool:
    return is_text_index_name(location.name) and not looks_like_records(location)
