"""Existing TFRecord files as a source: the same records in other shards.

Payloads are copied unchanged. Compressed shards are first decompressed into a temporary file,
because they cannot be read at random.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import (
    ClassNames,
    Shard,
    carried_class_names,
    joined_shards,
)
from recordsmith.dataset import open as open_dataset
from recordsmith.dataset.decompressing import decompress
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.sources.files.folders import last_name
from recordsmith.sources.files.versions import files_version
from recordsmith.sources.numbered import NumberedSamples, RowNames, sample_number
from recordsmith.sources.problems import join_names
from recordsmith.sources.source import Listing, Note, Sample, ignore_note
from recordsmith.sources.splits import joined_notice, shard_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.wire import FRAME_BYTES, RecordBlock


class Shards:
    """The records of TFRecord files, with unchanged payloads.

    Several splits are kept: those in the manifest, in the names of shards
    (`train-00000-of-00002.tfrecord`, `flowers_test.tfrecord`), or in their folders (`train/`,
    `val/`); files without a split in their names share one. A single split is not kept, so that
    its records can be split again. Class names are kept; labels in records are not read.

    Example:
        >>> rs.pack(rs.Shards("old"), "new", shards=16)  # doctest: +SKIP
    """

    def __init__(self, paths: PlaceLike | list[PlaceLike] | tuple[PlaceLike, ...]) -> None:
        """
        Args:
            paths: a file, a folder, a glob pattern, or a list of these, as in `recordsmith.open`.
        """
        self._paths = paths
        self._shards: tuple[Shard, ...] = ()
        self._names: RowNames | None = None
        self._plain = joined_shards(())  # the shards that are not compressed
        self._starts: dict[int, int] = {}  # number of such a shard -> its first position there
        self._encoded: dict[int, EncodedRows] = {}  # number of a compressed shard -> its records

    def __repr__(self) -> str:
        return f"Shards({self._paths!r})"

    @property
    def root(self) -> Location | None:
        """The folder that is read, if it is one."""
        if isinstance(self._paths, (str, os.PathLike)):
            folder = as_folder(self._paths)
            return folder if folder.is_folder() else None
        return None

    def list_samples(self) -> Listing:
        """Find all records.

        Raises:
            SourceError: there are no records.
            OptionError: there are no TFRecord files.
            CorruptDataError: a shard is damaged, or differs from its manifest.
            FileAccessError: a path does not exist or cannot be read.
        """
        dataset = open_dataset(self._paths)
        self._shards = dataset.shards
        self._encoded = {}
        self._starts = {}
        sizes: list[Int64Array] = []
        plain: list[Shard] = []
        plain_count = 0
        notices: list[str] = []
        for number, shard in enumerate(self._shards):
            if shard.size_bytes and shard.compression != "none":
                self._encoded[number] = _encoded(shard, notices)
                sizes.append(self._encoded[number].sizes)
            else:
                self._starts[number] = plain_count
                plain.append(shard)
                sizes.append(np.diff(shard.index.offsets) - FRAME_BYTES)
                plain_count += len(sizes[-1])
        self._plain = joined_shards(plain)
        names = _names(self._shards)
        self._names = RowNames(dict(zip(names, map(len, sizes), strict=True)))
        if not len(self._names):
            raise SourceError(f"no records in {join_names(names)}", path=self.root)
        split_of_each = shard_splits(self._shards)
        splits = tuple(dict.fromkeys(split_of_each))
        splits = splits if len(splits) > 1 else ()
        coded = None
        if splits:
            notices += joined_notice(self._shards, split_of_each)
            numbers = np.array([splits.index(split) for split in split_of_each], np.int32)
            coded = splits, np.repeat(numbers, [len(size) for size in sizes])
        class_names, has_label_map = self._classes(dataset.class_names)
        return Listing(
            NumberedSamples(
                self._names,
                np.concatenate(sizes),
                splits=coded,
                version=files_version(shard.location for shard in self._shards),
            ),
            self,
            class_names,
            tuple(notices),
            splits=splits,
            has_label_map=has_label_map,
        )

    def read(self, sample: Sample, note: Note = ignore_note) -> bytes:
        """Read the payload of one record.

        Raises:
            CorruptDataError: the record is damaged.
        """
        if self._names is None:
            self.list_samples()
        assert self._names is not None
        number, row = self._names.locate(sample_number(sample))
        if number in self._encoded:
            return self._encoded[number].read(row)
        return self._plain.read_record(self._starts[number] + row)

    def describe(self) -> Mapping[str, Any]:
        root = self.root
        if root is not None:
            return {"kind": "Shards", "folder": last_name(root)}
        given = self._paths
        paths = given if isinstance(given, (list, tuple)) else [given]
        return {"kind": "Shards", "files": [as_location(path).name for path in paths]}

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def _classes(self, known: ClassNames | None) -> tuple[ClassNames | None, bool]:
        """The class names, and whether they come from a label map."""
        return (
            (known, False)
            if self.root is None
            else carried_class_names(as_folder(self.root), known)
        )


def _encoded(shard: Shard, notices: list[str]) -> EncodedRows:
    """The records of a compressed shard; adds to `notices`."""
    rows = EncodedRows()

    def put(block: RecordBlock) -> None:
        for payload in block.payloads():
            rows.append(bytes(payload))

    notices += decompress(shard.location, shard.compression, shard.known_record_count, put)
    rows.finish()
    return rows


def _names(shards: tuple[Shard, ...]) -> list[str]:
    """The path of each shard, relative to their common folder."""
    keys = [shard.location.absolute().key for shard in shards]
    folder = os.path.commonpath(list(map(posixpath.dirname, keys)))
    names = [key.removeprefix(f"{folder}/") for key in keys]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(f"the paths include {join_names(twice)} more than once", option="paths")
    return names
