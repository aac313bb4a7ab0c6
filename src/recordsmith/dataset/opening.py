"""`recordsmith.open`: from a path to a Dataset."""

from __future__ import annotations

from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.locate import Paths, locate
from recordsmith.dataset.manifest import Manifest
from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, Defect


def open(paths: Paths, split: str | None = None) -> Dataset:  # noqa: A001 - named as users say it
    """Open TFRecord files as one dataset.

    Args:
        paths: a file, a folder, a glob pattern, or a list of these.
        split: only the shards of this split, as their manifest or their names tell.

    Returns:
        The dataset. Nothing is read yet but names, sizes and the manifest.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: nothing there looks like a TFRecord, or there is no such split.
        CorruptDataError: broken-manifest; missing-shard; shard-size-mismatch, where a shard is
            not as long as its manifest says.
    """
    located = locate(paths, split)
    for defect in located.defects:
        raise defect
    manifest = located.manifest
    if manifest is not None:
        _check_sizes(located.shards, manifest)
    return Dataset(
        located.shards,
        schema=None if manifest is None else manifest.schema,
        class_names=located.class_names,
    )


def _check_sizes(shards: list[Shard], manifest: Manifest) -> None:
    expected = {
        entry.file: entry.size_bytes for entries in manifest.splits.values() for entry in entries
    }
    for shard in shards:
        size = shard.size_bytes
        if size != expected[shard.path.name]:
            raise CorruptDataError(
                Defect.SHARD_SIZE,
                f"the shard has {size} bytes, its manifest says {expected[shard.path.name]}. It "
                "was cut, grown or replaced after it was packed; fetch it again, or open it by "
                "its own name.",
                path=shard.path,
            )
