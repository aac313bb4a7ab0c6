"""What is at a path: the shards that were found, those that are missing, and a folder's listing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from recordsmith.dataset.keypoint_classes import KeypointClasses
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.manifest import Manifest
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.dataset.shard import Shard
from recordsmith.stores import FolderEntry, Location, ObjectInfo
from recordsmith.support.errors import CorruptDataError, DataError, Defect

_NAME_OTHERS = "Fetch it again, or open the existing shards by name or with a glob."
NAME_FILES = "Pass the names of the files, or a folder that recordsmith packed."
"""The remedy where a server does not list the files of a folder."""


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


def missing_shard(split: str, location: Location, problem: str, remedy: str = "") -> MissingShard:
    """Return a shard that should exist, with the error that reports the problem."""
    error = CorruptDataError(
        Defect.MISSING_SHARD, problem, remedy=remedy or _NAME_OTHERS, path=location
    )
    return MissingShard(split, location, error)
