"""`recordsmith.open`: opens paths as a Dataset, or parts of its splits.

Parts are written as in TensorFlow Datasets: `train[:80%]`, `train[100:200]`, `train+validation`.
Numbers count records and percentages are whole; both may count from the end. A percentage of the
records is rounded to the nearest whole number, halves to the nearest even one, so `train[:80%]` and
`train[80%:]` together have every record once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.locating.by_manifest import locate_packed
from recordsmith.dataset.locating.located import Located
from recordsmith.dataset.locating.paths import (
    Paths,
    as_places,
    check_split,
    locate,
    locate_whole,
    split_names,
)
from recordsmith.dataset.manifest import Manifest
from recordsmith.dataset.names import is_split_slice
from recordsmith.dataset.selected_records import joined_shards
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.view import DatasetSource, View
from recordsmith.format.example import Schema
from recordsmith.stores import Location, is_url, remote
from recordsmith.support.errors import DataError, OptionError
from recordsmith.support.explaining import explain_unknown

_BOUNDARY = r"\s*(-?\d{1,18}%?)?\s*"
_PART = re.compile(rf"\s*(?P<name>[^\[\]+]+?)\s*(?:\[{_BOUNDARY}:{_BOUNDARY}\])?\s*")
_EXPECTED = "a split, a part of it, or several: train, train[:80%], train[100:200], train+test"


_EXPLAINED = {
    "batch_size features shuffle": "Pass it to rs.Loader(dataset, …).",
    "columns": "Use select_columns of the dataset.",
    "compression compression_type": "Leave it out: the compression is detected.",
    "filter where": "Use filter of the dataset.",
    "num_workers threads": "Pass threads to rs.Loader(dataset, …).",
    "streaming": "Leave it out: records are read when they are used.",
    "storage_options": "Pass store_options.",
}
"""What to do instead of options that `open` does not have."""


@explain_unknown(_EXPLAINED)
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
        first bytes of files with other names than shards. A part of a split needs the number of
        records. Of a dataset with layers, open the folder: files are opened without them, with a
        warning.

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
    if not is_split_slice(split):
        return _dataset(locate_whole(paths, split), None if split is None else [split], paths)
    located = locate(paths)
    known = split_names([located])
    parts = _parse_split(str(split), known)
    names = list(dict.fromkeys(part.name for part in parts))
    for name in names:
        check_split(name, known)
    located = located.of_splits(names)
    located.check_whole()
    return _parts_of(_dataset(located, names, paths), parts)


def open_around_defects(paths: Paths) -> tuple[Dataset, list[DataError]]:
    """Open what is there of a dataset; return also what is missing or differs from its manifest."""
    located = locate(paths, around_defects=True)
    defects = [*located.ignored, *(missing.error for missing in located.missing)]
    shards = []
    for shard in located.shards:
        good = []
        for file in (shard.alone(), *shard.layers):
            try:
                file.check_size()
                good.append(file)
            except DataError as error:
                defects.append(error)
        if not good or good[0].features:  # the shard itself is not as in the manifest
            good.insert(0, Shard(shard.location, shard.split))
        good[0].layers = tuple(good[1:])
        shards.append(good[0])
    return _dataset(replace(located, shards=shards), None, paths), defects


def open_packed(folder: Location, manifest: Manifest) -> Dataset:
    """Open the dataset of a folder as if it had another manifest."""
    located = locate_packed(folder, manifest)
    located.check_whole()
    return _dataset(located, None, folder)


def _with_options(
    paths: Paths,
    store_options: Mapping[str, Any] | None,
    cache: str | os.PathLike[str] | None,
    cache_bytes: int | None,
) -> Paths:
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
    """Return a Dataset, or open paths; of a split, as in `open`."""
    if not isinstance(paths_or_dataset, Dataset):
        return open(paths_or_dataset, split, store_options=store_options)
    if store_options is not None:
        raise OptionError(  # without the value, which may be secret
            option="store_options", expected="None with a Dataset, which was opened with its own"
        )
    if split is None:
        return paths_or_dataset
    splits = paths_or_dataset.splits
    parts = _parse_split(split, splits)
    for part in parts:
        check_split(part.name, list(splits))
    if len(parts) == 1:
        part, chosen = parts[0], splits[parts[0].name]
        return chosen if part.is_whole else chosen[part.positions(len(chosen))]
    return _parts_of(paths_or_dataset, parts)


def _dataset(located: Located, splits: Sequence[str] | None, paths: Paths) -> Dataset:
    """`splits`: those that were located; None for all."""
    manifest = located.manifest
    source = DatasetSource(tuple(as_places(paths)), None if splits is None else tuple(splits))
    records = joined_shards(located.shards)
    if manifest is None:
        view = View(records, class_names=located.class_names, source=source)
        return Dataset(replace(view, keypoint_classes=located.keypoint_classes))
    names = manifest.splits if splits is None else splits
    schemas = {name: manifest.schema_of(name) for name in names}
    known = [schema for schema in schemas.values() if schema is not None]
    schema = None
    if splits is None:
        schema = manifest.schema
    elif len(known) == len(schemas):
        schema = known[0] if len(known) == 1 else Schema.merged(known)
    return Dataset(
        View(
            records,
            schema,
            schema,
            located.class_names,
            located.keypoint_classes,
            schemas,
            source,
            manifest.arrow_schema,
        )
    )


# -- parts of splits -------------------------------------------------------------------------------


class _SplitSlice(NamedTuple):
    """A split, or a part of it: boundaries such as `100`, `-10%`, or None."""

    name: str
    start: str | None = None
    stop: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.start is self.stop is None

    def positions(self, count: int) -> slice:
        start = 0 if self.start is None else self._boundary(self.start, count)
        stop = count if self.stop is None else self._boundary(self.stop, count)
        return slice(start, max(start, stop))

    def _boundary(self, text: str, count: int) -> int:
        number, is_percentage = int(text.rstrip("%")), text.endswith("%")
        if abs(number) > (100 if is_percentage else count):
            raise OptionError(
                f"split {str(self)!r} has the boundary {text}, but {self.name!r} has "
                f"{count:,} records",
                option="split",
                value=str(self),
                expected="at most 100%" if is_percentage else f"at most {count}",
            )
        place = number
        if is_percentage:
            from fractions import Fraction

            place = round(Fraction(number * count, 100))
        return place + count if number < 0 else place

    def __str__(self) -> str:
        cut = "" if self.is_whole else f"[{self.start or ''}:{self.stop or ''}]"
        return f"{self.name}{cut}"


def _parse_split(split: str, names: Collection[str]) -> list[_SplitSlice]:
    """Parse splits and parts of them; one of the existing `names` may look like several."""
    if split in names:
        return [_SplitSlice(split)]
    parts = []
    for text in split.split("+"):
        match = _PART.fullmatch(text)
        if match is None:
            problem = f"{text.strip()!r} is not a split or a part of one"
            raise OptionError(problem, option="split", value=split, expected=_EXPECTED)
        parts.append(_SplitSlice(match["name"], match[2], match[3]))
    return parts


def _parts_of(dataset: Dataset, parts: Sequence[_SplitSlice]) -> Dataset:
    if parts == [_SplitSlice(name) for name in dataset.splits]:
        return dataset
    if len(parts) == len(dataset.splits) == 1:
        return dataset[parts[0].positions(len(dataset))]
    positions = []
    for part in parts:
        of_split = np.flatnonzero(dataset.view.records.are_in_split(part.name))
        positions.append(of_split[part.positions(len(of_split))])
    return dataset.select(np.concatenate(positions))
