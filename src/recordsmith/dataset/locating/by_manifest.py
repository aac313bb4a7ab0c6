"""Finds the shards and the layers that a manifest lists."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from recordsmith.dataset.layers import LAYER_REMEDY, ShardEntry
from recordsmith.dataset.locating.located import ListedFolder, Located, missing_shard
from recordsmith.dataset.manifest import Manifest
from recordsmith.dataset.shard import Shard
from recordsmith.stores import Location
from recordsmith.support.errors import MissingFileError

HELD_BYTES = 64 << 20
"""A layer over a network of at most this size is kept in memory."""


def locate_packed(
    folder: Location, manifest: Manifest, listing: ListedFolder | None = None
) -> Located:
    """Find the shards of a manifest, with their layers.

    Where folders cannot be listed, these are all shards of the manifest, with the sizes in it until
    each shard is opened.

    Args:
        manifest: the one in the folder, or another one.
        listing: of the folder, if it has been listed.
    """
    if listing is None and folder.store.can_list:
        listing = ListedFolder(folder)
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
        remedy = LAYER_REMEDY if known.get("features") else ""
        missing.append(missing_shard(split, folder / entry.file, problem, remedy))
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
