"""`recordsmith.open`: opens paths as a Dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset.dataset import Dataset, DatasetSource, records_of
from recordsmith.dataset.locate import (
    Located,
    Paths,
    as_places,
    check_split,
    locate,
    locate_whole,
    split_names,
)
from recordsmith.dataset.split_slices import SplitPart, is_split_slice, parse_split
from recordsmith.errors import OptionError
from recordsmith.example import Schema
from recordsmith.stores import is_url
from recordsmith.stores.location import remote


def open(  # noqa: A001 - named as users say it
    paths: Paths,
    split: str | None = None,
    *,
    store_options: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
) -> Dataset:
    """Open TFRecord files as one dataset.

    Args:
        paths: a file, a folder, a glob pattern, or a list of these; each a path, a URL such as
            `s3://bucket/flowers`, or a location as `remote` returns it.
        split: open only this split, according to the manifest or to file names; or a part of it,
            or several, as in TensorFlow Datasets: `train[:80%]`, `train[100:200]`, `train[-10%:]`,
            `train+validation`. A percentage of the records is rounded to the nearest whole number.
        store_options, cache, cache_bytes: of all URLs in `paths`; see `remote`.

    Returns:
        The dataset. Opening reads only names, sizes and the manifest; without a manifest, also the
        first bytes of each file. A part of a split needs the number of records.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: no TFRecord files were found, or the split is unknown or malformed.
        CorruptDataError: broken-manifest, unfinished-dataset, missing-shard, or
            shard-size-mismatch, if the size of a shard differs from the manifest.

    Example:
        dataset = rs.open("out", split="train[:80%]")
    """
    if (store_options, cache, cache_bytes) != (None, None, None):
        paths = _with_options(paths, store_options, cache, cache_bytes)
    if split is not None and is_split_slice(split):
        located = locate(paths)
        known = split_names([located])
        parts = parse_split(split, known)
        names = list(dict.fromkeys(part.name for part in parts))
        for name in names:
            check_split(name, known)
        located.keep_splits(names)
        located.check_whole()
        return _parts_of(_dataset(located, names, paths), parts)
    return _dataset(locate_whole(paths, split), None if split is None else [split], paths)


def _with_options(
    paths: Paths,
    store_options: Mapping[str, Any] | None,
    cache: str | os.PathLike[str] | None,
    cache_bytes: int | None,
) -> Paths:
    """Return the paths, with options for those that are URLs."""
    if isinstance(paths, str) and is_url(paths):
        return remote(paths, store_options=store_options, cache=cache, cache_bytes=cache_bytes)
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Sequence):
        return paths
    return [
        place
        for path in paths
        for place in as_places(_with_options(path, store_options, cache, cache_bytes))
    ]


def dataset_of(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    store_options: Mapping[str, Any] | None = None,
) -> Dataset:
    """Return a Dataset, or open paths; of a split, as in `open`.

    Raises:
        OptionError: the split is unknown or malformed; options of stores were passed with a
            Dataset; or as in `open`.
    """
    if not isinstance(paths_or_dataset, Dataset):
        return open(paths_or_dataset, split, store_options=store_options)
    if store_options is not None:
        raise OptionError(  # without the value, which may be secret
            option="store_options", expected="None with a Dataset, which was opened with its own"
        )
    if split is None:
        return paths_or_dataset
    splits = paths_or_dataset.splits
    parts = parse_split(split, splits)
    for part in parts:
        check_split(part.name, list(splits))
    if len(parts) == 1:
        part, chosen = parts[0], splits[parts[0].name]
        return chosen if part.is_whole else chosen[_slice(part.range(len(chosen)))]
    return _parts_of(paths_or_dataset, parts)


def _dataset(located: Located, splits: Sequence[str] | None, paths: Paths) -> Dataset:
    """`splits`: those that were located; None for all."""
    manifest = located.manifest
    schemas: dict[str, Schema | None] = {}
    schema = None
    if manifest is not None:
        names = manifest.splits if splits is None else splits
        schemas = {name: manifest.schema_of(name) for name in names}
        known = [schema for schema in schemas.values() if schema is not None]
        if splits is None:
            schema = manifest.schema
        elif len(known) == len(schemas):
            schema = known[0] if len(known) == 1 else Schema.merged(known)
    source = DatasetSource(tuple(as_places(paths)), None if splits is None else tuple(splits))
    return Dataset(
        located.shards,
        schema=schema,
        class_names=located.class_names,
        split_schemas=schemas,
        source=source,
        arrow_schema=None if manifest is None else manifest.arrow_schema,
        tfds=None if manifest is None else manifest.tfds,
    )


def _parts_of(dataset: Dataset, parts: Sequence[SplitPart]) -> Dataset:
    """Select parts of the splits of a dataset, one after the other."""
    names = list(dict.fromkeys(part.name for part in parts))
    if (
        [SplitPart(name) for name in names]
        == list(parts)
        == [SplitPart(name) for name in dataset.splits]
    ):
        return dataset
    if len(names) == len(parts) == 1 and len(dataset.splits) == 1:
        return dataset[_slice(parts[0].range(len(dataset)))]
    positions = []
    for part in parts:
        of_split = np.flatnonzero(records_of(dataset).are_in_split(part.name))
        positions.append(of_split[_slice(part.range(len(of_split)))])
    return dataset.select(np.concatenate(positions))


def _slice(chosen: range) -> slice:
    return slice(chosen.start, chosen.stop)
