"""`recordsmith.open`: from a path to a Dataset."""

from __future__ import annotations

from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.locate import Paths, locate
from recordsmith.errors import OptionError


def open(paths: Paths, split: str | None = None) -> Dataset:  # noqa: A001 - named as users say it
    """Open TFRecord files as one dataset.

    Args:
        paths: a file, a folder, a glob pattern, or a list of these.
        split: only the shards of this split, as their manifest or their names tell.

    Returns:
        The dataset. Nothing is read yet but names, sizes and the manifest; of a folder without a
        manifest, the first bytes of each file.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: nothing there looks like a TFRecord, or there is no such split.
        CorruptDataError: broken-manifest; unfinished-dataset; missing-shard;
            shard-size-mismatch, where a shard is not as long as its manifest says.
    """
    located = locate(paths, split)
    located.check_whole()
    manifest = located.manifest
    return Dataset(
        located.shards,
        schema=None if manifest is None else manifest.schema_of(split),
        class_names=located.class_names,
    )


def dataset_of(paths_or_dataset: Paths | Dataset, split: str | None = None) -> Dataset:
    """What a caller means who may give paths, as for `open`, or a Dataset.

    Raises:
        OptionError: a split of a Dataset is asked for; or as `open` does.
    """
    if not isinstance(paths_or_dataset, Dataset):
        return open(paths_or_dataset, split)
    if split is not None:
        raise OptionError("split goes with a path; open the dataset with open(path, split)")
    return paths_or_dataset
