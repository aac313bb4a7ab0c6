"""Finds the class names that belong to shards without a manifest, and what several paths share.

They are in `labels.txt`, or otherwise in a label map, next to the shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias

from recordsmith.dataset.keypoint_classes import KeypointClasses, join_keypoint_classes
from recordsmith.dataset.labels import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    ClassNames,
    is_label_map_name,
    read_label_map,
    read_labels,
)
from recordsmith.dataset.locating.located import ListedFolder, Located
from recordsmith.stores import Location
from recordsmith.support.errors import OptionError

_Names: TypeAlias = tuple[ClassNames | None, Location | None]
"""Class names, and the label map that they are from."""


def names_in(folder: ListedFolder) -> _Names:
    """Return the class names for all shards of a folder."""
    names = read_labels(folder.location) if folder.has(LABELS_NAME) else None
    if names is not None:
        return names, None
    entries = (entry.name for entry in folder.objects if is_label_map_name(entry.name))
    return _agreeing_names(folder.location / name for name in entries)


def names_next_to(shard: Location) -> _Names:
    """Return the class names for a shard that was named; label maps only of a local one."""
    folder, stem = shard.parent, shard.name.partition(".")[0]
    names = read_labels(folder)
    if names is not None or folder.store.is_remote:
        return names, None
    label_maps = (folder / name for name in (LABEL_MAP_NAME, f"{stem}_{LABEL_MAP_NAME}"))
    return _agreeing_names(location for location in label_maps if location.exists())


def common_names(parts: Sequence[Located]) -> _Names:
    """Return the class names of all parts; None if they differ, but label maps may not."""
    label_maps = [part.label_map for part in parts if part.label_map is not None]
    _agreeing_names(label_maps)
    names = {part.class_names for part in parts}
    return (names.pop(), next(iter(label_maps), None)) if len(names) == 1 else (None, None)


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


def common_keypoints(parts: Sequence[Located]) -> KeypointClasses:
    """Return the keypoint classes of all parts; none if they differ."""
    joined: KeypointClasses = {}
    with suppress(OptionError):
        for part in parts:
            joined = join_keypoint_classes(joined, part.keypoint_classes, "")
        return joined
    return {}
