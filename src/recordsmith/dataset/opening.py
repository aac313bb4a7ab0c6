"""`recordsmith.open`: opens paths as a Dataset."""

from __future__ import annotations

from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.locate import Paths, locate_whole
from recordsmith.errors import OptionError, option


def open(paths: Paths, split: str | None = None) -> Dataset:  # noqa: A001 - named as users say it
    """Open TFRecord files as one dataset.

    Args:
        paths: a file, a folder, a glob pattern, or a list of these.
        split: open only this split, according to the manifest or to file names.

    Returns:
        The dataset. Opening reads only names, sizes and the manifest; without a manifest, also the
        first bytes of each file.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: no TFRecord files were found, or the split is unknown.
        CorruptDataError: broken-manifest, unfinished-dataset, missing-shard, or
            shard-size-mismatch, if the size of a shard differs from the manifest.

    Example:
        dataset = rs.open("out", split="train")
    """
    located = locate_whole(paths, split)
    manifest = located.manifest
    return Dataset(
        located.shards,
        schema=None if manifest is None else manifest.schema_of(split),
        class_names=located.class_names,
    )


def dataset_of(paths_or_dataset: Paths | Dataset, split: str | None = None) -> Dataset:
    """Return a Dataset as it is, or open paths.

    Raises:
        OptionError: a split is passed with a Dataset; or as in `open`.
    """
    if not isinstance(paths_or_dataset, Dataset):
        return open(paths_or_dataset, split)
    if split is not None:
        raise OptionError(
            f"{option('split')} needs a path, not a Dataset",
            option="split",
            value=split,
            remedy="Open the dataset with open(path, split).",
        )
    return paths_or_dataset
